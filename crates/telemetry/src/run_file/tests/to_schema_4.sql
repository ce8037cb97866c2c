-- Makes the spans of a file of schema 5 those of one of schema 4. Its views must be gone but for `spans`.

DROP VIEW spans;
ALTER TABLE trace_rows ADD COLUMN stands_for INTEGER NOT NULL DEFAULT 1;
ALTER TABLE trace_rows DROP COLUMN weight;
ALTER TABLE span_rows DROP COLUMN batch_size;
ALTER TABLE span_shape_rows DROP COLUMN rpc_system;
ALTER TABLE span_shape_rows DROP COLUMN rpc_service;
ALTER TABLE span_shape_rows DROP COLUMN rpc_method;
ALTER TABLE span_shape_rows DROP COLUMN rpc_status;
ALTER TABLE span_shape_rows DROP COLUMN messaging_system;
ALTER TABLE span_shape_rows DROP COLUMN messaging_destination;
ALTER TABLE span_shape_rows DROP COLUMN messaging_operation;
ALTER TABLE span_shape_rows DROP COLUMN db_collection;
ALTER TABLE span_shape_rows DROP COLUMN peer_service;
ALTER TABLE span_shape_rows DROP COLUMN url_template;
ALTER TABLE span_shape_rows DROP COLUMN request_name;
ALTER TABLE trials DROP COLUMN spans_thinned_one_in;
ALTER TABLE trials DROP COLUMN spans_thinned_before_ns;

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
       (SELECT text FROM strings WHERE id = h.http_method) AS http_method,
       (SELECT text FROM strings WHERE id = h.http_route) AS http_route,
       h.http_status,
       printf((SELECT text FROM strings WHERE id = h.url),
              s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, s.a8, s.a9) AS url,
       (SELECT text FROM strings WHERE id = h.db_system) AS db_system,
       (SELECT text FROM strings WHERE id = h.db_namespace) AS db_namespace,
       printf((SELECT text FROM strings WHERE id = h.db_query),
              s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, s.a8, s.a9) AS db_query,
       (SELECT text FROM strings WHERE id = h.db_operation) AS db_operation,
       (SELECT text FROM strings WHERE id = h.db_status) AS db_status,
       s.db_rows, s.db_charge, h.db_sub_status,
       (SELECT text FROM strings WHERE id = h.db_partition) AS db_partition,
       (SELECT text FROM strings WHERE id = h.server_address) AS server_address,
       h.server_port,
       (SELECT text FROM strings WHERE id = h.error_type) AS error_type,
       s.retry_after_ns, h.resend_count,
       printf((SELECT text FROM strings WHERE id = h.attributes),
              s.a1, s.a2, s.a3, s.a4, s.a5, s.a6, s.a7, s.a8, s.a9) AS attributes,
       h.weight
FROM span_rows AS s
JOIN span_shape_rows AS h ON h.id = s.shape
LEFT JOIN trace_rows AS t ON t.id = s.trace;

PRAGMA user_version = 4;
