-- The views of a run file: what people and programs query. Run over tables of the newest schema, also over those of an
-- older one once its missing columns were added.

DROP VIEW IF EXISTS load_seconds;
DROP VIEW IF EXISTS load_latency;
DROP VIEW IF EXISTS samples;
DROP VIEW IF EXISTS spans;
DROP VIEW IF EXISTS metrics;
DROP VIEW IF EXISTS logs;
DROP VIEW IF EXISTS requests;
DROP VIEW IF EXISTS dependencies;

CREATE VIEW load_seconds AS
SELECT s.trial,
       (SELECT text FROM strings WHERE id = s.scenario) AS scenario,
       coalesce((SELECT text FROM strings WHERE id = s.request), '') AS request,
       s.start_ns, s.vus, s.due, s.late, s.dropped, s.sent, s.succeeded,
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
       s.vu, s.intended_ns, s.sent_ns, s.done_ns,
       (s.done_ns - s.intended_ns) / 1e6 AS latency_ms,
       (s.done_ns - s.sent_ns) / 1e6 AS service_ms,
       s.status, s.error, s.bytes,
       CASE WHEN s.trace_id IS NOT NULL THEN lower(hex(s.trace_id)) END AS trace_id,
       s.weight
FROM sample_rows AS s;

CREATE VIEW spans AS
SELECT s.trial,
       s.trace_hex AS trace_id,
       lower(hex(s.span_id)) AS span_id,
       CASE WHEN s.parent_span_id IS NOT NULL THEN lower(hex(s.parent_span_id)) END AS parent_span_id,
       (SELECT text FROM strings WHERE id = s.service) AS service,
       (SELECT text FROM strings WHERE id = s.scope) AS scope,
       (SELECT text FROM strings WHERE id = s.name) AS name,
       CASE s.kind WHEN 1 THEN 'internal' WHEN 2 THEN 'server' WHEN 3 THEN 'client'
                   WHEN 4 THEN 'producer' WHEN 5 THEN 'consumer' END AS kind,
       s.start_ns, s.end_ns,
       max(s.end_ns - s.start_ns, 0) / 1e6 AS duration_ms,
       CASE s.status WHEN 0 THEN 'unset' WHEN 1 THEN 'ok' WHEN 2 THEN 'error' END AS status,
       s.status_message,
       (SELECT text FROM strings WHERE id = s.http_method) AS http_method,
       (SELECT text FROM strings WHERE id = s.http_route) AS http_route,
       s.http_status, s.url,
       (SELECT text FROM strings WHERE id = s.db_system) AS db_system,
       (SELECT text FROM strings WHERE id = s.db_namespace) AS db_namespace,
       (SELECT text FROM strings WHERE id = s.db_query) AS db_query,
       (SELECT text FROM strings WHERE id = s.db_operation) AS db_operation,
       (SELECT text FROM strings WHERE id = s.db_status) AS db_status,
       s.db_rows, s.db_charge, s.db_sub_status,
       (SELECT text FROM strings WHERE id = s.db_partition) AS db_partition,
       (SELECT text FROM strings WHERE id = s.server_address) AS server_address,
       s.server_port,
       (SELECT text FROM strings WHERE id = s.error_type) AS error_type,
       s.retry_after_ns, s.resend_count, s.attributes, s.weight
FROM span_rows AS s;

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

-- Application Insights' names. Both views have the same columns, so that UNION ALL over them is a whole trace.

CREATE VIEW requests AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', s.start_ns / 1000000000, 'unixepoch')
           || printf('.%07dZ', s.start_ns % 1000000000 / 100) AS timestamp,
       lower(hex(s.span_id)) AS id,
       (SELECT text FROM strings WHERE id = s.name) AS name,
       s.status <> 2 AND coalesce(s.http_status, 0) < 400 AS success,
       CASE WHEN s.http_method IS NOT NULL OR s.http_status IS NOT NULL THEN 'HTTP' ELSE '' END AS type,
       coalesce((SELECT text FROM strings WHERE id = s.server_address) || coalesce(':' || s.server_port, ''), '')
           AS target,
       s.url AS data,
       coalesce(CAST(s.http_status AS TEXT), (SELECT text FROM strings WHERE id = s.error_type), '') AS resultCode,
       max(s.end_ns - s.start_ns, 0) / 1e6 AS duration,
       NULL AS charge, -- a call's, not an answer's
       CAST(round(s.weight) AS INTEGER) AS itemCount,
       s.trace_hex AS operation_Id,
       CASE WHEN s.parent_span_id IS NOT NULL THEN lower(hex(s.parent_span_id)) ELSE '' END AS operation_ParentId,
       (SELECT text FROM strings WHERE id = s.service) AS cloud_RoleName,
       s.attributes AS customDimensions,
       s.trial,
       (SELECT variant FROM trials WHERE id = s.trial) AS variant
FROM span_rows AS s WHERE s.kind = 2;

CREATE VIEW dependencies AS
SELECT strftime('%Y-%m-%dT%H:%M:%S', s.start_ns / 1000000000, 'unixepoch')
           || printf('.%07dZ', s.start_ns % 1000000000 / 100) AS timestamp,
       lower(hex(s.span_id)) AS id,
       (SELECT text FROM strings WHERE id = s.name) AS name,
       s.status <> 2 AND coalesce(s.http_status, 0) < 400 AS success,
       CASE WHEN s.db_system IS NOT NULL THEN (SELECT text FROM strings WHERE id = s.db_system)
            WHEN s.http_method IS NOT NULL OR s.http_status IS NOT NULL THEN 'HTTP' ELSE '' END AS type,
       coalesce((SELECT text FROM strings WHERE id = s.server_address) || coalesce(':' || s.server_port, ''), '')
           AS target,
       coalesce((SELECT text FROM strings WHERE id = s.db_query), s.url) AS data,
       coalesce((SELECT text FROM strings WHERE id = s.db_status), CAST(s.http_status AS TEXT),
                (SELECT text FROM strings WHERE id = s.error_type), '') AS resultCode,
       max(s.end_ns - s.start_ns, 0) / 1e6 AS duration,
       s.db_charge AS charge,
       CAST(round(s.weight) AS INTEGER) AS itemCount,
       s.trace_hex AS operation_Id,
       CASE WHEN s.parent_span_id IS NOT NULL THEN lower(hex(s.parent_span_id)) ELSE '' END AS operation_ParentId,
       (SELECT text FROM strings WHERE id = s.service) AS cloud_RoleName,
       s.attributes AS customDimensions,
       s.trial,
       (SELECT variant FROM trials WHERE id = s.trial) AS variant
FROM span_rows AS s WHERE s.kind = 3;
