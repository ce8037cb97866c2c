-- Owners with ten items each, and the ledger of transfers between items. The same rows every time.
--
-- Rows come out of MariaDB's sequence engine: seq_1_to_N is a table of the numbers 1 to N.

CREATE TABLE owners (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  name VARCHAR(64) NOT NULL,
  region VARCHAR(16) NOT NULL,
  revision INT UNSIGNED NOT NULL DEFAULT 0,
  KEY by_name (name)
) ENGINE = InnoDB;

CREATE TABLE items (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  owner_id INT UNSIGNED NOT NULL,
  name VARCHAR(64) NOT NULL,
  kind VARCHAR(16) NOT NULL,
  quantity BIGINT NOT NULL,
  initial BIGINT NOT NULL,
  KEY by_owner (owner_id),
  KEY by_kind (kind)
) ENGINE = InnoDB;

-- Each transfer has a row here, written in its own transaction.
CREATE TABLE ledger (
  instance BIGINT NOT NULL,
  seq BIGINT NOT NULL,
  from_item INT UNSIGNED NOT NULL,
  to_item INT UNSIGNED NOT NULL,
  amount BIGINT NOT NULL,
  PRIMARY KEY (instance, seq)
) ENGINE = InnoDB;

INSERT INTO owners (id, name, region)
SELECT seq, CONCAT('owner-', LPAD(seq, 5, '0')), ELT(1 + seq % 4, 'north', 'east', 'south', 'west')
FROM seq_1_to_4000;

-- 37 kinds, a prime number, so that every kind has items in every region.
INSERT INTO items (id, owner_id, name, kind, quantity, initial)
SELECT seq, 1 + (seq - 1) DIV 10, CONCAT('item-', LPAD(seq, 6, '0')), CONCAT('kind-', 1 + seq % 37), 1000000,
  1000000
FROM seq_1_to_40000;

-- Without statistics, a node that joins right after this would read whole tables.
ANALYZE TABLE owners, items;
