-- Schema 1 of a run file.
--
-- Tables that end in `_rows`, `points` and `strings` are made for writing: integer ids, interned text, ids as blobs.
-- People and programs query the views, whose names and columns are the interface; docs/reference/run-file.md describes
-- every one. Times are nanoseconds since the Unix epoch in columns named *_ns. No table is STRICT, so that SQLite 3.31
-- (2020) and later open the file. A new version may add tables, views and columns; it raises user_version.

PRAGMA application_id = 0x4e525257; -- "NRRW"
PRAGMA user_version = 1;

CREATE TABLE run (
    id TEXT NOT NULL PRIMARY KEY,
    schema_version INTEGER NOT NULL,
    experiment TEXT NOT NULL,
    narrows_version TEXT NOT NULL,
    started_ns INTEGER NOT NULL,
    ended_ns INTEGER,
    state TEXT NOT NULL CHECK (state IN ('running', 'complete', 'interrupted', 'failed')),
    seed TEXT NOT NULL, -- decimal: an unsigned 64-bit number does not fit an SQLite integer
    time_scale REAL NOT NULL,
    repetitions INTEGER NOT NULL,
    experiment_source TEXT NOT NULL,
    environment TEXT NOT NULL, -- JSON
    writer_pid INTEGER NOT NULL,
    writer_start_ticks INTEGER NOT NULL,
    writer_boot_id TEXT NOT NULL
);

CREATE TABLE trials (
    id INTEGER PRIMARY KEY,
    variant TEXT NOT NULL,
    repetition INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'running', 'done', 'interrupted', 'failed')),
    started_ns INTEGER,
    ended_ns INTEGER,
    parameters TEXT NOT NULL, -- JSON object
    validity TEXT NOT NULL CHECK (validity IN ('valid', 'doubtful', 'invalid')),
    validity_reasons TEXT NOT NULL, -- JSON array
    error TEXT,
    caveats TEXT NOT NULL, -- JSON array
    spans_stored INTEGER NOT NULL DEFAULT 0,
    spans_refused INTEGER NOT NULL DEFAULT 0,
    points_stored INTEGER NOT NULL DEFAULT 0,
    points_refused INTEGER NOT NULL DEFAULT 0,
    logs_stored INTEGER NOT NULL DEFAULT 0,
    logs_refused INTEGER NOT NULL DEFAULT 0,
    samples_stored INTEGER NOT NULL DEFAULT 0,
    samples_refused INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE windows (
    trial INTEGER NOT NULL REFERENCES trials (id),
    position INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('warmup', 'steady', 'ramp')),
    label TEXT NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    vus INTEGER NOT NULL,
    PRIMARY KEY (trial, position)
) WITHOUT ROWID;

CREATE TABLE services (
    id INTEGER PRIMARY KEY, -- the order in which they were started
    trial INTEGER NOT NULL REFERENCES trials (id),
    service TEXT NOT NULL,
    replica INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    port INTEGER NOT NULL,
    command TEXT NOT NULL, -- JSON array
    cpu_limit_cores REAL,
    memory_limit_bytes INTEGER,
    UNIQUE (trial, service, replica)
);

CREATE TABLE strings (
    id INTEGER PRIMARY KEY,
    text TEXT NOT NULL UNIQUE
);

-- Load ---------------------------------------------------------------------------------------------------------------

CREATE TABLE load_second_rows (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    scenario INTEGER NOT NULL, -- strings.id
    start_ns INTEGER NOT NULL,
    vus INTEGER NOT NULL,
    sent INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    errors_connect INTEGER NOT NULL,
    errors_reset INTEGER NOT NULL,
    errors_timeout INTEGER NOT NULL,
    errors_protocol INTEGER NOT NULL,
    errors_status INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    latency_sum_ns INTEGER NOT NULL,
    latency_min_ns INTEGER NOT NULL,
    latency_max_ns INTEGER NOT NULL,
    service_sum_ns INTEGER NOT NULL,
    service_min_ns INTEGER NOT NULL,
    service_max_ns INTEGER NOT NULL,
    lateness_sum_ns INTEGER NOT NULL,
    lateness_min_ns INTEGER NOT NULL,
    lateness_max_ns INTEGER NOT NULL
);
CREATE INDEX load_second_rows_by_time ON load_second_rows (trial, start_ns);

CREATE TABLE load_latency_rows (
    second INTEGER NOT NULL REFERENCES load_second_rows (id),
    measure INTEGER NOT NULL, -- 0 latency, 1 service, 2 lateness
    lower_ns INTEGER NOT NULL,
    upper_ns INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (second, measure, lower_ns)
) WITHOUT ROWID;

CREATE TABLE sample_rows (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    scenario INTEGER NOT NULL, -- strings.id
    vu INTEGER NOT NULL,
    intended_ns INTEGER NOT NULL,
    sent_ns INTEGER NOT NULL,
    done_ns INTEGER NOT NULL,
    status INTEGER NOT NULL,
    error TEXT CHECK (error IN ('connect', 'reset', 'timeout', 'protocol', 'status')),
    bytes INTEGER NOT NULL,
    trace_id BLOB CHECK (length(trace_id) = 16),
    weight REAL NOT NULL
);
CREATE INDEX sample_rows_by_time ON sample_rows (trial, intended_ns);

-- Telemetry ----------------------------------------------------------------------------------------------------------

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
    server_address INTEGER, -- strings.id
    server_port INTEGER,
    error_type INTEGER, -- strings.id
    attributes TEXT NOT NULL, -- JSON object
    weight REAL NOT NULL
);
-- Unique, so that a batch that an exporter sends again is kept once; start_ns makes it cover the choice of traces. It
-- indexes the trace id as the views show it, so that finding a trace and joining by trace are fast through the views.
CREATE UNIQUE INDEX span_rows_by_trace ON span_rows (trial, trace_hex, span_id, kind, start_ns);
CREATE INDEX span_rows_by_time ON span_rows (trial, start_ns);

CREATE TABLE series (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    name TEXT NOT NULL,
    unit TEXT NOT NULL,
    service TEXT NOT NULL,
    replica INTEGER NOT NULL,
    labels TEXT NOT NULL, -- JSON object
    UNIQUE (trial, name, unit, service, replica, labels)
);

CREATE TABLE points (
    id INTEGER PRIMARY KEY,
    series INTEGER NOT NULL REFERENCES series (id),
    time_ns INTEGER NOT NULL,
    value REAL -- NULL stands for "not a number"
);
CREATE INDEX points_by_time ON points (series, time_ns);

CREATE TABLE log_rows (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    time_ns INTEGER NOT NULL,
    service INTEGER NOT NULL, -- strings.id
    replica INTEGER NOT NULL,
    stream TEXT NOT NULL CHECK (stream IN ('stdout', 'stderr', 'otlp')),
    severity INTEGER NOT NULL, -- strings.id
    text TEXT NOT NULL,
    trace_id BLOB CHECK (length(trace_id) = 16)
);
CREATE INDEX log_rows_by_time ON log_rows (trial, time_ns);

-- Conclusions --------------------------------------------------------------------------------------------------------

CREATE TABLE findings (
    trial INTEGER NOT NULL REFERENCES trials (id),
    rank INTEGER NOT NULL, -- from 1, dearest first
    detector TEXT NOT NULL,
    version INTEGER NOT NULL,
    title TEXT NOT NULL,
    resource TEXT NOT NULL,
    operation TEXT,
    cost_share REAL NOT NULL,
    confidence TEXT NOT NULL CHECK (confidence IN ('low', 'medium', 'high')),
    body TEXT NOT NULL, -- JSON: the finding in full
    PRIMARY KEY (trial, rank)
) WITHOUT ROWID;

CREATE TABLE conclusions (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL -- JSON
) WITHOUT ROWID;

-- Views --------------------------------------------------------------------------------------------------------------

CREATE VIEW load_seconds AS
SELECT s.trial,
       (SELECT text FROM strings WHERE id = s.scenario) AS scenario,
       s.start_ns, s.vus, s.sent, s.succeeded,
       s.errors_connect, s.errors_reset, s.errors_timeout, s.errors_protocol, s.errors_status, s.bytes,
       s.latency_sum_ns, s.latency_min_ns, s.latency_max_ns,
       s.service_sum_ns, s.service_min_ns, s.service_max_ns,
       s.lateness_sum_ns, s.lateness_min_ns, s.lateness_max_ns
FROM load_second_rows AS s;

CREATE VIEW load_latency AS
SELECT s.trial,
       (SELECT text FROM strings WHERE id = s.scenario) AS scenario,
       s.start_ns,
       CASE b.measure WHEN 0 THEN 'latency' WHEN 1 THEN 'service' WHEN 2 THEN 'lateness' END AS measure,
       b.lower_ns, b.upper_ns, b.count
FROM load_second_rows AS s JOIN load_latency_rows AS b ON b.second = s.id;

CREATE VIEW samples AS
SELECT s.trial,
       (SELECT text FROM strings WHERE id = s.scenario) AS scenario,
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
       (SELECT text FROM strings WHERE id = s.server_address) AS server_address,
       s.server_port,
       (SELECT text FROM strings WHERE id = s.error_type) AS error_type,
       s.attributes, s.weight
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
       CAST(round(s.weight) AS INTEGER) AS itemCount,
       s.trace_hex AS operation_Id,
       CASE WHEN s.parent_span_id IS NOT NULL THEN lower(hex(s.parent_span_id)) ELSE '' END AS operation_ParentId,
       (SELECT text FROM strings WHERE id = s.service) AS cloud_RoleName,
       s.attributes AS customDimensions,
       s.trial,
       (SELECT variant FROM trials WHERE id = s.trial) AS variant
FROM span_rows AS s WHERE s.kind = 3;
