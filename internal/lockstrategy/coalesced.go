package lockstrategy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/waiting"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

const coalesced = "coalesced"

// Coalesced sells to all waiting buyers in one transaction.
//
//   - Summary: buyers that wait at the same time share one transaction: one stock update, k records, one commit
//   - Guarantees: A group of waiting buyers locks the row and buys in order of arrival until the stock is
//     used up. Each buyer is answered after the group's COMMIT. If a buyer leaves or the database refuses
//     one order, the strategy still sells the other orders of the group.
//   - Breaks when: never, with a single primary
//   - How it breaks: If the answer to a COMMIT is lost, all buyers of the group get the answer `unknown`.
//   - Cost: A group takes five round trips, whatever its size. A buyer first waits for the group ahead of
//     it. If the database refuses an order, the strategy halves the group until that order is alone. Each
//     halving costs about two more transactions.
//   - Source: Hendler, Incze, Shavit, Tzafrir, "Flat Combining and the Synchronization-Parallelism Tradeoff",
//     SPAA 2010 (the lock holder serves all waiters). MySQL 8.0 Reference Manual, 19.1.6.4, "Binary Logging
//     Options and Variables" (group commit: a leader flushes for its followers). Alibaba Cloud, "Inventory Hint"
//     and "Statement Queue" of AliSQL, and "Hot row groups" of PolarDB (the same for one row, inside the server)
//   - Notes: The group starts again on PostgreSQL above READ COMMITTED, and where a Galera cluster refuses a
//     COMMIT (1213). SQLite has no row locks. There the strategy uses BEGIN IMMEDIATE, the write lock of the
//     whole file.
type Coalesced struct {
	deps    Deps
	retrier waiting.Retrier
	groups  *waiting.Groups
}

// NewCoalesced returns the strategy. It needs only the database.
func NewCoalesced(d Deps) *Coalesced {
	s := &Coalesced{deps: d, retrier: waiting.NewRetrier(d, waiting.AnyRounds)}
	s.groups = waiting.NewGroups(d.Now, s.serve)
	return s
}

// Buy implements purchase.Strategy.
func (s *Coalesced) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	if err := o.Check(); err != nil { // otherwise an invalid amount would enter the group's sum
		return purchase.Receipt{}, err
	}
	if o.IdempotencyKey == "" && s.deps.Certifies { // purchase.ReadIDs finds a sale by its key
		o.IdempotencyKey = deps.NewKey(coalesced)
	}
	ctx, start, cancel := s.deps.WithWait(ctx)
	defer cancel()
	m := s.groups.Join(ctx, o, start)
	s.deps.Report(ctx, deps.Event{Kind: deps.Waiting, Strategy: coalesced, Product: o.Product, Purchaser: o.Purchaser})
	receipt, err := s.groups.Await(m)
	if err != nil {
		return purchase.Receipt{}, fmt.Errorf("%s: %w", coalesced, err)
	}
	return receipt, nil
}

var (
	errLeft = errors.New("a buyer of the group has left before its COMMIT")
	errNone = errors.New("no buyer is left to sell to")
)

// serve answers each buyer of a group.
func (s *Coalesced) serve(g *waiting.Group) {
	var d division
	err := s.retrier.RetryWithin(g.Ctx, g.Product, func(ctx context.Context) (err error) {
		for err = errLeft; errors.Is(err, errLeft); {
			d, err = s.sell(ctx, g)
		}
		return err
	})
	var down *purchase.Unavailable
	switch {
	case err == nil, errors.Is(err, errNone):
		d.answer()
	case errors.Is(err, purchase.ErrUnknownOutcome):
		for _, m := range d.buyers {
			m.Answer(purchase.Receipt{}, err)
		}
		if len(d.refused) > 0 { // their orders were not in the COMMIT with the unknown outcome, so they may still buy
			s.serve(g.Apart(d.refused))
		}
	case g.Ctx.Err() != nil: // every buyer has left
	case !g.Gathered(), errors.As(err, &down):
		for _, m := range g.Gather() {
			m.Answer(purchase.Receipt{}, err)
		}
	default:
		s.refused(g, err)
	}
}

// refused finds the order that the database refuses: it halves the group until that order is alone. It
// answers the order's buyer with the error, and serves the others.
func (s *Coalesced) refused(g *waiting.Group, err error) {
	members := g.Gather()
	switch half := len(members) / 2; {
	case half > 0:
		s.serve(g.Apart(members[:half]))
		s.serve(g.Apart(members[half:]))
	case len(members) == 1:
		members[0].Answer(purchase.Receipt{}, err)
	}
}

// sell locks the row, gathers the buyers that have arrived until then, and sells to them in one transaction.
func (s *Coalesced) sell(ctx context.Context, g *waiting.Group) (d division, _ error) {
	err := purchase.InLockingTx(ctx, s.deps.DB, func(tx *gorm.DB) error {
		p, err := product.ForUpdate(tx, g.Product)
		if err != nil {
			return purchase.DatabaseError(ctx, "read the stock for update", err)
		}
		d = divide(p.Amount, g.Gather(), s.deps.Now())
		if len(d.buyers) == 0 {
			return errNone
		}
		took, err := product.TakeIfLeft(tx, g.Product, p.Amount-d.left)
		if err != nil {
			return purchase.DatabaseError(ctx, "take the units", err)
		}
		if !took {
			return fmt.Errorf("%d of %q were gone under the row's lock", p.Amount, g.Product)
		}
		if err := s.deps.InsertAll(ctx, tx, d.keys, d.receipts); err != nil {
			return err
		}
		if !g.Bind() {
			return errLeft
		}
		return nil
	})
	if err != nil && !errors.Is(err, purchase.ErrUnknownOutcome) {
		g.Unbind()
	}
	return d, err
}

// A division says which buyers of a group can buy.
type division struct {
	buyers   []*waiting.Member
	receipts []*purchase.Receipt // one per buyer
	keys     []string            // one per buyer
	refused  []*waiting.Member
	left     int64 // units that remain
}

// divide assigns the units to the buyers in order of arrival.
func divide(stock int64, members []*waiting.Member, now time.Time) division {
	d := division{left: stock}
	for _, m := range members {
		o := m.Order
		if o.Amount > d.left {
			d.refused = append(d.refused, m)
			continue
		}
		d.left -= o.Amount
		d.buyers = append(d.buyers, m)
		receipt := purchase.NewReceipt(o, coalesced, d.left, now.Sub(m.Since))
		d.receipts, d.keys = append(d.receipts, &receipt), append(d.keys, o.IdempotencyKey)
	}
	return d
}

// answer sends each buyer its receipt or ErrSoldOut. It is called after the COMMIT, which makes
// both answers final.
func (d division) answer() {
	for i, m := range d.buyers {
		m.Answer(*d.receipts[i], nil)
	}
	for _, m := range d.refused {
		m.Answer(purchase.Receipt{}, fmt.Errorf("%w: %d left", purchase.ErrSoldOut, d.left))
	}
}

func coalescedEntry() Entry {
	return Entry{
		Name: coalesced, Family: throughput,
		New: func(d Deps) purchase.Strategy { return NewCoalesced(d) },
		Traits: Traits{
			WaitsFor: WaitWorker, InGroups: true, MaxBuyers: waiting.MaxGroup,
		},
	}.holds()
}
