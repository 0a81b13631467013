-- +goose Up
-- The last entry of the Redis stream of "redis-lua" that the database has decided on.
ALTER TABLE product ADD COLUMN last_entry VARCHAR(41) NOT NULL DEFAULT '0-0';

-- +goose Down
ALTER TABLE product DROP COLUMN last_entry;
