package fault

import (
	"context"
	"time"

	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A nodeLoss is a way for the node of shop A to be lost to its cluster under load, and to
// come back.
type nodeLoss struct {
	lose, mend   func(ctx context.Context, n *localserver.GaleraNode) error
	lost, mended string // in the history

	// unaided: the node does not come back by itself, so it is mended when the injection ends,
	// however far it came.
	unaided bool

	// meanwhile is asked while the others go on without the node; nil for nothing.
	meanwhile func(ctx context.Context, n *localserver.GaleraNode) error
}

// inject loses the node until the others have gone on without it, and has it back. Somebody
// must be sold a unit before and meanwhile, and be under way when it goes.
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
