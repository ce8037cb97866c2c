CREATE TABLE posts (id int PRIMARY KEY, likes int NOT NULL) WITH (fillfactor = 50);
INSERT INTO posts SELECT n, 0 FROM generate_series(0, 4999) n;
CREATE TABLE counters (name text PRIMARY KEY, n bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO counters VALUES ('likes', 0);
