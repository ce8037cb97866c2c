-- Spans that were accepted and are no rows of span_rows yet. Empty once the run has ended.

CREATE TABLE inbox_rows (
    id INTEGER PRIMARY KEY, -- in the order in which they came
    trial INTEGER NOT NULL REFERENCES trials (id),
    spans INTEGER NOT NULL, -- how many
    packed BLOB NOT NULL -- the spans, in a form of Narrows' own
);
