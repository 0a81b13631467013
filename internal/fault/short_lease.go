package fault

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

const (
	tinyLease = 100 * time.Millisecond
	slowness  = 40 * time.Millisecond // delay in each direction, plus or minus a third
)

// shortLease gives the shops a lease that is hardly longer than a round trip, so a watchdog renews it too
// late. The holder, a buyer that the fault stops, is between its read and its write. It must notice that its
// lock is gone, and write nothing.
//
// Source: Redisson documentation, Config.lockWatchdogTimeout.
func shortLease() Fault {
	return Fault{
		Name: "short-lease", About: "a lease of 100 ms, over a network that needs about 80 ms for a request and its answer",
		Needs: redisAlone(), Stock: stock,
		Inject: loseLease,
	}
}

func loseLease(ctx context.Context, t *Testbed) (string, error) {
	usual := t.Times
	t.afterwards(func(ctx context.Context) error { // the buyers after the fault have the usual lease
		t.buyers.wait()
		t.Times = usual
		return t.anew(ctx)
	})
	t.Times.Lease = tinyLease
	if err := t.anew(ctx); err != nil {
		return "", err
	}
	if _, err := t.hold(ctx, failpoint.Read); err != nil {
		return "", err
	}
	start := time.Now()
	links := slices.Concat(t.A.Links, t.B.Links)
	heal(t, links)
	for _, link := range links {
		if err := link.DelayBothWays(slowness, slowness/3); err != nil {
			return "", err
		}
	}
	t.injected("%s before each request to Redis and each answer, with a lease of %s", slowness, tinyLease)
	took, err := links.Quickest()
	if err != nil {
		return "", err
	}
	t.others(ctx, 0, t.Times.Reach())
	held := time.Since(start)
	if err := t.release(); err != nil {
		return "", err
	}
	t.buyers.wait()
	t.buyers.crowd(ctx, "late", 16, t.A, t.B)
	return leaseTooShort(took, held, t.buyers.answers())
}

// leaseTooShort proves that the network was slow and that the holder was stopped for longer than a lease. The
// proof says how many buyers noticed that they had lost their lock.
func leaseTooShort(quickest, held time.Duration, answers []buyers.Answer) (proof string, _ error) {
	if quickest < slowness || held < tinyLease {
		return "", missed("Redis answered within %s, and the holder stood for %s: a lease is %s", quickest, held, tinyLease)
	}
	return fmt.Sprintf("a lease was %s, Redis answered within %s, and the holder stood between its read and its write for %s; %d of %d buyers noticed that their lock was gone and wrote nothing",
		tinyLease, quickest.Round(time.Millisecond), held.Round(time.Millisecond), count(answers, purchase.LockLost), len(answers)), nil
}
