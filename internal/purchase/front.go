package purchase

import (
	"slices"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
)

// A Front holds the layers that a buyer passes before a strategy. The shop and the explorer (the search of
// buyers' interleavings) use the same Front, so the explorer also tests the order of the layers.
type Front struct {
	Admission  *Admission                    // shared by all strategies; nil: every buyer is let in
	Orders     *gorm.DB                      // database with the sales under an Idempotency-Key, for NewIdempotent
	SoldOut    func(OfStock) *SoldOutCheck   // makes a sold-out check; nil: no check
	Failpoints func(inner Strategy) Strategy // stops a buyer where a fault is injected; nil: never

	shared *SoldOutCheck // the check of all strategies that sell from product.amount
}

// OfStock reads, without a lock, how many units of a product can still be sold.
type OfStock = func(db *gorm.DB, product string) (units int64, _ error)

func amount(db *gorm.DB, name string) (int64, error) {
	p, err := product.ByName(db, name)
	return p.Amount, err
}

// Before puts the layers before a strategy. The function `left` reads that strategy's stock; nil means the
// column product.amount. Only one goroutine may call Before at a time.
func (f *Front) Before(name string, left OfStock, s Strategy) Strategy {
	for _, l := range slices.Backward(f.layers(name, left)) {
		if l.used {
			s = l.before(s)
		}
	}
	return s
}

type layer struct {
	used   bool
	before func(Strategy) Strategy
}

// layers returns the layers before a strategy, in the order in which a buyer passes them.
func (f *Front) layers(name string, left OfStock) []layer {
	return []layer{
		// answers "busy" at once if the buyer could not be served in time
		{f.Admission != nil, func(inner Strategy) Strategy { return f.Admission.Before(name, inner) }},
		// repeats the answer to an order that it has already answered
		{true, func(inner Strategy) Strategy { return NewIdempotent(inner, f.Orders) }},
		// answers "sold out" without a lock
		{f.SoldOut != nil, func(inner Strategy) Strategy { return f.check(left).Before(inner) }},
		{f.Failpoints != nil, f.Failpoints},
	}
}

// check returns the sold-out check of a strategy: the shared one, or its own if it has its own function `left`.
func (f *Front) check(left OfStock) *SoldOutCheck {
	if left != nil {
		return f.SoldOut(left)
	}
	if f.shared == nil {
		f.shared = f.SoldOut(amount)
	}
	return f.shared
}
