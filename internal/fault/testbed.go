package fault

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/load/pulse"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/testbed"
)

// A Subject is a strategy under test.
type Subject struct {
	Name  string
	Needs []lockstrategy.Need
}

// A Testbed is a cell of `shop verify`: one strategy, one product and two shops on the same servers. The
// holder, which the fault stops, buys at shop A; other buyers buy at B. A Testbed serves one call of Play.
//
//	open: restock, send a buyer to each shop
//	inject: stop a holder at A, cause the damage, send other buyers to B, let the holder go on
//	finish: repair the damage, send a burst of buyers for the rest of the stock
type Testbed struct {
	Subject Subject
	Product string
	Stock   int64
	Servers *Servers
	A, B    *CellShop
	Launch  Launch
	Log     *history.Log
	Times   Times

	// Confirmed means that replicas confirm each lock, if the strategy can wait for replicas.
	Confirmed bool

	buyers *clients
	orders rush.RepeatedOrders
	repairs
}

// Facts are the results of one call of Play.
type Facts struct {
	Proof   string
	Missed  string              // why the fault did not take effect; "" if it did
	Answers []buyers.Answer     // final answers of all buyers
	Last    []buyers.Answer     // answers of the last bursts, after the repair
	Visits  []buyers.Answer     // all answers, if buyers asked more than once; otherwise nil
	Orders  rush.RepeatedOrders // orders that were repeated with their Idempotency-Key
	Stalled string              // why no buyer was served; "" if buyers were served
	Times   Times
	// Kept is how long a lock may still block the buyers of Last although the shop works correctly.
	Kept time.Duration
	// Starved are the times at which the machine delayed this process during Play.
	Starved pulse.Delays
}

// Play opens the testbed, injects the fault and finishes. Its error means that the test itself failed, not the
// shop.
func (t *Testbed) Play(ctx context.Context, f Fault) (facts Facts, err error) {
	t.buyers = newClients(t)
	defer t.buyers.close()
	alive := pulse.Start()
	defer alive.Stop()
	if err := open(ctx, t); err != nil {
		return Facts{}, err
	}
	facts.Times, facts.Kept = t.Times, t.Times.kept(f)
	start := time.Now()
	facts.Proof, err = f.Inject(ctx, t)
	err = errors.Join(err, t.repair(ctx))
	if err := facts.injected(err, alive.Delays().Mostly(start, time.Now())); err != nil {
		return Facts{}, err
	}
	if facts.Last, err = finish(ctx, t); err != nil {
		return Facts{}, err
	}
	facts.Answers, facts.Orders, facts.Starved = t.buyers.answers(), t.orders, alive.Delays()
	return facts, nil
}

// injected stores the error of an injection in the facts, or returns it if the test itself failed. If
// `starved`, a text about delays of this machine, is not "", shops that served no buyer prove nothing.
func (f *Facts) injected(err error, starved string) error {
	var stalled *stalledError
	switch {
	case errors.As(err, &stalled) && starved != "":
		f.Missed = stalled.what + ", and " + starved
	case errors.As(err, &stalled):
		f.Stalled = stalled.what
	case errors.Is(err, errNoHolder), errors.Is(err, ErrMissed):
		f.Missed = err.Error()
	default:
		return err
	}
	return nil
}

// open restocks the product and lets a buyer of each shop buy one unit. So caches and counters are filled
// before the fault stops a buyer.
func open(ctx context.Context, t *Testbed) error {
	shelf := rush.Target{BaseURL: t.A.URL()}
	if err := shelf.Restock(ctx, t.Product, t.Stock); err != nil {
		return fmt.Errorf("restock: %w", err)
	}
	for i, shop := range t.shops() {
		a := patient(ctx, t, t.buyers, shop, fmt.Sprintf("first-%d", i))
		if a.Outcome == purchase.Sold {
			continue
		}
		err := fmt.Errorf("before the fault a buyer was answered %s: %s", a.Outcome, a.Detail)
		if a.Status == http.StatusServiceUnavailable || a.Outcome == purchase.LockLost || a.Outcome == purchase.Unknown {
			return &rush.TimeoutError{Err: err}
		}
		return err
	}
	return nil
}

// finish waits until both shops are ready, and lets bursts of buyers buy the remaining units.
func finish(ctx context.Context, t *Testbed) (last []buyers.Answer, err error) {
	t.buyers.wait()
	sender := t.buyers.sender
	for _, shop := range t.shops() {
		if !shop.Ready(ctx, time.Minute) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			return nil, errors.New("a shop was not ready a minute after the fault")
		}
		sender.URLs = append(sender.URLs, shop.URL())
	}
	_, last, err = rush.BuyRest(ctx, sender, t.Servers.Auditor, "crowd")
	return last, err
}

// Audit reads the product's stock and records.
func (t *Testbed) Audit(ctx context.Context) (audit.Sums, error) {
	return t.Servers.Auditor.Audit(ctx, t.Product)
}

func (t *Testbed) injected(what string, args ...any) {
	t.Log.Add(history.Event{
		Kind: history.Struck, At: time.Now(), Strategy: t.Subject.Name, Product: t.Product, Outcome: fmt.Sprintf(what, args...),
	})
}

func (t *Testbed) setting() Setting {
	return Setting{Times: t.Times, Product: t.Product, Write: failpoint.Commit, Down: t.Times.Reach()}
}

func (t *Testbed) redis() (*redisServers, testbed.Links) {
	return &t.Servers.redisServers, slices.Concat(t.A.redis(), t.B.redis())
}

func (t *Testbed) process() Process { return cellProcess{t.A, t} }

// A cellProcess is shop A's process.
type cellProcess struct {
	*CellShop
	t *Testbed
}

// Kill first waits a moment for an answer to the holder, whose sale is not committed yet. An answer at this
// time acknowledges a sale too early.
func (p cellProcess) Kill() error {
	seen(context.Background(), p.t, 100*time.Millisecond, holder, history.Answered)
	return p.CellShop.Kill()
}

func (p cellProcess) StartAgain(ctx context.Context) error { return p.t.startAgain(ctx, &p.t.A) }

func (t *Testbed) shops() []*CellShop { return []*CellShop{t.A, t.B} }

// anew restarts both shops. Each connects to its own database node first, through links of its own.
func (t *Testbed) anew(ctx context.Context) error {
	return errors.Join(t.startAgain(ctx, &t.A), t.startAgain(ctx, &t.B))
}

func (t *Testbed) startAgain(ctx context.Context, shop **CellShop) error {
	next, err := t.Servers.Restart(ctx, *shop, t.Launch, t.Times, t.Subject.Needs)
	if err != nil {
		return err
	}
	next.recordTo(t.Log)
	*shop = next
	return nil
}

// A stalledError describes a stall of the buyers because of the fault.
type stalledError struct{ what string }

func (e *stalledError) Error() string { return e.what }
