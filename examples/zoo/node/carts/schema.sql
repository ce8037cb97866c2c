CREATE TABLE items (cart int, product text NOT NULL, quantity int NOT NULL);
INSERT INTO items SELECT n % 2000, 'product ' || n, 1 + n % 5 FROM generate_series(0, 9999) n;
CREATE INDEX items_cart ON items (cart);
ANALYZE;
