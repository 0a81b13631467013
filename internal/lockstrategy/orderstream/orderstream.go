// Package orderstream is the way of an admitted order from a stream in Redis to the
// database.
//
//	admitted -> stream -> Mover: a batch in one transaction -> the waiting buyers
//
// The strategy admits: it takes the units from the stock in Redis and appends the
// order to the stream in one script. The room does the rest. Invariant: the database
// has the last word. It sells under the row's lock and only what it has, and each
// order is written once: by its entry, which must come after the last one that the
// product's row has seen, and by its Idempotency-Key. A buyer hears sold when the
// record is durable.
package orderstream

import (
	_ "embed"
	"hash/fnv"
	"strconv"
	"strings"
)

// Settle is the script that removes entries that the database has decided on.
//
//go:embed settle.lua
var Settle string

// Keys are those of one strategy in Redis. The scripts take several of them at once, and
// one of these is the set of all products that have orders. On a Redis Cluster the keys of
// one script must be in one slot, which follows from what is in the first braces of a key,
// the hash tag (Redis cluster specification, "Hash tags"). So a product is in one of
// Parts, its tag is the part's number, whatever braces its own name has, and each part has a set.
type Keys struct{ Strategy string }

// Parts is how many slots the products of a strategy are spread over. No cluster can use
// more nodes for them; the worker asks for all sets at once.
const Parts = 64

// part is the number of the product's part.
func part(product string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(product)) // it cannot fail
	return int(h.Sum32() % Parts)
}

func (k Keys) key(kind string, part int) string {
	return "shop:" + kind + ":" + k.Strategy + ":{" + strconv.Itoa(part) + "}"
}

// Products is the set of the products that have orders, of those in the part of this one.
func (k Keys) Products(product string) string { return k.products(part(product)) }

func (k Keys) products(part int) string { return k.key("orders", part) }

// Stock is the number of units that can still be admitted.
func (k Keys) Stock(product string) string { return k.key("stock", part(product)) + ":" + product }

// Stream has the orders that are not in the database yet.
func (k Keys) Stream(product string) string { return k.key("orders", part(product)) + ":" + product }

// Orders is a hash of those orders: the key of the order to the id of its entry.
func (k Keys) Orders(product string) string { return k.key("keys", part(product)) + ":" + product }

// All are the keys of a product, in the order in which the scripts take them.
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
