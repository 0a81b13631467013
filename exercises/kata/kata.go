// Package kata is what a learner's code is written with: the contract of a sale, the
// answers that a buyer may get, and the kit of one process.
//
//	func New(kit kata.Kit) kata.Strategy { return &shop{kit} }
//
// It is a thin face of this project's own rooms, so that what is judged in an exercise is
// what the shop runs on. It judges nothing: that is exercises/judge.
//
// What buyers of one process share are fields of what New returns. A variable of the package is
// refused: the judge's processes of the shop would share it, and real ones do not.
package kata

import (
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// The contract of a sale.
type (
	// A Strategy sells Order.Amount units of Order.Product to one buyer, or says why it
	// did not. Many goroutines call Buy at once, and so do other processes.
	Strategy = purchase.Strategy
	Order    = purchase.Order
	Receipt  = purchase.Receipt
	// A Product is the row of one product, as it was read.
	Product = product.Product
	// A Record is the row of one sale.
	Record = purchase.Record
)

// What Buy returns, wrapped or not. On each but ErrUnknownOutcome nothing was sold and the
// stock is as it was. Any other error is a failure of the shop.
var (
	ErrSoldOut        = purchase.ErrSoldOut
	ErrBusy           = purchase.ErrBusy     // gave up waiting
	ErrLockLost       = purchase.ErrLockLost // noticed before the write
	ErrUnknownOutcome = purchase.ErrUnknownOutcome
	ErrNoProduct      = purchase.ErrNoProduct
)

// A Basket is a Strategy that also sells several orders of one buyer at once: all of them
// or none.
type Basket interface {
	Strategy
	BuyAll(ctx Context, orders []Order) ([]Receipt, error)
}

// Scripted is a Strategy that sends Lua scripts of its own. The explorer must know what a
// script does before it lets it go.
type Scripted interface {
	Scripts() []Script
}

// A Script says what one script does. SHA is SHA(source); Refused are the answers by which
// it says that it changed nothing.
type Script = redisscript.Description

// What a script is for.
const (
	Acquire = redisscript.Acquire
	Renew   = redisscript.Renew
	Release = redisscript.Release
	Inspect = redisscript.Inspect
	Change  = redisscript.Change
)

// SHA is the name that Redis gives a script.
func SHA(source string) string { return redisscript.SHA(source) }
