CREATE TABLE seats (id int PRIMARY KEY, taken int NOT NULL);
INSERT INTO seats SELECT n, 0 FROM generate_series(0, 4999) n;
