// Package kata is the library for a learner's code: the contract of a sale, the answers that a buyer may get,
// and the Kit. A Kit has the servers and settings of one process.
//
//	func New(kit kata.Kit) kata.Strategy { return &shop{kit} }
//
// It is a thin layer over this project's own packages, so an exercise uses the same code that the shop runs
// on. Package exercises/judge tests the learner's code.
//
// Buyers of one process share the fields of the value that New returns. The judge rejects package variables:
// its shops run in one process and would share them, but real shops would not.
package kata

import (
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// These types are the contract of a sale.
type (
	// A Strategy sells Order.Amount units of Order.Product to one buyer, or returns the reason for
	// a refusal. Many goroutines and other processes call Buy at the same time.
	Strategy = purchase.Strategy
	Order    = purchase.Order
	Receipt  = purchase.Receipt
	// A Product is the row of one product, as read from the database.
	Product = product.Product
	// A Record is the row of one sale.
	Record = purchase.Record
)

// Errors of Buy, wrapped or not. Except after ErrUnknownOutcome, nothing was sold and the stock is
// unchanged. Any other error is a failure of the shop.
var (
	ErrSoldOut        = purchase.ErrSoldOut
	ErrBusy           = purchase.ErrBusy     // the wait has ended
	ErrLockLost       = purchase.ErrLockLost // the loss was noticed before the write
	ErrUnknownOutcome = purchase.ErrUnknownOutcome
	ErrNoProduct      = purchase.ErrNoProduct
)

// A Basket is a Strategy that can also sell several orders of one buyer at once: all of them or none.
type Basket interface {
	Strategy
	BuyAll(ctx Context, orders []Order) ([]Receipt, error)
}

// Scripted is a Strategy with Lua scripts of its own. The explorer runs a script only if it knows the
// script's effect.
type Scripted interface {
	Scripts() []Script
}

// A Script describes one script. SHA is SHA(source). Refused lists the answers that mean that the
// script changed nothing.
type Script = redisscript.Description

// The purpose of a script.
const (
	Acquire = redisscript.Acquire
	Renew   = redisscript.Renew
	Release = redisscript.Release
	Inspect = redisscript.Inspect
	Change  = redisscript.Change
)

// SHA returns Redis's name for a script.
func SHA(source string) string { return redisscript.SHA(source) }
