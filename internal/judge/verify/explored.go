package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/plural"
)

// A DrawnWitness is the simplest schedule with which an exploration found a violation, with two drawings.
type DrawnWitness struct {
	recorded
	Text    string `json:"text"`    // a table with one row for each step
	Mermaid string `json:"mermaid"` // a sequence diagram
}

// recorded is an explore.Witness without its MarshalJSON method, which would omit the drawings.
type recorded explore.Witness

var eventOf = map[promise.Condition]explore.Event{
	promise.ExploreExpire: explore.Expire,
	promise.ExploreCrash:  explore.Crash,
	promise.ExploreForget: explore.Forget,
}

// Limits of an exploration.
const (
	exploredBuyers  = 2
	exploredProduct = "explored"

	// searchBudget limits one search. An incomplete search proves nothing. These searches take some
	// seconds on an idle machine.
	searchBudget = 10 * time.Minute

	// few is the number of runs above which the search with one more preemption is not tried.
	few = 40
)

// exploreCell searches for a schedule, an order of the buyers' steps, that breaks the strategy. The first
// search allows no preemption (switch to another buyer), and each further search one more, until a schedule
// breaks. So the schedule that it finds is simple. The cell says how many preemptions were searched.
func exploreCell(ctx context.Context, e *engine.Engine, entry lockstrategy.Entry, f promise.Condition, promised verdict.Verdict) (Cell, error) {
	start := time.Now()
	c := Cell{Strategy: entry.Name, Fault: f, Promise: promised, Replay: exploreCommand(e, entry, f)}
	x := exploration{Config: explore.Config{
		OfStrategy: explore.OfStrategy{Engine: e, Strategy: entry, Stock: 1, Parts: parts(entry), Product: exploredProduct},
		Buyers:     exploredBuyers, Budget: searchBudget,
	}}
	if event, ok := eventOf[f]; ok {
		x.Events = []explore.Event{event}
	}
	if err := x.run(ctx, promised); err != nil {
		return c, err
	}
	c.Verdict, c.Reason = x.verdict()
	c.Struck = x.extent()
	c.Replay = x.replay()
	w := x.result.Witness
	if n := x.result.Foreign; n > 0 {
		if judgeForeignRelease(&c, n, entry.Lock.FreesAnothers) && x.result.ForeignWitness != nil {
			w = x.result.ForeignWitness
			c.Replay = replayOf(e, entry.Name, w)
		}
	}
	if w != nil {
		if err := c.witnessed(w); err != nil {
			return c, err
		}
	}
	broke := false
	if f == promise.Explore && promised.Keeps(c.Verdict) {
		var err error
		if broke, err = c.vary(ctx, x.Config); err != nil {
			return c, err
		}
	}
	c.Evidence = c.evidence()
	c.Settle()
	c.OK = c.OK && !broke
	c.DurationMS = time.Since(start).Milliseconds()
	return c, nil
}

func exploreCommand(e *engine.Engine, entry lockstrategy.Entry, f promise.Condition) string {
	line := command(e, entry)
	if event, ok := eventOf[f]; ok {
		line += " --events " + string(event)
	}
	return line
}

func replayOf(e *engine.Engine, strategy string, w *explore.Witness) string {
	return explore.Replay(strategy, engine.Flags(e.Name, e.URLs.LocalDB, e.URLs.LocalRedis), w)
}

// command returns the beginning of the command line that explores a strategy on an engine.
func command(e *engine.Engine, entry lockstrategy.Entry) string {
	line := "shop explore " + entry.Name + engine.Flags(e.Name, e.URLs.LocalDB, e.URLs.LocalRedis)
	if n := parts(entry); n > 0 {
		line += fmt.Sprintf(" --parts %d", n)
	}
	return line
}

// parts returns the number of parts for explore.Config.Parts. A strategy that divides the stock sells from several
// rows (parts), and the search must show conflicts at these rows. So the units start in the parts. If they started
// in the product's own row, the first buyer would move them, and all buyers would conflict at that row.
func parts(entry lockstrategy.Entry) int64 {
	if entry.Left != nil {
		return 2
	}
	return 0
}

// An exploration is the series of searches of one cell, and the result of the last one.
type exploration struct {
	explore.Config
	result explore.Result
	never  bool // the event that the search adds, such as a crash, could never take effect
}

// run searches with more and more preemptions. It stops when a schedule breaks, no schedule is left, or the
// next search would take too many runs. Each search is complete, so the extent depends on the strategy and not
// on the machine's speed.
//
// Without an event, such as a crash, run allows at least two preemptions: two can break a majority lock that
// too few nodes grant. With an event, it allows at least one. If a buyer has several commands in flight, to
// several nodes or through a worker, there are too many schedules. Then run stops at these minimums. In this
// case it allows no preemption with an event if the strategy promises to hold. Without that promise, only
// buyer 1 may begin a schedule with preemptions.
func (x *exploration) run(ctx context.Context, promised verdict.Verdict) error {
	wide := slices.Contains(x.Strategy.Needs, lockstrategy.NeedsRedlock) || x.Strategy.WritesLater
	x.Symmetry = wide
	least := 2
	switch breaks := promised != verdict.Holds; {
	case len(x.Events) == 0:
	case wide && !breaks:
		least = 0
	default:
		least = 1
	}
	for x.Bound = 0; ; x.Bound++ {
		x.First = wide && x.Bound > 0 && promised != verdict.Holds
		if err := x.search(ctx); err != nil || x.result.Violations > 0 || !x.result.Complete {
			return err
		}
		x.never = len(x.result.Never) > 0
		switch {
		case x.result.Whole:
			x.Bound, x.result.Explored = -1, x.result.All // the search has covered every state, so the number of preemptions has no limit
			return nil
		case x.Bound >= least && (wide || x.result.Runs > few):
			return nil
		}
	}
}

func (x *exploration) search(ctx context.Context) (err error) {
	explorer, err := explore.New(ctx, x.Config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, explorer.Close()) }()
	x.result, err = explorer.Search(ctx)
	return err
}

// verdict returns the verdict and its reason. "Holds" requires a complete search with more than one schedule.
func (x *exploration) verdict() (verdict.Verdict, string) {
	switch {
	case x.result.Witness != nil:
		return x.result.Witness.Verdict, x.result.Witness.Why
	case x.never:
		return verdict.Inconclusive, fmt.Sprintf("the event %s never came", x.Events[0])
	case !x.result.Complete:
		return verdict.Inconclusive, fmt.Sprintf("the search did not end within %s", searchBudget)
	case x.result.Explored < 2:
		return verdict.Inconclusive, "there was one order only"
	}
	return verdict.Holds, "no order breaks"
}

func (x *exploration) extent() string {
	of := "of at most " + plural.Count(x.Bound, "preemption")
	switch {
	case x.result.Violations == 0:
		return explore.NewReport(x.Config, x.result).Extent()
	case x.First:
		return fmt.Sprintf("seen in schedule %d %s", x.result.Explored, of)
	case x.Bound < 0:
		of = "in all"
	}
	return fmt.Sprintf("%d of the %d schedules %s break", x.result.Violations, x.result.Explored, of)
}

// replay returns the command that shows the breaking schedule again. If none breaks, the command repeats the
// search.
func (x *exploration) replay() string {
	if w := x.result.Witness; w != nil {
		return replayOf(x.Engine, x.Strategy.Name, w)
	}
	line := command(x.Engine, x.Strategy)
	if len(x.Events) > 0 {
		line += " --events " + string(x.Events[0])
	}
	if x.Bound >= 0 {
		line += fmt.Sprintf(" --bound %d", x.Bound)
	}
	return line
}

// witnessed draws the breaking schedule w. It copies stock and records from the last step of w.
func (c *Cell) witnessed(w *explore.Witness) error {
	var text, mermaid strings.Builder
	if err := errors.Join(w.Text(&text, len(w.Outcomes)), w.Mermaid(&mermaid, len(w.Outcomes))); err != nil {
		return err
	}
	c.Witness = &DrawnWitness{recorded: recorded(*w), Text: text.String(), Mermaid: mermaid.String()}
	if n := len(w.Steps); n > 0 {
		last := w.Steps[n-1]
		c.Audited = audit.Sums{Stocked: 1, Leftover: last.Stock, Records: last.Records, UnitsSold: last.Records}.Computed()
	}
	return nil
}
