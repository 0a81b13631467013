SELECT * FROM "product" WHERE name = 'apple' LIMIT 1;
begin;
INSERT INTO "purchase_history" ("product_name","purchaser","purchase_time","amount","strategy","idempotency_key","left_after","waited_ms") VALUES ('apple','ann','2026-01-02 03:04:05.000006+00',1,'redis-get-set',NULL,99,0) RETURNING "id";
UPDATE product SET amount = amount - 1 WHERE name = 'apple';
commit;
