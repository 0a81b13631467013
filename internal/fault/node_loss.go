package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A nodeLoss takes the node of shop A away from its cluster under load and brings it back.
type nodeLoss struct {
	lose, mend   func(ctx context.Context, n *localserver.GaleraNode) error
	lost, mended string // texts for the history

	// unaided means that the node does not come back by itself. Then inject always brings it back, even after
	// an error.
	unaided bool

	// meanwhile checks the node while the others go on without it. It may be nil.
	meanwhile func(ctx context.Context, n *localserver.GaleraNode) error
}

// inject takes the node away, lets the other nodes go on, and brings the node back. It requires sales before
// and during the loss, and at least one unanswered buyer when the node goes.
func (w nodeLoss) inject(ctx context.Context, t *Testbed) (proof string, err error) {
	c, ok := t.Servers.clustered()
	if !ok {
		return "", errNoCluster
	}
	t.afterwards(func(ctx context.Context) error { return awaitWhole(ctx, c) })
	node := c.Nodes()[0]
	l := startLoad(ctx, t)
	defer l.stop()
	l.awaitSold(ctx, enough)
	before, at := l.sold.Load(), time.Now()
	if w.unaided {
		t.afterwards(func(ctx context.Context) error { return w.mend(ctx, node) })
	}
	if err := w.lose(ctx, node); err != nil {
		return "", err
	}
	t.injected("%s", w.lost)
	if err := awaitWithout(ctx, c, node); err != nil {
		return "", err
	}
	if w.meanwhile != nil {
		if err := w.meanwhile(ctx, node); err != nil {
			return "", err
		}
	}
	sold := goesOn(ctx, l)
	if err := w.mend(ctx, node); err != nil {
		return "", err
	}
	t.injected("%s", w.mended)
	l.stop()
	if err := awaitWhole(ctx, c); err != nil {
		return "", err
	}
	return mostly(before, sold, underWay(t.buyers.answers(), at))
}
