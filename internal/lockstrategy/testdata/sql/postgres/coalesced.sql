begin;
SELECT * FROM "product" WHERE name = 'apple' LIMIT 1 FOR UPDATE;
UPDATE product SET amount = amount - 1 WHERE name = 'apple' AND amount >= 1;
INSERT INTO "purchase_history" ("product_name","purchaser","purchase_time","amount","strategy","idempotency_key","left_after","waited_ms") VALUES ('apple','ann','2026-01-02 03:04:05.000006+00',1,'coalesced',NULL,99,0) RETURNING "id";
commit;
