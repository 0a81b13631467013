package fault

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

const (
	// electionLease is the lease of the shops' locks. An election takes one or two seconds, and a client may try
	// several members for seconds each before it finds the new leader. No buyer waits for this lease to end.
	electionLease = 30 * time.Second
	// electionTimeout limits the wait for a new leader, and then the wait until a shop is connected to it.
	electionTimeout = 20 * time.Second
	// timeToGetIn is how long the next buyers may try to get the lock. They get it only if the ensemble forgot it.
	timeToGetIn = 2 * time.Second
)

// leaderKill kills the leader of three ZooKeeper or etcd members while a lock holder is stopped at its COMMIT.
// Other buyers come during the election and after it. The two other members elect a leader that knows every
// lock, since the old leader acknowledged a write only after a majority had it. The killed member returns, and
// the holder continues. A failover of Redis, in contrast, may lose the lock.
//
// Source: ZooKeeper Programmer's Guide, "Consistency Guarantees"; etcd documentation, v3.4, "Failure
// modes", Leader failure.
func leaderKill() Fault {
	return Fault{
		Name: "leader-kill", About: "the leader of three ZooKeeper or etcd members is killed; another is elected, and the killed one returns",
		Needs: []lockstrategy.Need{lockstrategy.NeedsZookeeper, lockstrategy.NeedsEtcd}, Stock: stock, Lease: electionLease, Ensembles: true,
		Inject: killLeader,
	}
}

func killLeader(ctx context.Context, t *Testbed) (string, error) {
	if _, err := t.hold(ctx, failpoint.Commit); err != nil {
		return "", err
	}
	_, members := t.Servers.lockServers(t.Subject.Needs, true)
	first := leader(ctx, members)
	if first < 0 {
		return "", missed("none of %d members led", len(members))
	}
	before, err := firstInLine(ctx, t, members[first])
	if err != nil {
		return "", err
	}
	if err := members[first].Kill(); err != nil {
		return "", err
	}
	killed, comeBack := time.Now(), sync.OnceValue(members[first].Start)
	t.afterwards(func(context.Context) error { return comeBack() })
	t.injected("SIGKILL of the leader, member %d of %d", first+1, len(members))
	for i := range 4 {
		t.buyers.send(ctx, t.shops()[i%2], fmt.Sprintf("leaderless-%d", i))
	}
	second := leader(ctx, members)
	if second < 0 {
		return "", missed("no member led within %s after the leader was killed", electionTimeout)
	}
	led := time.Since(killed)
	after, err := firstInLine(ctx, t, members[second])
	if err != nil {
		return "", err
	}
	if !t.B.Ready(ctx, electionTimeout) {
		return "", &stalledError{fmt.Sprintf("the second shop was not ready within %s after member %d led", electionTimeout, second+1)}
	}
	ready := time.Since(killed)
	t.others(ctx, 0, timeToGetIn)
	if err := comeBack(); err != nil {
		return "", err
	}
	t.injected("member %d started again", first+1)
	atLast, err := firstInLine(ctx, t, members[second])
	if err != nil {
		return "", err
	}
	if err := t.release(); err != nil {
		return "", err
	}
	t.buyers.wait()
	t.buyers.crowd(ctx, "late", 16, t.A, t.B)
	return anotherLed(first+1, second+1, before == after && after == atLast, led, ready, leaderless(t.buyers.answers()))
}

// leader waits for a leader and returns its index. It returns -1 after electionTimeout.
func leader(ctx context.Context, members []engine.LockServer) (index int) {
	index = -1
	_, _ = until(ctx, electionTimeout, func() (bool, error) {
		for i, m := range members {
			if m, ok := m.Restartable.(interface{ Leads() bool }); ok && m.Leads() {
				index = i
				return true, nil
			}
		}
		return false, nil
	})
	return index
}

// firstInLine asks a member for the first entry in the queue of the product's lock.
func firstInLine(ctx context.Context, t *Testbed, member engine.LockServer) (place, error) {
	lock, err := coordinatorOf(t.Subject.Needs, map[lockstrategy.Need]string{lockstrategy.Need(member.Need): member.Address()})
	if err != nil {
		return place{}, err
	}
	defer lock.close()
	return lock.holder(ctx, t.Product)
}

// leaderless describes how the shops answered the buyers that came while no member led.
func leaderless(answers []buyers.Answer) string {
	came, sold, slowest := 0, 0, time.Duration(0)
	for _, a := range answers {
		if !strings.HasPrefix(a.Purchaser, "leaderless-") {
			continue
		}
		came++
		slowest = max(slowest, a.End.Sub(a.Start))
		if a.Outcome == purchase.Sold {
			sold++
		}
	}
	return fmt.Sprintf("%d of the %d buyers that came in between bought, the last was answered after %s", sold, came, slowest.Round(tenth/10))
}

const tenth = 100 * time.Millisecond

// anotherLed proves that another member led after the kill and knew the holder's lock. `led` is the time from
// the kill until that member led, `ready` the time until the second shop could use it.
func anotherLed(before, after int, knows bool, led, ready time.Duration, leaderless string) (proof string, _ error) {
	switch {
	case before == after:
		return "", missed("member %d led before the kill and after it", before)
	case !knows:
		return "", missed("member %d led then, but the holder was not the first in line until it went on", after)
	}
	return fmt.Sprintf("member %d led and was killed while the holder reported that it holds; member %d led %s later; the holder was first in line until it went on; "+
		"the second shop was ready %s after the kill; %s; member %d came back",
		before, after, led.Round(tenth), ready.Round(tenth), leaderless, before), nil
}
