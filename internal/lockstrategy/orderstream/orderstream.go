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
	"strconv"
	"strings"
)

// Settle is the script that removes entries that the database has decided on.
//
//go:embed settle.lua
var Settle string

// Keys are those of one strategy in Redis.
type Keys struct{ Strategy string }

// Products is the set of the products that have orders.
func (k Keys) Products() string { return "shop:orders:" + k.Strategy }

// Stock is the number of units that can still be admitted.
func (k Keys) Stock(product string) string { return "shop:stock:" + k.Strategy + ":{" + product + "}" }

// Stream has the orders that are not in the database yet.
func (k Keys) Stream(product string) string {
	return "shop:orders:" + k.Strategy + ":{" + product + "}"
}

// Orders is a hash of those orders: the key of the order to the id of its entry.
func (k Keys) Orders(product string) string { return "shop:keys:" + k.Strategy + ":{" + product + "}" }

// All are the keys of a product, in the order in which the scripts take them.
func (k Keys) All(product string) []string {
	return []string{k.Stock(product), k.Stream(product), k.Products(), k.Orders(product)}
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
