package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/audit"
	"github.com/oversell/oversell/internal/failpoint"
	"github.com/oversell/oversell/internal/history"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/rush"
)

// A Subject is a strategy under test.
type Subject struct {
	Name  string
	Needs []lockstrategy.Need
}

// Times of the shops under test.
type Times struct {
	Wait  time.Duration // of a buyer
	Lease time.Duration
}

// DefaultTimes are those of the shops that are struck. The lease is the shortest
// that etcd grants. Wait is well above reach, so that the holder does not run out
// of patience while it is stopped.
func DefaultTimes() Times { return Times{Wait: 7 * time.Second, Lease: 2 * time.Second} }

// RushTimes are the shop's own, for the rushes: a lease far above a section.
func RushTimes() Times {
	s := lockstrategy.DefaultSettings()
	return Times{Wait: s.Wait, Lease: s.LeaseTTL}
}

// reach is how long a stopped holder waits for somebody else to get in, at most:
// its lease and the time in which the slowest server sees that it has run out.
func (t Times) reach() time.Duration { return 2*t.Lease + 500*time.Millisecond }

// Allowed is how soon somebody else must get on once the holder is gone, or runs
// on and ends: when its connection ends, under a lock of the database's, and
// when its lease has run out under one that is kept elsewhere; and two seconds
// for a server to notice and for a machine that is busy.
func (t Times) Allowed(needs []lockstrategy.Need) time.Duration {
	const notice = 2 * time.Second
	if len(slices.DeleteFunc(slices.Clone(needs), func(n lockstrategy.Need) bool { return n == lockstrategy.NeedsMySQL })) == 0 {
		return notice
	}
	return t.Lease + notice
}

// within is as long as the holder's lease certainly lives: who gets in during it
// has been let in by the fault, and not by the clock.
func (t Times) within() time.Duration { return t.Lease / 2 }

// A Scene is one strategy, one product, two shops on the same servers. The
// holder is at A, the next buyers come to B.
type Scene struct {
	Subject Subject
	Product string
	Stock   int64
	Servers *Servers
	A, B    *Shop
	Launch  Launch
	Log     *history.Log
	Times   Times

	client  http.Client
	pending sync.WaitGroup
	mu      sync.Mutex
	answers []rush.Answer
	undo    []func(ctx context.Context) error // what the cell's end puts right
}

// holder is the buyer that a fault strikes.
const holder = "holder"

// open restocks the product and lets a buyer of each shop buy one: caches are
// filled and counters copied before anything is stopped.
func (s *Scene) open(ctx context.Context) error {
	s.client.Transport = &http.Transport{MaxIdleConnsPerHost: 64}
	shelf := rush.Target{BaseURL: s.A.URL, Client: &http.Client{}}
	if err := shelf.Restock(ctx, s.Product, s.Stock); err != nil {
		return fmt.Errorf("restock: %w", err)
	}
	for i, shop := range []*Shop{s.A, s.B} {
		if a := s.buy(ctx, shop, fmt.Sprintf("first-%d", i)); a.Outcome != purchase.Sold {
			return fmt.Errorf("before the fault a buyer was told %s: %s", a.Outcome, a.Detail)
		}
	}
	return nil
}

// answerPatience is how much longer than its wait a buyer waits for an answer.
const answerPatience = 20 * time.Second

// buy sends one buyer and notes the answer.
func (s *Scene) buy(ctx context.Context, shop *Shop, purchaser string) rush.Answer {
	ctx, cancel := context.WithTimeout(ctx, s.Times.Wait+answerPatience)
	defer cancel()
	var a rush.Answer
	a.Purchaser, a.Start = purchaser, time.Now()
	a.Outcome, a.ID, a.Detail = s.ask(ctx, shop, purchaser)
	a.End = time.Now()
	s.note(a)
	return a
}

// note keeps an answer, and writes it into the history.
func (s *Scene) note(a rush.Answer) {
	s.mu.Lock()
	s.answers = append(s.answers, a)
	s.mu.Unlock()
	s.Log.Add(history.Event{
		Kind: history.Answered, At: a.End, Strategy: s.Subject.Name, Product: s.Product, Purchaser: a.Purchaser, Outcome: string(a.Outcome),
	})
}

func (s *Scene) ask(ctx context.Context, shop *Shop, purchaser string) (purchase.Outcome, int64, string) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, shop.buyURL(s.Subject.Name, s.Product, purchaser), nil)
	if err != nil {
		return purchase.Failed, 0, err.Error()
	}
	response, err := s.client.Do(request)
	if err != nil {
		return purchase.Unknown, 0, err.Error() // the sale may have been made
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 1<<16))
	if err != nil {
		return purchase.Unknown, 0, err.Error()
	}
	return rush.ReadAnswer(response.StatusCode, text)
}

// send is buy beside everything else.
func (s *Scene) send(ctx context.Context, shop *Shop, purchaser string) {
	s.pending.Go(func() { s.buy(ctx, shop, purchaser) })
}

// hold sends the holder to A and waits until it is stopped at the point. The
// error, if any, says that it was not: there is nothing to strike.
func (s *Scene) hold(ctx context.Context, at failpoint.Point, patience time.Duration) error {
	if err := s.arm(ctx, at); err != nil {
		return err
	}
	s.send(ctx, s.A, holder)
	return s.held(ctx, patience)
}

// held waits until the holder is stopped. One that has its answer will hardly be;
// but an answer may come too soon, before the COMMIT, and is waited beyond.
func (s *Scene) held(ctx context.Context, patience time.Duration) error {
	e, _ := s.seen(ctx, patience, holder, history.Holding, history.Answered)
	if e.Kind == history.Answered {
		e, _ = s.seen(ctx, min(patience, s.Times.Lease), holder, history.Holding)
	}
	if e.Kind != history.Holding {
		return errNoHolder
	}
	return nil
}

// arm makes the holder stop at the point, once it gets there. Whatever comes of
// the fault, it goes on when the fault is over.
func (s *Scene) arm(ctx context.Context, at failpoint.Point) error {
	s.afterwards(func(context.Context) error { return s.release() })
	if err := s.A.arm(holder, at); err != nil {
		return err
	}
	if _, ok := s.seen(ctx, s.Times.Wait, holder, history.Armed); !ok {
		return errNoHolder
	}
	return nil
}

var errNoHolder = errors.New("the holder did not get as far as its write")

// release lets the holder go on.
func (s *Scene) release() error { return s.A.release(holder) }

// seen waits for an event of a buyer.
func (s *Scene) seen(ctx context.Context, patience time.Duration, purchaser string, kinds ...history.Kind) (history.Event, bool) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return s.Log.Wait(ctx, func(e history.Event) bool { return e.Purchaser == purchaser && slices.Contains(kinds, e.Kind) })
}

// struck notes in the history what the fault did.
func (s *Scene) struck(what string, args ...any) {
	s.Log.Add(history.Event{
		Kind: history.Struck, At: time.Now(), Strategy: s.Subject.Name, Product: s.Product, Outcome: fmt.Sprintf(what, args...),
	})
}

// next sends buyers to B while the holder is stopped, and waits until one of
// them is in: it has sold, or it stands at the row that the holder has locked.
// Not longer than patience: under a lock that holds nobody gets in.
func (s *Scene) next(ctx context.Context, patience time.Duration) {
	for i := range 3 {
		s.send(ctx, s.B, fmt.Sprintf("next-%d", i))
	}
	if !s.locks() {
		patience = min(patience, time.Second) // nothing runs out there that could let somebody in later
	}
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, in := s.Log.Wait(waiting, func(e history.Event) bool {
		return strings.HasPrefix(e.Purchaser, "next-") && (e.Kind == history.Acquired || e.Outcome == string(purchase.Sold))
	})
	if !in {
		return
	}
	settled, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for settled.Err() == nil && !s.somebodySold() && !s.Servers.rowIsAwaited(settled) {
		time.Sleep(5 * time.Millisecond)
	}
}

// locks tells whether the strategy tells of a lock.
func (s *Scene) locks() bool {
	return slices.ContainsFunc(s.Log.Events(), func(e history.Event) bool { return e.Kind == history.Acquired })
}

func (s *Scene) somebodySold() bool {
	return slices.ContainsFunc(s.Log.Events(), func(e history.Event) bool {
		return strings.HasPrefix(e.Purchaser, "next-") && e.Outcome == string(purchase.Sold)
	})
}

// rowIsAwaited tells whether a statement waits for a row of the database. The
// counter is the server's own, which is not cached (docs/design.md).
func (s *Servers) rowIsAwaited(ctx context.Context) bool {
	var status struct{ Value int }
	err := s.engine.Admin.WithContext(ctx).Raw("SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'").Scan(&status).Error
	return err == nil && status.Value > 0
}

// crowd sends buyers to the shops at once and waits for their answers.
func (s *Scene) crowd(ctx context.Context, name string, buyers int, shops ...*Shop) []rush.Answer {
	c := rush.Crowd{Strategy: s.Subject.Name, Product: s.Product, Timeout: s.Times.Wait + answerPatience, Answered: s.note}
	for _, shop := range shops {
		c.BaseURLs = append(c.BaseURLs, shop.URL)
	}
	all := make([]rush.Buyer, buyers)
	for i := range all {
		all[i].Name = fmt.Sprintf("%s-%03d", name, i)
	}
	return c.Send(ctx, all)
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

// Answers waits for all buyers and returns what they got.
func (s *Scene) Answers() []rush.Answer {
	s.pending.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.answers)
}

// Audit reads the books.
func (s *Scene) Audit(ctx context.Context) (audit.Report, error) {
	return s.Servers.Books.Audit(ctx, s.Product)
}

// afterwards runs fn at the end of the cell, last first.
func (s *Scene) afterwards(fn func(ctx context.Context) error) { s.undo = append(s.undo, fn) }

// restartA starts a shop in the place of the one that was killed.
func (s *Scene) restartA(ctx context.Context) error {
	s.A.stop()
	shop, err := s.Servers.startShop(ctx, s.Launch, s.Times, s.Subject.Needs)
	if err != nil {
		return err
	}
	shop.tell(s.Log)
	s.A = shop
	return nil
}
