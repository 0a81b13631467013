SELECT * FROM `product` WHERE name = 'apple' LIMIT 1;
START TRANSACTION;
SELECT * FROM `product` WHERE name = 'apple' LIMIT 1 FOR UPDATE;
SELECT * FROM `purchase_history` WHERE idempotency_key IN ('redis-lua-4rrx6lbj3pquqs2nzeyimr2n6b');
INSERT INTO `purchase_history` (`product_name`,`purchaser`,`purchase_time`,`amount`,`strategy`,`idempotency_key`,`left_after`,`waited_ms`) VALUES ('apple','ann','2026-01-02 03:04:05.000006',1,'redis-lua','redis-lua-4rrx6lbj3pquqs2nzeyimr2n6b',99,0);
UPDATE product SET amount = 99, last_entry = '1795249013006-0' WHERE id = 1;
COMMIT;
