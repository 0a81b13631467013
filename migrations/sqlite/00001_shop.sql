-- +goose Up
CREATE TABLE product (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    name    TEXT    NOT NULL UNIQUE,
    amount  INTEGER NOT NULL, -- units that can still be sold
    stocked INTEGER NOT NULL, -- units ever put on sale
    version INTEGER NOT NULL DEFAULT 0, -- raised by each write of the strategy "optimistic"
    fence   INTEGER NOT NULL DEFAULT 0  -- highest fencing token that has written
);

-- left_after and waited_ms keep what the buyer was told, so that a repeated
-- Idempotency-Key gets the same answer again.
CREATE TABLE purchase_history (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    product_name    TEXT     NOT NULL,
    purchaser       TEXT     NOT NULL,
    purchase_time   DATETIME NOT NULL, -- UTC
    amount          INTEGER  NOT NULL,
    strategy        TEXT     NOT NULL,
    idempotency_key TEXT     NULL UNIQUE,
    left_after      INTEGER  NOT NULL,
    waited_ms       INTEGER  NOT NULL
);

-- Everything that the audit sums and counts, so that it reads the index and no row.
CREATE INDEX purchase_history_audit ON purchase_history (product_name, idempotency_key, amount);
-- Keyset paging of one product by id.
CREATE INDEX purchase_history_page ON purchase_history (product_name, id);

INSERT INTO product (name, amount, stocked) VALUES ('apple', 100, 100);

-- +goose Down
DROP TABLE purchase_history;
DROP TABLE product;
