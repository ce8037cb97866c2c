CREATE TABLE series (name varchar(20) PRIMARY KEY, next bigint NOT NULL) ENGINE = InnoDB;
INSERT INTO series VALUES ('invoices', 1);
