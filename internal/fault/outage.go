package fault

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

const (
	// enough is the number of sales that must be acknowledged before an outage. With fewer, a lost
	// sale might go unnoticed.
	enough = 20
	// loaders is the number of buyers that buy repeatedly, so that some are under way when the outage begins.
	loaders = 8
)

// An outage takes a server away under load and brings it back.
type outage struct {
	server         string   // name for the proof
	addresses      []string // where the server listens
	lose, restore  func() error
	lost, restored string        // texts for the history
	before         func(l *load) // called under load, before the outage; may be nil
	meanwhile      func(l *load) // called under load, during the outage; nil waits until buyers are refused
}

// inject takes the server away, calls `meanwhile`, and brings the server back. `gone` reports whether no
// connection to the server could be made meanwhile.
func (o outage) inject(f Field, meanwhile func() error) (gone bool, _ error) {
	if err := o.lose(); err != nil {
		return false, err
	}
	f.injected("%s", o.lost)
	if err := meanwhile(); err != nil {
		return false, err
	}
	gone = true
	for _, address := range o.addresses {
		gone = gone && isDown(address)
	}
	if err := o.restore(); err != nil {
		return false, fmt.Errorf("start the %s again: %w", o.server, err)
	}
	f.injected("%s", o.restored)
	return gone, nil
}

// underLoad calls inject while buyers of both shops buy. Its proof says that buyers had bought before the
// outage, and that others were still waiting for an answer when it began.
func (o outage) underLoad(ctx context.Context, t *Testbed) (proof string, err error) {
	l := startLoad(ctx, t)
	defer l.stop()
	l.awaitSold(ctx, enough)
	if o.before != nil {
		o.before(l)
	}
	sold, lost := l.sold.Load(), time.Now()
	l.refused.Store(0)
	gone, err := o.inject(t, func() error {
		if o.meanwhile == nil {
			l.awaitRefused(ctx)
		} else {
			o.meanwhile(l)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	l.stop()
	return underLoad(o.server, sold, gone, underWay(t.buyers.answers(), lost), l.refused.Load())
}

// underLoad returns a proof that a server was killed while the shops sold, or ErrMissed.
func underLoad(server string, before int64, gone bool, cut int, refused int64) (proof string, _ error) {
	if before < enough || !gone || cut == 0 {
		return "", missed("%d sales were acknowledged before the kill, the %s was gone: %t, and %d buyers were under way", before, server, gone, cut)
	}
	return fmt.Sprintf("%d sales were acknowledged before the kill and %d buyers under way; the %s's port was closed then, and %d were refused",
		before, cut, server, refused), nil
}

// underWay counts the buyers that had no answer at the given moment.
func underWay(answers []buyers.Answer, at time.Time) (n int) {
	for _, a := range answers {
		if a.Start.Before(at) && a.End.After(at) {
			n++
		}
	}
	return n
}

func isDown(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}

// sellsAgain sends buyers to a shop, one after the other. It reports whether one of them bought a unit within
// twice a buyer's maximum wait. The first buyers may get an error from a connection that the outage broke.
func sellsAgain(ctx context.Context, t *Testbed, shop *CellShop, name string) bool {
	for n, start := 0, time.Now(); time.Since(start) < 2*t.Times.Wait && ctx.Err() == nil; n++ {
		if t.buyers.buy(ctx, shop, fmt.Sprintf("%s-%d", name, n)).Outcome == purchase.Sold {
			return true
		}
		pauseFor(ctx, 20*time.Millisecond)
	}
	return false
}

// warm sells a unit at a shop that has just started or whose connections may be broken, so that the next buyer
// meets no such connection.
func warm(ctx context.Context, t *Testbed, shop *CellShop) error {
	if !sellsAgain(ctx, t, shop, "warm") {
		return missed("a shop sold no unit within two waits before the next loss")
	}
	return nil
}

// load is a number of buyers at both shops. Each buys again when it has its answer.
type load struct {
	sold, refused atomic.Int64
	inside        atomic.Int64 // buyers without an answer
	cancel        func()       // stops new buyers
	stop          func()       // calls cancel, and waits for all answers
}

func startLoad(ctx context.Context, t *Testbed) *load {
	goOn, cancel := context.WithCancel(ctx)
	l := &load{cancel: cancel}
	var buyers sync.WaitGroup
	for i := range loaders {
		buyers.Go(func() {
			for n := 0; goOn.Err() == nil; n++ {
				l.inside.Add(1)
				answer := t.buyers.buy(ctx, t.shops()[i%2], fmt.Sprintf("load%d-%04d", i, n))
				l.inside.Add(-1)
				switch answer.Outcome {
				case purchase.Sold:
					l.sold.Add(1)
					time.Sleep(time.Millisecond) // a steady load, not a race for the last unit
				case purchase.Failed, purchase.Unknown, purchase.Busy:
					l.refused.Add(1)
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
	}
	l.stop = func() { cancel(); buyers.Wait() }
	return l
}

// awaitSold returns when n units are sold and half of the buyers have started another buy. Otherwise all
// buyers might be between two buys, and a kill would interrupt none.
func (l *load) awaitSold(ctx context.Context, n int64) {
	await := func(patience time.Duration, there func() bool) {
		for deadline := time.Now().Add(patience); !there() && time.Now().Before(deadline) && ctx.Err() == nil; {
			time.Sleep(50 * time.Microsecond)
		}
	}
	await(10*time.Second, func() bool { return l.sold.Load() >= n })
	await(time.Second, func() bool { return l.inside.Load() >= loaders/2 })
}

// awaitRefused waits until buyers are refused because of the dead server, but no longer than 500 ms. Some
// strategies do not refuse a buyer then, but make it wait for the server.
func (l *load) awaitRefused(ctx context.Context) {
	for deadline := time.Now().Add(500 * time.Millisecond); l.refused.Load() < loaders && time.Now().Before(deadline) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
}
