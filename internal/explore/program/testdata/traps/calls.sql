CREATE TABLE items (id INT PRIMARY KEY, stock INT NOT NULL);
CREATE TABLE orders (id SERIAL PRIMARY KEY, item_id INT NOT NULL, buyer CHAR(36) NOT NULL);
INSERT INTO items (id, stock) VALUES (1, 1);
DELIMITER //
CREATE PROCEDURE buy(who CHAR(36))
BEGIN
  DECLARE left_over INT;
  SELECT stock INTO left_over FROM items WHERE id = 1;
  IF left_over > 0 THEN
    UPDATE items SET stock = left_over - 1 WHERE id = 1;
    INSERT INTO orders (item_id, buyer) VALUES (1, who);
  END IF;
  SELECT left_over;
END //
DELIMITER ;
