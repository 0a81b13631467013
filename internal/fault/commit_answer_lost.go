package fault

import (
	"context"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed"
)

const (
	// unansweredCommits is how many COMMITs under load lose their answers.
	unansweredCommits = 6
	// keyedBuyer sends its order again under the same Idempotency-Key.
	keyedBuyer = "keyed"
)

// commitAnswerLost lets COMMITs take place and drops the server's answers, as a connection
// does that breaks at the wrong moment: first those of a load, then that of one order with an
// Idempotency-Key, which is then sent again to each shop.
//
// A buyer may be answered unknown, or with its sale where the shop has read it. A refusal and
// a second sale are breaks.
func commitAnswerLost() Fault {
	return Fault{
		Name: "commit-answer-lost", About: "a COMMIT takes place, its answer is dropped, and the connection closes", Stock: 160,
		HolderLives: true,
		CellOnly:    "it needs a proxy between each shop and the database, which a cell starts",
		Inject:      inCell(loseAnswers),
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
	t.buyers.pending.Go(func() { t.buyers.keyed(ctx, t.A) })
	if lose(1) == 0 {
		return "", missed("the order with a key was not committed")
	}
	t.buyers.wait()
	if err := repeat(ctx, t); err != nil {
		return "", err
	}
	return fmt.Sprintf("the server answered %d COMMITs under load and that of an order with a key, and no shop got those answers; %d buyers were answered unknown; the order was sent again to each shop",
		lost, count(t.buyers.answers(), purchase.Unknown)), nil
}

// repeat sends the order with a key to each shop again. Its sale is the one that was recorded.
func repeat(ctx context.Context, t *Testbed) error {
	sales, err := t.Servers.Auditor.Sales(ctx, t.Product)
	if err != nil {
		return err
	}
	sale := buyers.Answer{Answer: audit.Answer{Purchaser: keyedBuyer, Outcome: purchase.Sold}}
	for id, s := range sales {
		if s.Purchaser == keyedBuyer {
			sale.ID = id
		}
	}
	if sale.ID == 0 {
		return missed("the order with a key has no record")
	}
	again := newClients(t)
	defer again.close()
	rounds := [][]buyers.Answer{{sale}}
	for _, shop := range t.shops() {
		rounds = append(rounds, []buyers.Answer{again.keyed(ctx, shop)})
	}
	t.orders.ByID = true // the first round has no receipt
	t.orders.Add(rounds...)
	return ctx.Err()
}

// keyed sends the order with a key.
func (b *clients) keyed(ctx context.Context, shop *Shop) buyers.Answer {
	return b.sender.One(ctx, buyers.Buyer{Name: keyedBuyer, URL: shop.URL(), Key: b.sender.Product + "/" + keyedBuyer})
}

// commitProxy starts a proxy in front of the database, or returns that of the play before.
func (s *sqlServer) commitProxy() (*testbed.CommitProxy, error) {
	addresses := []string{s.db.Address()}
	if c, ok := s.clustered(); ok {
		addresses = nil
		for _, node := range c.Nodes() {
			addresses = append(addresses, node.Address())
		}
	}
	if s.commits != nil {
		if slices.Equal(s.commits.Servers, addresses) {
			return s.commits, nil
		}
		_ = s.commits.Close() // the database has failed over
	}
	var err error
	s.commits, err = testbed.NewCommitProxy(addresses...)
	return s.commits, err
}
