package own

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/nearest"
	"github.com/oversell/oversell/internal/purchase"
)

// A Front is a part of the shop through which a purchase passes before the strategy. "" means that there is none.
type Front string

// The fronts.
const (
	SoldOutCheck Front = "sold-out-check" // the sold-out check after one refusal: each later buyer first waits for a read of the stock
	FailingRead  Front = "failing-read"   // the same, but every read of the stock fails
	Admission    Front = "admission"      // the admission control; here it has room for one buyer at a time
)

// Fronts returns all fronts.
func Fronts() []Front { return []Front{SoldOutCheck, FailingRead, Admission} }

// Check returns an error if the front is unknown. It also refuses the admission control unless `shared` is true,
// because that control needs all buyers in one process.
func (f Front) Check(shared bool) error {
	switch {
	case f == Admission && !shared:
		return fmt.Errorf("%s counts the buyers of one process; add --instances shared", Admission)
	case f != "" && !slices.Contains(Fronts(), f):
		return nearest.Unknown("check", string(f), Fronts(), "")
	}
	return nil
}

// before wraps a strategy, so that each purchase passes through the Spec's front first. The front uses db.
func (x *Runner) before(db *gorm.DB, s purchase.Strategy) purchase.Strategy {
	front, e := purchase.Front{Orders: db}, x.spec.Strategy
	switch x.spec.Front {
	case SoldOutCheck, FailingRead:
		front.SoldOut = x.newCheck(db)
	case Admission:
		front.Admission = purchase.NewAdmission(time.Nanosecond)
	}
	s = front.Before(e.Name, e.Left, s)
	if front.Admission != nil {
		for range admissions {
			s = front.Admission.Before(e.Name, s)
		}
	}
	return s
}

// admissions is how many additional places in the admission control each buyer takes. Two buyers then need more places
// than the control has, so it refuses a buyer while the other is inside.
const admissions = 19

// newCheck returns a function that makes sold-out checks. Each new check is first shown one refusal, so it reads the
// stock for every buyer.
func (x *Runner) newCheck(db *gorm.DB) func(purchase.OfStock) *purchase.SoldOutCheck {
	return func(left purchase.OfStock) *purchase.SoldOutCheck {
		c := purchase.NewSoldOutCheck(stockRead{db, left, x.spec.Front == FailingRead}.left, schedule.Forever)
		_, _ = c.Before(refusing{}).Buy(context.Background(), purchase.Order{Product: x.spec.Product, Amount: 1})
		return c
	}
}

// A stockRead is how a sold-out check reads the stock: on connections with a gate, so each read is a step of the
// schedule.
type stockRead struct {
	db    *gorm.DB
	of    purchase.OfStock
	fails bool
}

var errReadFails = errors.New("explore: the read of the stock fails")

// left runs in a goroutine of its own. Package standstill finds this goroutine by the name of this method.
func (r stockRead) left(ctx context.Context, name string) (int64, error) {
	units, err := r.of(r.db.WithContext(ctx), name)
	if r.fails {
		return 0, errors.Join(err, errReadFails)
	}
	return units, err
}

type refusing struct{}

// Buy implements purchase.Strategy.
func (refusing) Buy(context.Context, purchase.Order) (purchase.Receipt, error) {
	return purchase.Receipt{}, purchase.ErrSoldOut
}
