package fault

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/purchase"
)

// answerMargin is how much longer than its wait a buyer waits for an answer.
const answerMargin = 20 * time.Second

// buyers sends the buyers of a testbed to its shops and keeps their answers. Its
// methods may be called by several goroutines.
type buyers struct {
	strategy, product string
	timeout           time.Duration // of one request
	log               *history.Log
	client            http.Client

	pending sync.WaitGroup // of send
	mu      sync.Mutex
	got     []rush.Answer
}

func newBuyers(t *Testbed) *buyers {
	return &buyers{
		strategy: t.Subject.Name, product: t.Product, timeout: t.Times.Wait + answerMargin, log: t.Log,
		client: http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
	}
}

// buy sends one buyer and notes the answer.
func (b *buyers) buy(ctx context.Context, shop *Shop, purchaser string) rush.Answer {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	var a rush.Answer
	a.Purchaser, a.Start = purchaser, time.Now()
	a.Outcome, a.ID, a.Detail = b.ask(ctx, shop, purchaser)
	a.End = time.Now()
	b.note(a)
	return a
}

func (b *buyers) ask(ctx context.Context, shop *Shop, purchaser string) (purchase.Outcome, int64, string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, buyURL(shop, b.strategy, b.product, purchaser), nil)
	if err != nil {
		return purchase.Failed, 0, err.Error()
	}
	response, err := b.client.Do(request)
	if err != nil {
		return purchase.Unknown, 0, err.Error() // the sale may have been made
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return purchase.Unknown, 0, err.Error()
	}
	return rush.ReadAnswer(response.StatusCode, text, 1)
}

// note keeps an answer, and writes it into the history.
func (b *buyers) note(a rush.Answer) {
	b.mu.Lock()
	b.got = append(b.got, a)
	b.mu.Unlock()
	b.log.Add(history.Event{
		Kind: history.Answered, At: a.End, Strategy: b.strategy, Product: b.product, Purchaser: a.Purchaser, Outcome: string(a.Outcome),
	})
}

// send is buy in the background.
func (b *buyers) send(ctx context.Context, shop *Shop, purchaser string) {
	b.pending.Go(func() { b.buy(ctx, shop, purchaser) })
}

// crowd sends buyers to the shops at once and waits for their answers.
func (b *buyers) crowd(ctx context.Context, name string, size int, shops ...*Shop) []rush.Answer {
	c := rush.Crowd{Strategy: b.strategy, Product: b.product, Timeout: b.timeout, Answered: b.note}
	for _, shop := range shops {
		c.BaseURLs = append(c.BaseURLs, shop.URL())
	}
	all := make([]rush.Buyer, size)
	for i := range all {
		all[i].Name = fmt.Sprintf("%s-%03d", name, i)
	}
	return c.Send(ctx, all)
}

// wait returns when every buyer in the background has its answer.
func (b *buyers) wait() { b.pending.Wait() }

// answers waits for all buyers and returns what they got.
func (b *buyers) answers() []rush.Answer {
	b.wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

// count counts the answers with an outcome, of these purchasers or of all.
func count(answers []rush.Answer, outcome purchase.Outcome, purchasers ...string) (n int) {
	for _, a := range answers {
		if a.Outcome == outcome && (len(purchasers) == 0 || slices.Contains(purchasers, a.Purchaser)) {
			n++
		}
	}
	return n
}
