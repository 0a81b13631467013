-- +goose Up
-- Units of a product that a strategy keeps in rows of their own, so that several buyers
-- can each lock another one. The stock is product.amount and the sum of these.
CREATE TABLE product_part (
    product_name VARCHAR(255) COLLATE "C" NOT NULL,
    part         BIGINT       NOT NULL,
    amount       BIGINT       NOT NULL, -- units that can still be sold
    PRIMARY KEY (product_name, part)
);

-- +goose Down
UPDATE product SET amount = amount + (SELECT COALESCE(SUM(amount), 0) FROM product_part WHERE product_name = product.name);
DROP TABLE product_part;
