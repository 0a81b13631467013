package judge

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/explore/standstill"
	"github.com/oversell/oversell/internal/lockstrategy/onengine"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// rounds is how often the drill of the queue runs, since a wrong queue may serve in the right order by chance.
const rounds = 3

// A drill is a test that stops one buyer before its first SQL statement while other buyers come.
type drill struct {
	s       *subject
	held    chan struct{} // closed when the first buyer is stopped
	let     chan struct{} // closed to let the first buyer continue
	once    sync.Once
	asked   chan int // receives the number of each buyer that must wait
	mu      sync.Mutex
	waiting map[int]bool
}

type buyerKey struct{}

func newDrill(s *subject) *drill {
	return &drill{s: s, held: make(chan struct{}), let: make(chan struct{}), asked: make(chan int, 100), waiting: map[int]bool{}}
}

func (d *drill) hold(context.Context) {
	first := false
	d.once.Do(func() { first = true; close(d.held) })
	if first {
		<-d.let
	}
}

// pause replaces the kit's Sleep, with which the learner's code waits. It reports each waiting buyer once.
func (d *drill) pause(ctx context.Context, nap time.Duration) {
	n, _ := ctx.Value(buyerKey{}).(int)
	d.mu.Lock()
	news := !d.waiting[n]
	d.waiting[n] = true
	d.mu.Unlock()
	if news {
		d.asked <- n
	}
	select {
	case <-time.After(nap):
	case <-ctx.Done():
	}
}

type sale struct {
	buyer   int
	receipt kata.Receipt
	err     error
}

// buy runs one buyer in a goroutine. Package standstill, which detects that all buyers wait, finds this
// goroutine by the name of the method.
func (d *drill) buy(ctx context.Context, buy func(context.Context, kata.Order) (kata.Receipt, error), n int, done chan<- sale) {
	o := kata.Order{Product: first, Purchaser: fmt.Sprintf("buyer-%d", n), Amount: 1}
	r, err := buy(context.WithValue(ctx, buyerKey{}, n), o)
	done <- sale{n, r, err}
}

// play stops the first buyer until all others have come, one after the other. It returns the results of all
// buyers.
func (d *drill) play(ctx context.Context, buyers int, seller *seller, arrived func(n int)) ([]sale, error) {
	done := make(chan sale, buyers)
	go d.buy(ctx, seller.Buy, 1, done)
	select {
	case <-d.held:
	case <-time.After(aloneWithin):
		return nil, wrongf("buyer 1, alone, sends nothing to the database%s", d.s.standing())
	}
	for n := 2; n <= buyers; n++ {
		go d.buy(ctx, seller.Buy, n, done)
		arrived(n)
	}
	close(d.let)
	var all []sale
	for range buyers {
		select {
		case s := <-done:
			if s.err != nil {
				return nil, fmt.Errorf("buyer %d of %d: %w", s.buyer, buyers, s.err)
			}
			all = append(all, s)
		case <-time.After(aloneWithin):
			return nil, wrongf("%d of %d buyers at once do not come back%s", buyers-len(all), buyers, d.s.standing())
		}
	}
	return all, nil
}

// on runs a drill on new servers.
func (d *drill) on(ctx context.Context, buyers int, arrived func(n int), inner func(*seller)) (all []sale, begun int64, err error) {
	t := &traffic{}
	e, err := d.s.open(ctx, t)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := product.Put(e.Admin, first, int64(buyers)); err != nil {
		return nil, 0, err
	}
	deps := onengine.Deps(e)
	deps.Settings, deps.Pause = d.s.settings, d.pause
	deps.Settings.Wait = 2 * aloneWithin // in a drill no buyer gives up
	seller := d.s.seller(deps, "")
	inner(seller)
	t.hold = d.hold
	all, err = d.play(ctx, buyers, seller, arrived)
	if outcome := purchase.OutcomeOf(err); err != nil && (outcome != purchase.Failed || errors.Is(err, purchase.ErrBusy)) {
		err = wrongf("there was a unit for each, and one was answered %s: %v", outcome, err)
	}
	return all, t.begun.Load(), errors.Join(err, seller.Close())
}

// inLine is the number of buyers in the drill of the queue.
const inLine = 5

// line checks, by the ids of the records, that buyers are served in order of arrival.
func (s *subject) line(ctx context.Context) (c Check, _ error) {
	for range rounds {
		d := newDrill(s)
		all, _, err := d.on(ctx, inLine, func(n int) {
			for late := time.After(patience); ; {
				select {
				case who := <-d.asked:
					if who == n {
						return
					}
				case <-late: // the buyer waits without the kit's Sleep, so the drill cannot notice that it waits
					return
				}
			}
		}, func(*seller) {})
		if err != nil {
			return c, err
		}
		byID := map[int64]int{}
		for _, sale := range all {
			byID[sale.receipt.ID] = sale.buyer
		}
		last, before := int64(0), 0
		for id := range int64(10_000) {
			n, sold := byID[id]
			if !sold {
				continue
			}
			if n < before {
				return c, wrongf("buyer %d stood in line before buyer %d and was served after it: record %d is buyer %d's, record %d buyer %d's", n, before, last, before, id, n)
			}
			last, before = id, n
		}
	}
	return Check{Verdict: Passed, Why: fmt.Sprintf("%d buyers, one after the other, %d times", inLine, rounds)}, nil
}

// inGroup is the number of buyers that come during the first transaction.
const inGroup = 10

func (s *subject) group(ctx context.Context) (Check, error) {
	d := newDrill(s)
	var rest *standstill.Goroutines
	_, begun, err := d.on(ctx, inGroup, func(n int) {
		if n < inGroup {
			return
		}
		for deadline := time.Now().Add(patience); !rest.AtRest() && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
	}, func(seller *seller) { rest = standstill.NewGoroutines(seller.inner, (*drill).buy) })
	if err != nil {
		return Check{}, err
	}
	switch most := int64(s.exercise.Group); {
	case begun == 0:
		return Check{}, wrongf("%d buyers were sold to, and nothing was written", inGroup)
	case begun > most:
		return Check{}, wrongf("%d buyers took %d transactions, although %d of them came during the first one; maximum %d (a write outside a transaction counts as one)", inGroup, begun, inGroup-1, most)
	}
	return Check{Verdict: Passed, Why: fmt.Sprintf("%d buyers, %d transactions", inGroup, begun)}, nil
}
