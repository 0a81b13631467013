// Package orderstream moves admitted orders from a stream in Redis to the database.
//
//	admitted -> stream -> Mover: a batch in one transaction -> the waiting buyers
//
// The strategy admits an order: one script takes the units from the stock in Redis and appends the
// order to the stream. This package does the rest.
//
// Invariant: the database decides. It sells under the lock of the row, and never more than the stock. Each
// order is written once: its entry must come after the last entry recorded in the product's row, and its
// Idempotency-Key is unique. A buyer gets the answer "sold" when the record is on the disk.
package orderstream

import (
	_ "embed"
	"hash/fnv"
	"strconv"
	"strings"
)

// Settle is the Lua script that removes from the stream the entries that the database has decided on.
//
//go:embed settle.lua
var Settle string

// Keys are the keys of one strategy in Redis. A script takes several keys. One of them is the set of all
// products that have orders. On a Redis Cluster, all keys of a script must be in one slot. The part of a key in
// its first braces, its hash tag, determines the slot (Redis cluster specification, "Hash tags"). So the
// products are divided into 64 groups (the constant Parts), and each group has its own set. A product's tag is
// the number of its group, even if the product's name contains braces.
type Keys struct{ Strategy string }

// Parts is the number of slots over which the products of a strategy are spread. It also limits how
// many nodes store them. With more parts, the worker would have to read more sets.
const Parts = 64

func part(product string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(product)) // it cannot fail
	return int(h.Sum32() % Parts)
}

func (k Keys) key(kind string, part int) string {
	return "shop:" + kind + ":" + k.Strategy + ":{" + strconv.Itoa(part) + "}"
}

// Products is the key of the set of products that have orders, within this product's group.
func (k Keys) Products(product string) string { return k.products(part(product)) }

func (k Keys) products(part int) string { return k.key("orders", part) }

// Stock is the key of the number of units that can still be admitted.
func (k Keys) Stock(product string) string { return k.key("stock", part(product)) + ":" + product }

// Stream is the key of the orders that are not in the database yet.
func (k Keys) Stream(product string) string { return k.key("orders", part(product)) + ":" + product }

// Orders is the key of a hash that maps the Idempotency-Key of each order in the stream to the id of its entry.
func (k Keys) Orders(product string) string { return k.key("keys", part(product)) + ":" + product }

// All returns the keys of a product in the order in which the scripts take them.
func (k Keys) All(product string) []string {
	return []string{k.Stock(product), k.Stream(product), k.Products(product), k.Orders(product)}
}

// entryID is the id of a stream's entry: milliseconds and a number.
type entryID [2]uint64

func parseEntryID(text string) (id entryID, err error) {
	ms, seq, found := strings.Cut(text, "-")
	id[0], err = strconv.ParseUint(ms, 10, 64)
	if err == nil && found {
		id[1], err = strconv.ParseUint(seq, 10, 64)
	}
	return id, err
}

func (id entryID) after(other entryID) bool {
	return id[0] > other[0] || id[0] == other[0] && id[1] > other[1]
}
