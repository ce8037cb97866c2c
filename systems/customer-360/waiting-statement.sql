-- The names again, but each statement waits for 20 ms, as it would for a disk or another server: that holds a connection
-- and costs the database next to nothing.
\ir schema.sql

ALTER TABLE name RENAME TO person_name;

CREATE VIEW name AS
    WITH wait AS MATERIALIZED (SELECT pg_sleep(0.02))
    SELECT personId, "first", middle, "last" FROM person_name, wait;
