SELECT * FROM "product" WHERE name = 'apple' LIMIT 1;
begin;
UPDATE product SET amount = 99 WHERE id = 1;
INSERT INTO "purchase_history" ("product_name","purchaser","purchase_time","amount","strategy","idempotency_key","left_after","waited_ms") VALUES ('apple','ann','2026-01-02 03:04:05.000006+00',1,'setnx-expire',NULL,99,0) RETURNING "id";
commit;
