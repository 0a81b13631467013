package fault

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
)

const (
	fewConns = 2  // the smallest number that a shop accepts
	waiters  = 32 // buyers of both shops that arrive while the holder is stopped
)

// connections gives each shop fewer database connections than buyers. The holder, a buyer with the lock, is stopped
// between its read and its write, and needs a connection for the write. If each buyer that waits for the lock keeps
// a connection meanwhile, the holder gets none. Then all buyers are stuck until their waits end.
//
// Source: HikariCP wiki, "About Pool Sizing", section "Pool-locking".
func connections() Fault {
	return Fault{
		Name: "connections", About: "each process has two database connections, and many buyers come while one holds the lock",
		Stock: 2 * stock, Conns: fewConns, HolderLives: true,
		Inject: exhaust,
	}
}

func exhaust(ctx context.Context, t *Testbed) (string, error) {
	if _, err := t.hold(ctx, failpoint.Read); err != nil {
		return "", err
	}
	held := time.Now()
	for i := range waiters {
		t.buyers.send(ctx, t.shops()[i%2], fmt.Sprintf("waiter-%02d", i))
	}
	inside := func() (bool, error) { return t.called("waiter-") == waiters, nil }
	if _, err := until(ctx, t.Times.within(), inside); err != nil {
		return "", err
	}
	pauseFor(ctx, t.Times.Lease/10) // gives all buyers time to start waiting for the lock or for a connection
	if err := t.A.Tell("pool"); err != nil {
		return "", err
	}
	pool, _ := seen(ctx, t, t.Times.Wait, "", history.Pool)
	called := t.called("waiter-")
	if time.Since(held) > t.Times.within()+t.Times.Lease/4 {
		return "", missed("the buyers were there only %s after the holder: its lease may have ended", time.Since(held))
	}
	t.injected("the holder goes on, with %d buyers behind it", called)
	if err := t.release(); err != nil {
		return "", err
	}
	// Even a slow machine sells the unit in far less than half of a buyer's wait. Stuck buyers take the whole wait.
	limit := t.Times.Wait / 2
	answer, ended := seen(ctx, t, limit, holder, history.Return)
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case !ended || answer.Outcome != string(purchase.Sold):
		return "", &stalledError{fmt.Sprintf("the holder was not sold its unit within %s of going on (%s): the buyers that wait for its lock keep the connections of its process, at most %d",
			limit, cmp.Or(answer.Outcome, "no answer"), pool.Amount)}
	}
	return scarce(pool.Amount, called)
}

// called counts the buyers whose names have this prefix and whose requests have reached a shop.
func (t *Testbed) called(prefix string) (n int) {
	for _, e := range t.Log.Events() {
		if e.Kind == history.Call && strings.HasPrefix(e.Purchaser, prefix) {
			n++
		}
	}
	return n
}

// scarce returns a proof that the holder's process had fewer connections than buyers, or ErrMissed.
func scarce(conns int64, called int) (proof string, _ error) {
	if conns < 1 || conns > fewConns || called < waiters {
		return "", missed("the holder's process had %d database connections, and %d of %d buyers came while it was stopped", conns, called, waiters)
	}
	return fmt.Sprintf("the holder was stopped between its read and its write; its process never had more than %d database connections, %d buyers came to the two processes meanwhile, and the holder was sold its unit when it went on",
		conns, called), nil
}
