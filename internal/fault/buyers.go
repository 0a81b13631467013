package fault

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/purchase"
)

// answerMargin is how long the client of a buyer waits for an answer after the buyer's maximum wait has ended.
const answerMargin = 20 * time.Second

// clients sends the buyers of a testbed (two shops under one fault) to its shops and keeps their answers. Its
// methods may be called by several goroutines.
type clients struct {
	sender buyers.Sender
	log    *history.Log

	pending sync.WaitGroup // buyers that the method `send` has started
	mu      sync.Mutex
	got     []buyers.Answer
}

func newClients(t *Testbed) *clients {
	b := &clients{log: t.Log}
	b.sender = buyers.Sender{
		Strategy: t.Subject.Name, Product: t.Product, Timeout: t.Times.Wait + answerMargin, Client: buyers.NewClient(nil), Answered: b.note,
	}
	return b
}

// close closes the connections. Call it only after every buyer has its answer.
func (b *clients) close() { b.sender.Client.Close() }

func (b *clients) buy(ctx context.Context, shop *CellShop, purchaser string) buyers.Answer {
	return b.sender.One(ctx, buyers.Buyer{Name: purchaser, URL: shop.URL()})
}

func (b *clients) note(a buyers.Answer) {
	b.mu.Lock()
	b.got = append(b.got, a)
	b.mu.Unlock()
	b.log.Add(history.Event{
		Kind: history.Answered, At: a.End, Strategy: b.sender.Strategy, Product: b.sender.Product, Purchaser: a.Purchaser, Outcome: string(a.Outcome),
	})
}

func (b *clients) send(ctx context.Context, shop *CellShop, purchaser string) {
	b.pending.Go(func() { b.buy(ctx, shop, purchaser) })
}

// crowd sends buyers to the shops at once and waits for their answers.
func (b *clients) crowd(ctx context.Context, name string, size int, shops ...*CellShop) []buyers.Answer {
	all := make([]buyers.Buyer, size)
	for i := range all {
		all[i] = buyers.Buyer{Name: fmt.Sprintf("%s-%03d", name, i), URL: shops[i%len(shops)].URL()}
	}
	return b.sender.AtOnce(ctx, all)
}

func (b *clients) wait() { b.pending.Wait() }

func (b *clients) answers() []buyers.Answer {
	b.wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// count returns the number of answers with this outcome: of the given purchasers, or of all if none is given.
func count(answers []buyers.Answer, outcome purchase.Outcome, purchasers ...string) (n int) {
	for _, a := range answers {
		if a.Outcome == outcome && (len(purchasers) == 0 || slices.Contains(purchasers, a.Purchaser)) {
			n++
		}
	}
	return n
}
