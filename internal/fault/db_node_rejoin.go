package fault

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/purchase"
)

// dbNodeRejoin kills a node that no shop uses, deletes its data, and restarts it while buyers buy. Another
// node then sends it all data (rsync state transfer) and takes no COMMIT during the transfer.
func dbNodeRejoin() Fault {
	return Fault{
		Name: "db-node-rejoin", About: "a Galera node loses its files and returns by state transfer while buyers continue", On: dialect.Galera, Stock: 100,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			c, ok := t.Servers.clustered()
			if !ok {
				return "", errNoCluster
			}
			t.afterwards(func(ctx context.Context) error { return awaitWhole(ctx, c) })
			node := c.Nodes()[len(c.Nodes())-1]
			if err := node.Kill(); err != nil {
				return "", err
			}
			t.injected("SIGKILL of a node")
			if err := awaitWithout(ctx, c, node); err != nil {
				return "", err
			}
			if err := node.Empty(); err != nil {
				return "", err
			}
			back := make(chan error, 1)
			go func() { back <- node.Start() }()
			sold, err := trickle(ctx, t, back)
			if err != nil {
				return "", err
			}
			t.injected("the node is back with all data")
			if sold == 0 {
				return "", missed("no unit was sold while the node received the database")
			}
			if err := awaitWhole(ctx, c); err != nil {
				return "", err
			}
			return fmt.Sprintf("the node's files were removed; %d units were sold from its start until it was synced, at %v", sold, seqnos(ctx, c)), nil
		},
	}
}

// trickle sends two buyers at a time, one to each shop, until the channel `done` has a value.
func trickle(ctx context.Context, t *Testbed, done <-chan error) (sold int, _ error) {
	for n := 0; ; n++ {
		select {
		case err := <-done:
			return sold, err
		case <-time.After(100 * time.Millisecond):
		}
		var pair sync.WaitGroup
		outcomes := make([]purchase.Outcome, 2)
		for i, shop := range t.shops() {
			pair.Go(func() { outcomes[i] = t.buyers.buy(ctx, shop, fmt.Sprintf("trickle%d-%04d", i, n)).Outcome })
		}
		pair.Wait()
		for _, o := range outcomes {
			if o == purchase.Sold {
				sold++
			}
		}
	}
}
