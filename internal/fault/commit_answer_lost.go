package fault

import (
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed"
)

const unansweredCommits = 6

// commitAnswerLost lets the database execute COMMITs and drops its answers, as if the connection broke in
// between. It first drops answers under load. Then it drops the answer to one order with an Idempotency-Key.
// The buyer sends this order again to each shop.
//
// The shop may answer "unknown", or report the sale if it has read the record. A refusal or a second sale
// breaks the strategy's promise.
func commitAnswerLost() Fault {
	return Fault{
		Name: "commit-answer-lost", About: "a COMMIT succeeds, but its answer is dropped and the connection closes", Stock: 160,
		HolderLives: true,
		Inject:      loseAnswers,
	}
}

func loseAnswers(ctx context.Context, t *Testbed) (string, error) {
	proxy, err := t.Servers.commitProxy()
	if err != nil {
		return "", err
	}
	t.afterwards(func(context.Context) error { proxy.Arm(0); return nil })
	if err := behind(ctx, t, proxy.Addrs...); err != nil {
		return "", err
	}
	lose := func(n int64) (lost int64) {
		before := proxy.Dropped()
		proxy.Arm(n)
		_, _ = until(ctx, t.Times.Wait, func() (bool, error) { lost = proxy.Dropped() - before; return lost == n, nil })
		return lost
	}
	l := startLoad(ctx, t)
	defer l.stop()
	l.awaitSold(ctx, enough)
	t.injected("the answers to %d COMMITs are dropped", unansweredCommits)
	lost := lose(unansweredCommits)
	l.stop()
	if lost < unansweredCommits {
		return "", missed("%d of %d COMMITs took place under load and lost their answers", lost, unansweredCommits)
	}
	t.buyers.pending.Go(func() { t.buyers.keyed(ctx, t.A, 1) })
	if lose(1) == 0 {
		return "", missed("the order with a key was not committed")
	}
	t.buyers.wait()
	if err := repeat(ctx, t, 1, t.shops()...); err != nil {
		return "", err
	}
	return fmt.Sprintf("the server answered %d COMMITs under load and that of an order with a key, and no shop got those answers; %d buyers were answered unknown; the order was sent again to each shop",
		lost, count(t.buyers.answers(), purchase.Unknown)), nil
}

// commitProxy starts a proxy in front of the database, or returns the proxy that an earlier fault has started.
func (s *sqlServer) commitProxy() (*testbed.CommitProxy, error) {
	addresses := s.addresses()
	if s.commits != nil {
		if slices.Equal(s.commits.Servers, addresses) {
			return s.commits, nil
		}
		_ = s.commits.Close() // the database has failed over, so its address has changed
	}
	var err error
	s.commits, err = testbed.NewCommitProxy(addresses...)
	return s.commits, err
}
