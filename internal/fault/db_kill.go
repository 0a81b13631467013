package fault

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/purchase"
)

const (
	// enough sales must have been acknowledged before the kill, so that a lost one
	// can be found.
	enough = 20
	// loaders are buyers that ask again and again, so that some are under way at the
	// kill.
	loaders = 8
)

// dbKill kills the database with SIGKILL while buyers of both shops buy, and
// starts it again with its data: every acknowledged sale must be there. Then it
// does so once more, while a buyer is inside its COMMIT: nobody can say what came of
// that one.
//
// A SIGKILL takes what the process had in its own memory, and not what it had
// written: that is the kernel's, synced to the disk or not. It finds a sale that
// was acknowledged before its COMMIT was written (TestPlantedBugs, lazy-log), and
// does not stand for a power failure.
func dbKill() Fault {
	return Fault{
		Name: "db-kill", About: "SIGKILL of the database under load, then back with its data", Stock: 160,
		Strike: func(ctx context.Context, t *Testbed) (string, error) {
			l := startLoad(ctx, t)
			defer l.stop()
			l.awaitSold(ctx, enough)
			before, killed := l.sold.Load(), time.Now()
			l.refused.Store(0)
			gone, err := withoutDatabase(t, func() error {
				l.awaitRefused(ctx)
				if _, ok := t.Servers.clustered(); ok {
					goesOn(ctx, l)
					l.stop() // else all is sold by the time that it is back
				}
				return nil
			})
			if err != nil {
				return "", err
			}
			l.stop()
			proof, err := underLoad("database", before, gone, underWay(t.buyers.answers(), killed), l.refused.Load())
			if err != nil {
				return "", err
			}
			if _, ok := t.Servers.clustered(); ok {
				if err := t.anew(ctx); err != nil {
					return "", err
				}
			}
			warm(ctx, t)
			if err := t.hold(ctx, failpoint.Commit, t.Times.Wait); err != nil {
				return "", err
			}
			if gone, err = withoutDatabase(t, t.release); err != nil {
				return "", err
			}
			if !gone {
				return "", missed("the database was there after its second SIGKILL")
			}
			return proof + "; it was killed again while the holder was inside its COMMIT", nil
		},
	}
}

// withoutDatabase kills the database, calls meanwhile, and starts it again. gone
// reports whether it had really gone.
func withoutDatabase(t *Testbed, meanwhile func() error) (gone bool, _ error) {
	if err := t.Servers.db.Kill(); err != nil {
		return false, err
	}
	t.struck("SIGKILL of the database")
	if err := meanwhile(); err != nil {
		return false, err
	}
	gone = nobodyAt(t.Servers.db.Address())
	if err := t.Servers.db.Start(); err != nil {
		return false, err
	}
	t.struck("the database is back with its data")
	return gone, nil
}

// warm sends buyers to A until one is sold a unit: a connection that broke may
// cost the first of them an error.
func warm(ctx context.Context, t *Testbed) {
	for i := range 10 {
		if t.buyers.buy(ctx, t.A, fmt.Sprintf("warm-%d", i)).Outcome == purchase.Sold {
			return
		}
	}
}

// underLoad is the proof that a server was killed while the shops sold.
func underLoad(server string, before int64, gone bool, cut int, refused int64) (proof string, _ error) {
	if before < enough || !gone || cut == 0 {
		return "", missed("%d sales were acknowledged before the kill, the %s was gone: %t, and %d buyers were under way", before, server, gone, cut)
	}
	return fmt.Sprintf("%d sales were acknowledged before the kill and %d buyers under way; nobody listened on the %s's port then, and %d were refused",
		before, cut, server, refused), nil
}

// underWay counts the buyers that had asked at the moment and had no answer.
func underWay(answers []rush.Answer, at time.Time) (n int) {
	for _, a := range answers {
		if a.Start.Before(at) && a.End.After(at) {
			n++
		}
	}
	return n
}

// load is a number of buyers at both shops, each of which asks again once it has its
// answer.
type load struct {
	sold, refused atomic.Int64
	inside        atomic.Int64 // buyers that have asked and have no answer
	cancel        func()       // no new ones come
	stop          func()       // cancel, and wait
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
					time.Sleep(time.Millisecond) // a load, and no race to the last unit
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

// awaitSold returns when so many are sold, and half of the buyers have asked again: those
// that are answered together ask together, and a kill in between would strike nobody.
func (l *load) awaitSold(ctx context.Context, n int64) {
	await := func(patience time.Duration, there func() bool) {
		for deadline := time.Now().Add(patience); !there() && time.Now().Before(deadline) && ctx.Err() == nil; {
			time.Sleep(50 * time.Microsecond)
		}
	}
	await(10*time.Second, func() bool { return l.sold.Load() >= n })
	await(time.Second, func() bool { return l.inside.Load() >= loaders/2 })
}

// awaitRefused lets buyers meet a server that is gone; a strategy may let them wait for it.
func (l *load) awaitRefused(ctx context.Context) {
	for deadline := time.Now().Add(500 * time.Millisecond); l.refused.Load() < loaders && time.Now().Before(deadline) && ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
}

// nobodyAt reports whether nobody listens at an address.
func nobodyAt(address string) bool {
	conn, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return true
	}
	_ = conn.Close()
	return false
}
