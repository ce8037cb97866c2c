CREATE TABLE raffles (id int PRIMARY KEY, sold bigint NOT NULL) WITH (fillfactor = 50);
INSERT INTO raffles VALUES (1, 0);
CREATE TABLE tickets (number bigint NOT NULL);
