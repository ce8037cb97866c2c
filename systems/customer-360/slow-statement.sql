-- The names again, but for those whose erasure was asked for: they stand in a list of 600,000 that has no index, so each
-- statement reads all of it.
\ir schema.sql

ALTER TABLE name RENAME TO person_name;

CREATE TABLE erasure (personId int, asked timestamptz NOT NULL DEFAULT now());

INSERT INTO erasure (personId) SELECT 100 + n FROM generate_series(1, 600000) AS n;

CREATE VIEW name AS
    SELECT personId, "first", middle, "last"
      FROM person_name
     WHERE NOT EXISTS (SELECT FROM erasure WHERE erasure.personId = person_name.personId);

ANALYZE erasure;
