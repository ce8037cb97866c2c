CREATE TABLE suppliers (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE products (id int PRIMARY KEY, name text NOT NULL, supplier int NOT NULL REFERENCES suppliers);
INSERT INTO suppliers SELECT n, 'supplier ' || n FROM generate_series(0, 299) n;
INSERT INTO products SELECT n, 'product ' || n, n * 7 % 300 FROM generate_series(0, 4999) n;
ANALYZE;
