CREATE TABLE accounts (id integer PRIMARY KEY, cents bigint NOT NULL);
INSERT INTO accounts SELECT id, 1000 FROM generate_series(0, 999) AS id;
