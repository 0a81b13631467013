CREATE TABLE items (id INT PRIMARY KEY, stock INT NOT NULL);
CREATE TABLE prices (item_id INT PRIMARY KEY, price INT NOT NULL);
CREATE TABLE orders (id SERIAL PRIMARY KEY, item_id INT NOT NULL, buyer CHAR(36) NOT NULL);
INSERT INTO items (id, stock) VALUES (1, 1);
INSERT INTO prices (item_id, price) VALUES (1, 5);
