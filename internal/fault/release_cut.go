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
// The first case needs a release of one command. If the answer to the first of several commands is lost, the
// client does not send the next one.
//
// If the strategy has no lock, the holder stops at its COMMIT, and the COMMIT takes the place of the release.
func releaseCut() Fault {
	return Fault{
		Name: "release-cut", About: "the holder's connections break during its release, or at COMMIT without a lock: once the answer is lost, once the request",
		Needs: append(lockServers(), lockstrategy.NeedsNamedLocks), Stock: stock,
		Inject: cutReleases,
	}
}

func cutReleases(ctx context.Context, t *Testbed) (string, error) {
	if err := linked(ctx, t); err != nil {
		return "", err
	}
	links := t.A.links()
	t.afterwards(func(context.Context) error { return links.Mend() })
	at, stopped := failpoint.Commit, "its COMMIT, without a lock to release"
	if locks(t.Log) {
		at, stopped = failpoint.Release, "its release"
	}
	if _, err := t.hold(ctx, at); err != nil {
		return "", err
	}
	first, err := answerLost(ctx, t, links)
	if err != nil {
		return "", err
	}
	if !sellsAgain(ctx, t, t.A, "again") {
		return "", &stalledError{"process 1 sold no unit within two waits after its connections broke"}
	}
	if err := requestLost(ctx, t, links, at); err != nil {
		return "", err
	}
	return fmt.Sprintf("the holder was stopped at %s, and the answers were lost; %s; another buyer went on from there while the connections were cut", stopped, first), nil
}

// answerLost lets the holder send its release, drops the answer, and breaks the connection once a second
// buyer has the lock. It returns the second buyer's actions.
func answerLost(ctx context.Context, t *Testbed, links testbed.Links) (proof string, _ error) {
	const second = "second"
	if err := stop(ctx, t, &t.B, second, failpoint.Commit); err != nil {
		return "", err
	}
	heal(t, links)
	if err := links.Mute(); err != nil {
		return "", err
	}
	t.injected("the answers to the first process are lost")
	if err := t.release(); err != nil {
		return "", err
	}
	_, in := seen(ctx, t, t.Times.within(), second, history.Holding)
	if in && t.mayHaveLapsed(holder) {
		return "", missed("the next buyer got in when the holder's lease may have ended")
	}
	start := time.Now()
	links.Cut()
	links.Heal(ctx)
	if err := links.Mend(); err != nil {
		return "", err
	}
	if in {
		seen(ctx, t, t.Times.Lease/4, holder, history.Return)
		t.buyers.send(ctx, t.A, "third")
		waiting, cancel := context.WithTimeout(ctx, t.Times.Lease/4)
		defer cancel()
		t.Log.Wait(waiting, func(e history.Event) bool { return e.Purchaser == "third" && e.Outcome == string(purchase.Sold) })
	}
	stood := time.Since(start)
	if err := t.goOn(ctx, &t.B, second); err != nil {
		return "", err
	}
	t.buyers.wait()
	if !in {
		return fmt.Sprintf("no other buyer got in within %d ms", t.Times.within().Milliseconds()), nil
	}
	return fmt.Sprintf("the next buyer got in and stood before its COMMIT for %d ms meanwhile", stood.Milliseconds()), nil
}

// requestLost cuts the connections before another buyer of A goes on from the point.
func requestLost(ctx context.Context, t *Testbed, links testbed.Links, at failpoint.Point) error {
	const last = "last"
	if err := stop(ctx, t, &t.A, last, at); err != nil {
		return err
	}
	e, _ := seen(ctx, t, t.Times.Wait+answerMargin/2, last, history.Holding, history.Answered)
	switch {
	case e.Outcome == string(purchase.Busy):
		return &stalledError{"after the first lost release, a buyer was answered busy"}
	case e.Kind != history.Holding:
		return missed("the last buyer was not stopped, and was answered %q", e.Outcome)
	}
	links.Cut()
	t.injected("the first process's connections are cut before another buyer goes on")
	if err := t.A.release(last); err != nil {
		return err
	}
	_, went := seen(ctx, t, t.Times.Wait, last, history.Resumed)
	seen(ctx, t, t.Times.within(), last, history.Return)
	if n := links.Answering(t.Times.within()); n > 0 || !went {
		return missed("%d servers answered over connections that were cut, and the last buyer went on: %t", n, went)
	}
	return links.Mend()
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
