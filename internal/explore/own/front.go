package own

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// A Front is what a shop puts before a strategy; "" is nothing.
type Front string

// The fronts.
const (
	SoldOutCheck Front = "sold-out-check" // a product was refused before, so each buyer waits for a read of the stock
	FailingRead  Front = "failing-read"   // the same, and each of those reads fails
	Admission    Front = "admission"      // there is room for one buyer
)

// Fronts lists all of them.
func Fronts() []Front { return []Front{SoldOutCheck, FailingRead, Admission} }

// Check says what is wrong with the front, or nil. shared is whether all buyers are in one process.
func (f Front) Check(shared bool) error {
	switch {
	case f == Admission && !shared:
		return fmt.Errorf("%s counts the buyers of one process; give --instances shared", Admission)
	case f != "" && !slices.Contains(Fronts(), f):
		var names []string
		for _, known := range Fronts() {
			names = append(names, string(known))
		}
		return fmt.Errorf("%q is not known; there are %s", f, strings.Join(names, ", "))
	}
	return nil
}

// admissions is how often a buyer passes the admission: two buyers take more places than an
// admission has whose pace is not known.
const admissions = 20

// checked puts a check that has heard of a refusal before a strategy, where the front is one.
func (x *Runner) checked(s purchase.Strategy, db *gorm.DB) purchase.Strategy {
	if x.spec.Front != SoldOutCheck && x.spec.Front != FailingRead {
		return s
	}
	c := purchase.NewSoldOutCheck(x.left(db), time.Hour)
	_, _ = c.Before(refusing{}).Buy(context.Background(), purchase.Order{Product: x.spec.Product, Amount: 1}) // it asks from now on
	return c.Before(s)
}

// admitted puts an admission before a strategy, where the front is one.
func (x *Runner) admitted(s purchase.Strategy) purchase.Strategy {
	if x.spec.Front == Admission {
		a := purchase.NewAdmission(time.Nanosecond)
		for range admissions {
			s = a.Before(x.spec.Strategy.Name, s)
		}
	}
	return s
}

var errReadFails = errors.New("explore: the read of the stock fails")

// left reads the stock on the connections that the explorer holds up.
func (x *Runner) left(db *gorm.DB) purchase.Left {
	return func(ctx context.Context, name string) (units int64, err error) {
		if of := x.spec.Strategy.Left; of != nil {
			units, err = of(db.WithContext(ctx), name)
		} else {
			var p product.Product
			p, err = product.ByName(db.WithContext(ctx), name)
			units = p.Amount
		}
		if x.spec.Front == FailingRead {
			return 0, errors.Join(err, errReadFails)
		}
		return units, err
	}
}

// refusing is sold out.
type refusing struct{}

// Buy is purchase.Strategy.Buy.
func (refusing) Buy(context.Context, purchase.Order) (purchase.Receipt, error) {
	return purchase.Receipt{}, purchase.ErrSoldOut
}
