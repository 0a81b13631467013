CREATE TABLE session (id int PRIMARY KEY, token text NOT NULL);
CREATE TABLE setting (id int PRIMARY KEY, key text NOT NULL, value text NOT NULL);
CREATE TABLE tax_rate (id int PRIMARY KEY, name text NOT NULL, value numeric NOT NULL);
CREATE TABLE translation (id int PRIMARY KEY, language text NOT NULL, text text NOT NULL);
CREATE TABLE stock_location (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE stock_level (
	id int PRIMARY KEY,
	"stockLocationId" int NOT NULL REFERENCES stock_location (id),
	a01 int, a02 int, a03 int, a04 int, a05 int, a06 int, a07 int, a08 int, a09 int, a10 int,
	a11 int, a12 int, a13 int, a14 int, a15 int, a16 int, a17 int, a18 int, a19 int, a20 int,
	a21 int, a22 int, a23 int, a24 int, a25 int, a26 int, a27 int, a28 int, a29 int, a30 int,
	"updatedAt" timestamptz NOT NULL DEFAULT now(),
	"stockOnHand" int NOT NULL,
	"stockAllocated" int NOT NULL
);
CREATE TABLE order_line (id serial PRIMARY KEY, "createdAt" timestamptz NOT NULL DEFAULT now(), quantity int NOT NULL, "stockLevelId" int NOT NULL REFERENCES stock_level (id), "buyerNote" text);
INSERT INTO session VALUES (1, 'a');
INSERT INTO setting SELECT n, 'key' || n, 'value' || n FROM generate_series(1, 40) n;
INSERT INTO tax_rate SELECT n, 'rate' || n, n FROM generate_series(1, 20) n;
INSERT INTO translation SELECT n, 'en', 'text ' || n FROM generate_series(1, 40) n;
INSERT INTO stock_location VALUES (1, 'here');
INSERT INTO stock_level (id, "stockLocationId", "stockOnHand", "stockAllocated") VALUES (5, 1, 1, 0);
