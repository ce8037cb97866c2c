CREATE TABLE tax_rates (category int PRIMARY KEY, per_mille int NOT NULL);
INSERT INTO tax_rates SELECT seq, seq % 250 FROM seq_0_to_99;
