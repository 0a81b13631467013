CREATE TABLE items (id INT PRIMARY KEY, stock INT NOT NULL);
CREATE TABLE orders (buyer INT NOT NULL);
CREATE TABLE settings (id INT PRIMARY KEY, value INT NOT NULL);
INSERT INTO items VALUES (1, 1), (2, 1);
INSERT INTO settings SELECT n, n FROM generate_series(1, 8) n;
