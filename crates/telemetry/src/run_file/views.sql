-- The views of a run file: what people and programs query.

CREATE VIEW load_seconds AS
SELECT s.trial,
       (SELECT text FROM strings WHERE id = s.scenario) AS scenario,
       coalesce((SELECT text FROM strings WHERE id = s.request), '') AS request,
       s.start_ns, s.length_ns, s.vus, s.due, s.late, s.dropped, s.sent, s.repeated, s.cut, s.succeeded,
       s.errors_connect, s.errors_reset, s.errors_timeout, s.errors_protocol, s.errors_status, s.errors_check, s.bytes,
       s.latency_sum_ns, s.latency_min_ns, s.latency_max_ns,
       s.service_sum_ns, s.service_min_ns, s.service_max_ns,
       s.lateness_sum_ns, s.lateness_min_ns, s.lateness_max_ns
FROM load_second_rows AS s;

CREATE VIEW load_latency AS
SELECT s.trial,
       (SELECT text FROM strings WHERE id = s.scenario) AS scenario,
       coalesce((SELECT text FROM strings WHERE id = s.request), '') AS request,
       s.start_ns,
       CASE b.measure WHEN 0 THEN 'latency' WHEN 1 THEN 'service' WHEN 2 THEN 'lateness' END AS measure,
       b.lower_ns, b.upper_ns, b.count
FROM load_second_rows AS s JOIN load_latency_rows AS b ON b.second = s.id;

CREATE VIEW samples AS
SELECT s.trial,
       (SELECT text FROM strings WHERE id = s.scenario) AS scenario,
       coalesce((SELECT text FROM strings WHERE id = s.request), '') AS request,
       s.vu, (SELECT text FROM strings WHERE id = s.agent) AS agent,
       s.intended_ns, s.sent_ns, s.done_ns,
       (s.done_ns - s.intended_ns) / 1e6 AS latency_ms,
       (s.done_ns - s.sent_ns) / 1e6 AS service_ms,
       s.status, s.error, s.bytes,
       CASE WHEN s.trace_id IS NOT NULL THEN lower(hex(s.trace_id)) END AS trace_id,
       s.weight
FROM sample_rows AS s;

-- A condition on what a shape says (service, name, kind, status …) finds the shapes first and their spans by index, so
-- those columns take nothing from s. The trace is joined from the left: who does not ask for it does not wait for it. So
-- is the name of a request, and before the spans, so that it is looked up once for a shape.
CREATE VIEW spans AS
SELECT h.trial,
       t.trace_hex AS trace_id,
       lower(hex(s.span_id)) AS span_id,
       CASE WHEN s.parent_span_id IS NOT NULL THEN lower(hex(s.parent_span_id)) END AS parent_span_id,
       (SELECT text FROM strings WHERE id = h.service) AS service,
       (SELECT text FROM strings WHERE id = h.scope) AS scope,
       (SELECT text FROM strings WHERE id = h.name) AS name,
       CASE h.kind WHEN 1 THEN 'internal' WHEN 2 THEN 'server' WHEN 3 THEN 'client'
                   WHEN 4 THEN 'producer' WHEN 5 THEN 'consumer' END AS kind,
       s.start_ns, s.start_ns + s.length_ns AS end_ns,
       max(s.length_ns, 0) / 1e6 AS duration_ms,
       CASE h.status WHEN 0 THEN 'unset' WHEN 1 THEN 'ok' WHEN 2 THEN 'error' END AS status,
       printf((SELECT text FROM strings WHERE id = h.status_message),
              s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, s.a8, s.a9) AS status_message,
       {facts}
       printf((SELECT text FROM strings WHERE id = h.attributes),
              s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, s.a8, s.a9) AS attributes,
       h.weight * t.weight AS weight,
       -- Where the shape has none, it is made of method and path, of which spans may each have their own.
       CASE WHEN n.text IS NOT NULL THEN n.text
            WHEN h.kind IN (2, 5) THEN (SELECT text FROM strings WHERE id = h.http_method) || ' ' || substr(
                printf((SELECT text FROM strings WHERE id = h.url),
                       s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, s.a8, s.a9),
                1,
                instr(printf((SELECT text FROM strings WHERE id = h.url),
                             s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, s.a8, s.a9) || '?', '?') - 1)
            END AS request_name
FROM span_shape_rows AS h
LEFT JOIN strings AS n ON n.id = h.request_name
JOIN span_rows AS s ON s.shape = h.id
LEFT JOIN trace_rows AS t ON t.id = s.trace;

CREATE VIEW span_counts AS
SELECT c.trial,
       (SELECT text FROM strings WHERE id = c.service) AS service,
       (SELECT text FROM strings WHERE id = c.name) AS name,
       CASE c.kind WHEN 1 THEN 'internal' WHEN 2 THEN 'server' WHEN 3 THEN 'client'
                   WHEN 4 THEN 'producer' WHEN 5 THEN 'consumer' END AS kind,
       CASE c.status WHEN 0 THEN 'unset' WHEN 1 THEN 'ok' WHEN 2 THEN 'error' END AS status,
       c.arrived, c.kept, c.weight
FROM span_count_rows AS c;

CREATE VIEW metrics AS
SELECT s.trial, s.name, s.unit, s.service, s.replica, s.labels, p.time_ns, p.value
FROM series AS s JOIN points AS p ON p.series = s.id;

CREATE VIEW logs AS
SELECT l.trial, l.time_ns,
       (SELECT text FROM strings WHERE id = l.service) AS service,
       l.replica, l.stream,
       (SELECT text FROM strings WHERE id = l.severity) AS severity,
       l.text,
       CASE WHEN l.trace_id IS NOT NULL THEN lower(hex(l.trace_id)) END AS trace_id
FROM log_rows AS l;
