CREATE TABLE product_stock (id INT PRIMARY KEY, quantity INT NOT NULL, quantity_allocated INT NOT NULL);
CREATE TABLE order_ordereditem (id SERIAL PRIMARY KEY, stock_id INT NOT NULL, quantity INT NOT NULL);
INSERT INTO product_stock (id, quantity, quantity_allocated) VALUES (1, 1, 0);
