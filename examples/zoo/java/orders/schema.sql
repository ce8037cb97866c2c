CREATE TABLE orders (id int PRIMARY KEY, customer int NOT NULL);
CREATE TABLE lines (order_id int NOT NULL REFERENCES orders, cents int NOT NULL);
INSERT INTO orders SELECT n, n % 200 FROM generate_series(0, 4999) n;
INSERT INTO lines SELECT n % 5000, n * 37 % 9000 FROM generate_series(0, 14999) n;
CREATE INDEX orders_customer ON orders (customer);
CREATE INDEX lines_order ON lines (order_id);
ANALYZE;
