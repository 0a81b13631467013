package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed"
)

// releaseCut breaks the connections of the first process while one of its buyers, the holder, releases its
// lock. It does so twice, since the process cannot tell the two cases apart:
//
//  1. The server executes the release, and the answer is lost. A second buyer gets the lock and stops at its
//     COMMIT. A client that repeats the release must not let a third buyer in.
//  2. The request is lost. The lock stays until its lease ends, and nothing may renew it.
//
// If the strategy has no lock, the holder stops at its COMMIT, and the COMMIT takes the place of the release.
func releaseCut() Fault {
	return Fault{
		Name: "release-cut", About: "the holder's connections break during its release: once the answer is lost, once the request",
		Needs: append(lockServers(), lockstrategy.NeedsNamedLocks), Stock: stock,
		Inject: cutReleases,
	}
}

func cutReleases(ctx context.Context, t *Testbed) (string, error) {
	if err := linked(ctx, t); err != nil {
		return "", err
	}
	at := failpoint.Commit
	if locks(t.Log) {
		at = failpoint.Release
	}
	if _, err := t.hold(ctx, at); err != nil {
		return "", err
	}
	stood, err := answerLost(ctx, t, t.A.links())
	if err != nil {
		return "", err
	}
	const last = "last"
	if err := stop(ctx, t, t.A, last, at); err != nil {
		return "", err
	}
	if _, ok := seen(ctx, t, t.Times.Wait, last, history.Holding); !ok {
		return "", &stalledError{"after the first lost release, no buyer came as far as its own release"}
	}
	t.A.links().Cut()
	t.injected("the first process's connections are cut before it sends another release")
	if err := t.A.release(last); err != nil {
		return "", err
	}
	seen(ctx, t, t.Times.within(), last, history.Return)
	return fmt.Sprintf("the holder was stopped at its release; the server executed it, and its answer was lost; "+
		"the next buyer stood before its COMMIT for %d ms meanwhile; the request of another release was lost", stood.Milliseconds()), t.A.links().Mend()
}

// answerLost lets the holder send its release, drops the answer, and breaks the connection once a second buyer
// has the lock. It returns for how long the second buyer was stopped at its COMMIT.
func answerLost(ctx context.Context, t *Testbed, links testbed.Links) (stood time.Duration, _ error) {
	const second = "second"
	if err := stop(ctx, t, t.B, second, failpoint.Commit); err != nil {
		return 0, err
	}
	heal(t, links)
	if err := links.Mute(); err != nil {
		return 0, err
	}
	t.injected("the answers to the first process are lost")
	if err := t.release(); err != nil {
		return 0, err
	}
	if _, in := seen(ctx, t, t.Times.Reach(), second, history.Holding); !in {
		return 0, missed("no other buyer got in after the release whose answer was lost")
	}
	start := time.Now()
	links.Cut()
	links.Heal(ctx)
	if err := links.Mend(); err != nil {
		return 0, err
	}
	seen(ctx, t, t.Times.Lease/4, holder, history.Return)
	t.buyers.send(ctx, t.A, "third")
	waiting, cancel := context.WithTimeout(ctx, t.Times.Lease/4)
	defer cancel()
	t.Log.Wait(waiting, func(e history.Event) bool { return e.Purchaser == "third" && e.Outcome == string(purchase.Sold) })
	stood = time.Since(start)
	if err := t.B.release(second); err != nil {
		return 0, err
	}
	if stood > t.Times.within()+t.Times.Lease/4 {
		return 0, missed("the second buyer stood before its COMMIT for %s: its lease may have ended", stood)
	}
	t.buyers.wait()
	return stood, nil
}

// linked puts links (proxies) between the shops and the database if the strategy needs no lock server.
func linked(ctx context.Context, t *Testbed) error {
	if len(t.A.Links) > 0 {
		return nil
	}
	return behind(ctx, t, t.Servers.addresses()...)
}

// links returns the shop's links to its lock servers or, without any, to the database.
func (h *CellShop) links() testbed.Links {
	if len(h.Links) > 0 {
		return h.Links
	}
	return h.database
}
