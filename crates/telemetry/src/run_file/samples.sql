-- The table of sampled requests. By itself, because schema 3 has to make it anew: what a CHECK allows cannot be altered.

CREATE TABLE sample_rows (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    scenario INTEGER NOT NULL, -- strings.id
    request INTEGER, -- strings.id; NULL stands for no name
    vu INTEGER NOT NULL,
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
