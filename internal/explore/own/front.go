package own

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/nearest"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// A Front is a part of the shop in front of the strategy: the sold-out check or the admission
// control. "" is none.
type Front string

// The fronts.
const (
	SoldOutCheck Front = "sold-out-check" // after an earlier refusal, so each buyer waits for a read of the stock
	FailingRead  Front = "failing-read"   // the sold-out check, when each of its reads fails
	Admission    Front = "admission"      // the admission control, with room for one buyer
)

// Fronts returns all fronts.
func Fronts() []Front { return []Front{SoldOutCheck, FailingRead, Admission} }

// Check returns an error if the front is unknown, or does not work with the buyers' processes. shared
// reports whether all buyers are in one process.
func (f Front) Check(shared bool) error {
	switch {
	case f == Admission && !shared:
		return fmt.Errorf("%s counts the buyers of one process; add --instances shared", Admission)
	case f != "" && !slices.Contains(Fronts(), f):
		return nearest.Unknown("check", string(f), Fronts(), "")
	}
	return nil
}

// admissions is the number of admissions that a buyer passes. Two buyers then take more places than
// an admission has while it does not know the pace of sales.
const admissions = 20

// checked returns s behind a sold-out check that has seen a refusal, if the front has such a check.
// left reads the stock.
func (f Front) checked(s purchase.Strategy, product string, left purchase.Left) purchase.Strategy {
	if f != SoldOutCheck && f != FailingRead {
		return s
	}
	c := purchase.NewSoldOutCheck(f.failing(left), time.Hour)
	_, _ = c.Before(refusing{}).Buy(context.Background(), purchase.Order{Product: product, Amount: 1}) // the check reads the stock from now on
	return c.Before(s)
}

// admitted returns s behind the admission control, if the front is Admission. name is that of s.
func (f Front) admitted(s purchase.Strategy, name string) purchase.Strategy {
	if f == Admission {
		a := purchase.NewAdmission(time.Nanosecond)
		for range admissions {
			s = a.Before(name, s)
		}
	}
	return s
}

var errReadFails = errors.New("explore: the read of the stock fails")

// failing returns a read that always fails, if the front is FailingRead, and else left.
func (f Front) failing(left purchase.Left) purchase.Left {
	if f != FailingRead {
		return left
	}
	return func(ctx context.Context, name string) (int64, error) {
		_, err := left(ctx, name)
		return 0, errors.Join(err, errReadFails)
	}
}

// left returns the sold-out check's read of the stock, on connections that the explorer gates.
func (s Spec) left(db *gorm.DB) purchase.Left {
	return func(ctx context.Context, name string) (int64, error) {
		if of := s.Strategy.Left; of != nil {
			return of(db.WithContext(ctx), name)
		}
		p, err := product.ByName(db.WithContext(ctx), name)
		return p.Amount, err
	}
}

// refusing is a strategy that refuses every buyer as sold out.
type refusing struct{}

// Buy implements purchase.Strategy.
func (refusing) Buy(context.Context, purchase.Order) (purchase.Receipt, error) {
	return purchase.Receipt{}, purchase.ErrSoldOut
}
