-- Makes the spans of a file of schema 4 those of one of schema 3. Its views must be gone but for `spans`.

INSERT OR IGNORE INTO strings (text) SELECT db_query FROM spans WHERE db_query IS NOT NULL;

CREATE TEMP TABLE copied AS
SELECT h.trial, t.trace_id, s.span_id, s.parent_span_id, h.service, h.scope, h.name, h.kind, s.start_ns, v.end_ns,
       h.status, v.status_message, h.http_method, h.http_route, h.http_status, v.url, h.db_system, h.db_namespace,
       (SELECT id FROM strings WHERE text = v.db_query) AS db_query, h.db_operation, h.db_status, s.db_rows, s.db_charge,
       h.db_sub_status, h.db_partition, h.server_address, h.server_port, h.error_type, s.retry_after_ns, h.resend_count,
       h.weight, v.attributes
FROM span_rows AS s
JOIN span_shape_rows AS h ON h.id = s.shape
JOIN trace_rows AS t ON t.id = s.trace
JOIN spans AS v ON v.trial = h.trial AND v.trace_id = t.trace_hex AND v.span_id = lower(hex(s.span_id))
ORDER BY s.start_ns;

DROP VIEW spans;
DROP TABLE span_rows;
DROP TABLE span_shape_rows;
DROP TABLE trace_rows;
DROP TABLE span_count_rows;
ALTER TABLE trials DROP COLUMN spans_thinned;
ALTER TABLE trials DROP COLUMN spans_one_in;

CREATE TABLE span_rows (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    trace_id BLOB NOT NULL CHECK (length(trace_id) = 16),
    trace_hex TEXT AS (lower(hex(trace_id))) VIRTUAL, -- takes no space; as the views show it
    span_id BLOB NOT NULL CHECK (length(span_id) = 8),
    parent_span_id BLOB CHECK (length(parent_span_id) = 8),
    service INTEGER NOT NULL, -- strings.id, as are all columns below that say so
    scope INTEGER NOT NULL, -- strings.id
    name INTEGER NOT NULL, -- strings.id
    kind INTEGER NOT NULL, -- OTLP's numbers: 1 internal, 2 server, 3 client, 4 producer, 5 consumer
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    status INTEGER NOT NULL, -- OTLP's numbers: 0 unset, 1 ok, 2 error
    status_message TEXT NOT NULL,
    http_method INTEGER, -- strings.id
    http_route INTEGER, -- strings.id
    http_status INTEGER,
    url TEXT,
    db_system INTEGER, -- strings.id
    db_namespace INTEGER, -- strings.id
    db_query INTEGER, -- strings.id
    db_operation INTEGER, -- strings.id
    db_status INTEGER, -- strings.id
    db_rows INTEGER,
    db_charge REAL,
    db_sub_status INTEGER,
    db_partition INTEGER, -- strings.id
    server_address INTEGER, -- strings.id
    server_port INTEGER,
    error_type INTEGER, -- strings.id
    retry_after_ns INTEGER,
    resend_count INTEGER,
    weight REAL NOT NULL,
    attributes TEXT NOT NULL -- JSON object; last, since it is long and counting over all spans needs only what is before
);
-- Unique, so that a batch that an exporter sends again is kept once; start_ns makes it cover the choice of traces. It
-- indexes the trace id as the views show it, so that finding a trace and joining by trace are fast through the views.
CREATE UNIQUE INDEX span_rows_by_trace ON span_rows (trial, trace_hex, span_id, kind, start_ns);
CREATE INDEX span_rows_by_time ON span_rows (trial, start_ns);

INSERT INTO span_rows (trial, trace_id, span_id, parent_span_id, service, scope, name, kind, start_ns, end_ns, status,
    status_message, http_method, http_route, http_status, url, db_system, db_namespace, db_query, db_operation,
    db_status, db_rows, db_charge, db_sub_status, db_partition, server_address, server_port, error_type,
    retry_after_ns, resend_count, weight, attributes)
SELECT * FROM copied;
DROP TABLE copied;
CREATE VIEW spans AS SELECT trial, trace_hex AS trace_id FROM span_rows;
PRAGMA user_version = 3;
