-- Moves the spans of schema 3, set aside in older_span_rows, into the tables of schema 4. Spans that agree in all but
-- what they say in their own words get one shape. Attributes, addresses, queries and messages become what fills templates
-- that hold nothing else, so that none of them is read, let alone changed.

CREATE TEMP TABLE older_shapes AS
SELECT id, min(id) OVER (
           PARTITION BY trial, service, scope, name, kind, status, http_method, http_route, http_status, url IS NULL,
                        db_system, db_namespace, db_query IS NULL, db_operation, db_status, db_sub_status, db_partition,
                        server_address, server_port, error_type, resend_count, weight) AS shape
FROM older_span_rows;
CREATE UNIQUE INDEX temp.older_shapes_by_id ON older_shapes (id);

INSERT OR IGNORE INTO strings (text) VALUES ('%s'), ('%.0s%s'), ('%.0s%.0s%s'), ('%.0s%.0s%.0s%s');

INSERT INTO trace_rows (trial, trace_id)
SELECT trial, trace_id FROM older_span_rows GROUP BY trial, trace_id ORDER BY min(id);

INSERT INTO span_shape_rows (id, trial, service, scope, name, kind, status, status_message, http_method, http_route,
    http_status, url, db_system, db_namespace, db_query, db_operation, db_status, db_sub_status, db_partition,
    server_address, server_port, error_type, resend_count, weight, attributes)
SELECT id, trial, service, scope, name, kind, status, (SELECT id FROM strings WHERE text = '%.0s%.0s%.0s%s'),
       http_method, http_route, http_status,
       CASE WHEN url IS NOT NULL THEN (SELECT id FROM strings WHERE text = '%.0s%s') END,
       db_system, db_namespace,
       CASE WHEN db_query IS NOT NULL THEN (SELECT id FROM strings WHERE text = '%.0s%.0s%s') END,
       db_operation, db_status, db_sub_status, db_partition, server_address, server_port, error_type, resend_count,
       weight, (SELECT id FROM strings WHERE text = '%s')
FROM older_span_rows WHERE id IN (SELECT shape FROM older_shapes);

INSERT OR IGNORE INTO span_rows (trace, span_id, kind, start_ns, shape, parent_span_id, length_ns, db_rows, db_charge,
    retry_after_ns, a1, a2, a3, a4)
SELECT t.id, s.span_id, s.kind, s.start_ns, o.shape, s.parent_span_id, CAST(s.end_ns - s.start_ns AS INTEGER),
       s.db_rows, s.db_charge, s.retry_after_ns, s.attributes, s.url, (SELECT text FROM strings WHERE id = s.db_query),
       s.status_message
FROM older_span_rows AS s
JOIN older_shapes AS o ON o.id = s.id
JOIN trace_rows AS t ON t.trace_hex = lower(hex(s.trace_id)) AND t.trial = s.trial;

INSERT INTO span_count_rows (trial, service, name, kind, status, arrived, kept, weight)
SELECT trial, service, name, kind, status, count(*), count(*), sum(weight)
FROM older_span_rows GROUP BY trial, service, name, kind, status;

DROP TABLE temp.older_shapes;
DROP TABLE older_span_rows;
