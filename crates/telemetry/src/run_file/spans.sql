-- The tables of spans.
--
-- What many spans have in common is one row of span_shape_rows, what they differ in is in the row of the span. A text of
-- a shape that says "template" is a format of SQLite's printf() over a1 to a9 of the span: `{"http.route":"/a","n":%s}`.

CREATE TABLE trace_rows (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    trace_id BLOB NOT NULL CHECK (length(trace_id) = 16),
    weight REAL NOT NULL DEFAULT 1, -- how many traces this one stands for; multiplies the weight of its spans' shapes
    trace_hex TEXT AS (lower(hex(trace_id))) VIRTUAL -- takes no space; as the views show it
);
-- It indexes the id as the views show it, so that finding a trace and joining by trace are fast through the views.
CREATE UNIQUE INDEX trace_rows_by_hex ON trace_rows (trace_hex, trial);

CREATE TABLE span_shape_rows (
    id INTEGER PRIMARY KEY,
    trial INTEGER NOT NULL REFERENCES trials (id),
    service INTEGER NOT NULL, -- strings.id, as are all columns below that say so
    scope INTEGER NOT NULL, -- strings.id
    name INTEGER NOT NULL, -- strings.id
    kind INTEGER NOT NULL, -- OTLP's numbers: 1 internal, 2 server, 3 client, 4 producer, 5 consumer
    status INTEGER NOT NULL, -- OTLP's numbers: 0 unset, 1 ok, 2 error
    status_message INTEGER NOT NULL, -- strings.id of a template
    {facts of shapes}
    weight REAL NOT NULL, -- how many spans a span stood for when it came
    attributes INTEGER NOT NULL, -- strings.id of a template of a JSON object
    request_name INTEGER -- strings.id; NULL where no request is, and where the name is made of the address
);

-- Kept in the order of traces. The key is unique, so that a batch that an exporter sends again is kept once. References
-- are not declared: they would be looked up again for every span.
CREATE TABLE span_rows (
    trace INTEGER NOT NULL, -- trace_rows.id
    span_id BLOB NOT NULL, -- eight bytes
    kind INTEGER NOT NULL, -- as in the shape; some tracers give both ends of a call one id
    start_ns INTEGER NOT NULL,
    shape INTEGER NOT NULL, -- span_shape_rows.id
    parent_span_id BLOB, -- eight bytes
    length_ns INTEGER NOT NULL, -- end - start; negative when a clock ran backwards
    {facts of spans}
    a1, a2, a3, a4, a5, a6, a7, a8, a9, -- what fills the templates
    PRIMARY KEY (trace, span_id, kind, start_ns)
) WITHOUT ROWID;

-- Everything that arrived, also what was not kept as a span.
CREATE TABLE span_count_rows (
    trial INTEGER NOT NULL REFERENCES trials (id),
    service INTEGER NOT NULL, -- strings.id
    name INTEGER NOT NULL, -- strings.id
    kind INTEGER NOT NULL,
    status INTEGER NOT NULL,
    arrived INTEGER NOT NULL,
    kept INTEGER NOT NULL,
    weight REAL NOT NULL,
    PRIMARY KEY (trial, service, name, kind, status)
) WITHOUT ROWID;

-- Spans that were accepted and are no rows of span_rows yet. Empty once the run has ended.
CREATE TABLE inbox_rows (
    id INTEGER PRIMARY KEY, -- in the order in which they came
    trial INTEGER NOT NULL REFERENCES trials (id),
    spans INTEGER NOT NULL, -- how many
    packed BLOB NOT NULL -- the spans, in a form of Narrows' own
);
