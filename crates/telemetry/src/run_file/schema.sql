-- The tables of a run file, version 5. Those of spans are in spans.sql.
--
-- Tables that end in `_rows`, `points` and `strings` are made for writing: integer ids, interned text, ids as blobs.
-- People and programs query the views (views.sql), whose names and columns are the interface;
-- docs/reference/run-file.md describes every one. Times are nanoseconds since the
-- Unix epoch in columns named *_ns. No table is STRICT, so that SQLite 3.31 (2020) and later open the file. Any change to
-- a table, a view, an index or the JSON in a column raises user_version: a file is read only if it declares exactly what is declared here.

PRAGMA application_id = 0x4e525257; -- "NRRW"
PRAGMA user_version = 6;

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
    load_program TEXT, -- JSON object
    spans_stored INTEGER NOT NULL DEFAULT 0,
    spans_refused INTEGER NOT NULL DEFAULT 0,
    points_stored INTEGER NOT NULL DEFAULT 0,
    points_refused INTEGER NOT NULL DEFAULT 0,
    logs_stored INTEGER NOT NULL DEFAULT 0,
    logs_refused INTEGER NOT NULL DEFAULT 0,
    samples_stored INTEGER NOT NULL DEFAULT 0,
    samples_refused INTEGER NOT NULL DEFAULT 0,
    spans_thinned INTEGER NOT NULL DEFAULT 0, -- counted, not kept, and stood for by others
    spans_one_in INTEGER NOT NULL DEFAULT 1, -- 1 of so many traces that began last was kept when it began
    spans_thinned_one_in INTEGER NOT NULL DEFAULT 1, -- 1 of so many stored traces was left, but for failed and slow ones
    spans_thinned_before_ns INTEGER -- what began earlier and comes now is thinned out as what was stored
);

CREATE TABLE windows (
    trial INTEGER NOT NULL REFERENCES trials (id),
    position INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('warmup', 'steady', 'ramp')),
    label TEXT NOT NULL,
    start_ns INTEGER NOT NULL,
    end_ns INTEGER NOT NULL,
    drained_ns INTEGER, -- when the last response arrived, where the load ended with the window
    vus INTEGER NOT NULL,
    rate REAL,
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
    stand_in_ports TEXT NOT NULL DEFAULT '[]', -- JSON array
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
    request INTEGER, -- strings.id; NULL stands for no name
    start_ns INTEGER NOT NULL,
    length_ns INTEGER NOT NULL,
    vus INTEGER NOT NULL,
    due INTEGER NOT NULL DEFAULT 0,
    late INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0,
    sent INTEGER NOT NULL,
    repeated INTEGER NOT NULL,
    cut INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    errors_connect INTEGER NOT NULL,
    errors_reset INTEGER NOT NULL,
    errors_timeout INTEGER NOT NULL,
    errors_protocol INTEGER NOT NULL,
    errors_status INTEGER NOT NULL,
    errors_check INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL,
    latency_count INTEGER NOT NULL,
    latency_sum_ns INTEGER NOT NULL,
    latency_min_ns INTEGER NOT NULL,
    latency_max_ns INTEGER NOT NULL,
    service_count INTEGER NOT NULL,
    service_sum_ns INTEGER NOT NULL,
    service_min_ns INTEGER NOT NULL,
    service_max_ns INTEGER NOT NULL,
    lateness_count INTEGER NOT NULL,
    lateness_sum_ns INTEGER NOT NULL,
    lateness_min_ns INTEGER NOT NULL,
    lateness_max_ns INTEGER NOT NULL
);
CREATE INDEX load_second_rows_by_time ON load_second_rows (trial, start_ns);

-- Of seconds that are older than ten minutes, one of a minute has the buckets of all (folding.rs).
CREATE TABLE load_latency_rows (
    second INTEGER NOT NULL REFERENCES load_second_rows (id),
    measure INTEGER NOT NULL, -- 0 latency, 1 service, 2 lateness
    lower_ns INTEGER NOT NULL,
    upper_ns INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (second, measure, lower_ns)
) WITHOUT ROWID;

-- A bounded sample of single requests.
CREATE TABLE sample_rows (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    scenario INTEGER NOT NULL, -- strings.id
    request INTEGER, -- strings.id; NULL stands for no name
    vu INTEGER NOT NULL,
    agent INTEGER, -- strings.id
    intended_ns INTEGER NOT NULL,
    sent_ns INTEGER NOT NULL,
    done_ns INTEGER NOT NULL,
    status INTEGER NOT NULL,
    error TEXT CHECK (error IN ('connect', 'reset', 'timeout', 'protocol', 'status', 'check')),
    bytes INTEGER NOT NULL,
    trace_id BLOB CHECK (length(trace_id) = 16),
    weight REAL NOT NULL
);
CREATE INDEX sample_rows_by_time ON sample_rows (trial, intended_ns);

-- Telemetry ----------------------------------------------------------------------------------------------------------

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

-- Calls between processes under each load, as sockets show them.
CREATE TABLE call_graph (
    trial INTEGER NOT NULL REFERENCES trials (id),
    level INTEGER NOT NULL, -- from 0, in order of time
    label TEXT NOT NULL,
    caller TEXT NOT NULL,
    callee TEXT NOT NULL,
    callee_kind TEXT NOT NULL CHECK (callee_kind IN ('client', 'service', 'store', 'outside')),
    is_background INTEGER NOT NULL,
    rate REAL NOT NULL,
    waiting_low REAL NOT NULL,
    waiting_high REAL NOT NULL,
    wait_low_ms REAL,
    wait_high_ms REAL,
    unread REAL NOT NULL,
    connections REAL NOT NULL,
    one_way REAL NOT NULL,
    opened REAL NOT NULL,
    sent_bytes REAL NOT NULL,
    received_bytes REAL NOT NULL,
    PRIMARY KEY (trial, level, caller, callee)
) WITHOUT ROWID;

CREATE TABLE conclusions (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL -- JSON
) WITHOUT ROWID;
