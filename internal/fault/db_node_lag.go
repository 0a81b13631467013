package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/purchase"
)

const (
	// laggard is the index of the node that lags. Shop B is connected to it.
	laggard = 1
	// lagUnits is the size of the order with a key. After its sale, fewer units than that are left.
	lagUnits = 14
	// lagTime is how long shop B may work on the repeated order before its node applies the sale.
	lagTime = 500 * time.Millisecond
)

// dbNodeLag sells an order with an Idempotency-Key at one node. Then it sends the same order to a shop at a
// node that has not applied the sale yet. That shop should wait for its node before it looks the key up.
// Otherwise it finds no sale and refuses the buyer, since too few units are left.
func dbNodeLag() Fault {
	return Fault{
		Name: "db-node-lag", About: "an order is repeated under its Idempotency-Key at a node that has not applied the first sale yet", On: dialect.Galera,
		Stock: stock, HolderLives: true,
		Inject: lagBehind,
	}
}

func lagBehind(ctx context.Context, t *Testbed) (string, error) {
	c, ok := t.Servers.clustered()
	if !ok {
		return "", errNoCluster
	}
	if err := behind(ctx, t, addressesOf(c)...); err != nil {
		return "", err
	}
	for i, link := range t.B.database {
		if i != laggard { // shop B must not move to another node
			link.Cut()
		}
	}
	if err := warm(ctx, t, t.B); err != nil {
		return "", err
	}
	goOn, err := c.Nodes()[laggard].Lag(ctx)
	if err != nil {
		return "", err
	}
	t.afterwards(func(context.Context) error { return goOn() })
	t.injected("a node stops applying transactions")
	if sold := t.buyers.keyed(ctx, t.A, lagUnits); sold.Outcome != purchase.Sold {
		return "", missed("the order with a key was answered %s: %s", sold.Outcome, sold.Detail)
	}
	at := seqnos(ctx, c)
	if at[laggard] >= at[0] {
		return "", missed("the node of shop B was not behind: %d", at)
	}
	answered := make(chan error, 1)
	go func() { answered <- repeat(ctx, t, lagUnits, t.B) }()
	select {
	case err = <-answered:
	case <-time.After(lagTime):
		if err = goOn(); err == nil {
			err = <-answered
		}
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the order was sent again to a shop whose node had applied transaction %d when the sale's own node was at %d", at[laggard], at[0]), nil
}
