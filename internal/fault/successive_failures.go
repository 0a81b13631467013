package fault

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed"
)

// successiveFailures breaks three things in turn: the shops' connections, the lock servers with the data that
// Redis has in memory, and the database. Buyers come during each failure. Both shops must sell again before
// the next one. No buyer holds a lock when a failure begins, so no failure breaks a lock. The fault finds shops that
// recover only once.
func successiveFailures() Fault {
	return Fault{
		Name: "successive-failures", About: "connections are cut, lock servers restart, the database is killed, each after a recovery",
		OnRedis: topology.Single, Stock: 2 * stock, Inject: failAgain,
	}
}

// buyersDuring is the number of buyers that come during each failure.
const buyersDuring = 4

func failAgain(ctx context.Context, t *Testbed) (string, error) {
	if err := linked(ctx, t); err != nil {
		return "", err
	}
	failures := []outage{cutOf(slices.Concat(t.A.links(), t.B.links()))}
	if servers := t.lockServers(); len(servers) > 0 {
		failures = append(failures, restartOf(servers))
	}
	failures = append(failures, killOf(t.Servers.db))
	var names []string
	for i, failure := range failures {
		during, sold := fmt.Sprintf("during%d-", i), 0
		gone, err := failure.inject(t, func() error {
			for k := range buyersDuring {
				t.buyers.send(ctx, t.shops()[k%2], fmt.Sprint(during, k))
			}
			pauseFor(ctx, t.Times.within()/2) // lets the buyers run into the failure
			sold = t.soldTo(during)
			return ctx.Err()
		})
		switch {
		case err != nil:
			return "", err
		case !gone || sold == buyersDuring:
			return "", missed("during failure %d (%s), the servers were gone: %t, and %d of %d buyers were sold a unit", i+1, failure.server, gone, sold, buyersDuring)
		}
		names = append(names, failure.server)
		for k, shop := range t.shops() {
			if !sellsAgain(ctx, t, shop, fmt.Sprintf("after%d-%d", i, k)) {
				return "", &stalledError{fmt.Sprintf("process %d sold no unit within two waits after failure %d (%s)", k+1, i+1, failure.server)}
			}
		}
		t.buyers.wait()
	}
	after, err := overlap(ctx, t)
	return fmt.Sprintf("%d failures (%s), and both processes sold units after each; %s", len(names), strings.Join(names, ", "), after), err
}

// soldTo counts the buyers with this prefix in their names that were sold a unit.
func (t *Testbed) soldTo(prefix string) (n int) {
	for _, e := range t.Log.Events() {
		if e.Kind == history.Answered && e.Outcome == string(purchase.Sold) && strings.HasPrefix(e.Purchaser, prefix) {
			n++
		}
	}
	return n
}

func cutOf(links testbed.Links) outage {
	var addresses []string
	for _, link := range links {
		addresses = append(addresses, link.Addr)
	}
	return outage{
		server: "connections", addresses: addresses,
		lose: func() error { links.Cut(); return nil }, lost: "all connections are cut",
		restore: links.Mend, restored: "connections are possible again",
	}
}

func restartOf(servers []engine.LockServer) outage {
	var addresses []string
	for _, server := range servers {
		addresses = append(addresses, server.Address())
	}
	return outage{
		server: "lock servers", addresses: addresses,
		lose: func() error { return each(servers, engine.LockServer.Kill) }, lost: "SIGKILL of the lock servers",
		restore: func() error { return each(servers, engine.LockServer.Start) }, restored: "the lock servers are back",
	}
}

// lockServers returns the lock servers of the strategy.
func (t *Testbed) lockServers() []engine.LockServer {
	_, servers := t.Servers.lockServers(t.Subject.Needs, t.Times.Ensembles)
	return servers
}
