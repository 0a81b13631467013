SELECT * FROM "product" WHERE name = 'apple' LIMIT 1;
begin;
SELECT * FROM "product" WHERE name = 'apple' LIMIT 1 FOR UPDATE;
SELECT * FROM "purchase_history" WHERE idempotency_key IN ('redis-lua-KEY');
INSERT INTO "purchase_history" ("product_name","purchaser","purchase_time","amount","strategy","idempotency_key","left_after","waited_ms") VALUES ('apple','ann','2026-01-02 03:04:05.000006+00',1,'redis-lua','redis-lua-KEY',99,0) RETURNING "id";
UPDATE product SET amount = 99, last_entry = 'ENTRY', version = version + 1 WHERE id = 1;
commit;
