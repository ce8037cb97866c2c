CREATE TABLE stock (product int PRIMARY KEY, pieces int NOT NULL);
INSERT INTO stock SELECT n, n * 13 % 200 FROM generate_series(0, 4999) n;
