-- +goose Up
-- Names are compared byte by byte: "Apple" is not "apple".
CREATE TABLE product (
    id      BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name    VARCHAR(255) NOT NULL,
    amount  BIGINT       NOT NULL, -- units that can still be sold
    stocked BIGINT       NOT NULL, -- units ever put on sale
    version BIGINT       NOT NULL DEFAULT 0, -- raised by each write of the strategy "optimistic"
    fence   BIGINT       NOT NULL DEFAULT 0, -- highest fencing token that has written
    UNIQUE KEY product_name (name)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

-- left_after and waited_ms keep what the buyer was told, so that a repeated
-- Idempotency-Key gets the same answer again.
CREATE TABLE purchase_history (
    id              BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    product_name    VARCHAR(255) NOT NULL,
    purchaser       VARCHAR(255) NOT NULL,
    purchase_time   DATETIME(6)  NOT NULL, -- UTC
    amount          BIGINT       NOT NULL,
    strategy        VARCHAR(64)  NOT NULL,
    idempotency_key VARCHAR(255) NULL,
    left_after      BIGINT       NOT NULL,
    waited_ms       BIGINT       NOT NULL,
    UNIQUE KEY purchase_history_key (idempotency_key),
    -- Everything that the audit sums and counts, so that it reads the index and no row.
    KEY purchase_history_audit (product_name, idempotency_key, amount),
    -- Keyset paging of one product by id.
    KEY purchase_history_page (product_name, id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin;

INSERT INTO product (name, amount, stocked) VALUES ('apple', 100, 100);

-- +goose Down
DROP TABLE purchase_history;
DROP TABLE product;
