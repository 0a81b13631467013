-- The tables of every example but saleor. MySQL, MariaDB and PostgreSQL all know
-- SERIAL: a number that the server counts up.
CREATE TABLE items (id INT PRIMARY KEY, stock INT NOT NULL);
CREATE TABLE orders (id SERIAL PRIMARY KEY, item_id INT NOT NULL, buyer CHAR(36) NOT NULL);
INSERT INTO items (id, stock) VALUES (1, 1);
