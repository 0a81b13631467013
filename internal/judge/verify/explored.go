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
)

// A Witness is the simplest schedule that an exploration saw break, with two drawings of it.
type Witness struct {
	recorded
	Text    string `json:"text"`    // a table, one step a row
	Mermaid string `json:"mermaid"` // a sequence diagram
}

// recorded is a witness without its MarshalJSON, which would drop the drawings.
type recorded explore.Witness

// eventOf is the one event of an exploration's column.
var eventOf = map[promise.Condition]explore.Event{
	promise.ExploreExpire: explore.Expire,
	promise.ExploreCrash:  explore.Crash,
	promise.ExploreForget: explore.Forget,
}

// Of an exploration.
const (
	exploredBuyers  = 2
	exploredProduct = "explored"

	// searchBudget is of one search; one that is not complete by then has shown
	// nothing. Those here take some seconds, on a machine that has nothing else to do.
	searchBudget = 10 * time.Minute

	// few is how many runs a search with so many preemptions may take for one with
	// one more to follow.
	few = 40
)

// Explore plays a cell of the explorer: it raises the number of preemptions until
// an order breaks, so that the witness is a simple one, and says how far it went.
// How far is a matter of the strategy and not of time.
func Explore(ctx context.Context, e *engine.Engine, entry lockstrategy.Entry, f promise.Condition, promised verdict.Verdict) (Cell, error) {
	start := time.Now()
	c := Cell{Strategy: entry.Name, Fault: f, Promise: promised, Replay: exploreCommand(e, entry, f)}
	x := exploration{Config: explore.Config{
		Engine: e, Strategy: entry, Buyers: exploredBuyers, Stock: 1, Parts: parts(entry), Product: exploredProduct, Budget: searchBudget,
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
		if freedAnothers(&c, n, entry.Lock.FreesAnothers) && x.result.ForeignWitness != nil {
			w = x.result.ForeignWitness
			c.Replay = replayOf(e, entry.Name, w)
		}
	}
	if w != nil {
		if err := c.witnessed(w); err != nil {
			return c, err
		}
	}
	c.Evidence = c.evidence()
	c.Settle()
	c.DurationMS = time.Since(start).Milliseconds()
	return c, nil
}

// exploreCommand is the exploration of a cell as a command of its own.
func exploreCommand(e *engine.Engine, entry lockstrategy.Entry, f promise.Condition) string {
	line := command(e, entry)
	if event, ok := eventOf[f]; ok {
		line += " --events " + string(event)
	}
	return line
}

// replayOf is the command that shows a witness again.
func replayOf(e *engine.Engine, strategy string, w *explore.Witness) string {
	return explore.Replay(strategy, engine.Flags(e.Name, e.URLs.LocalDB, e.URLs.LocalRedis), w)
}

// command begins the command that explores a strategy on an engine.
func command(e *engine.Engine, entry lockstrategy.Entry) string {
	line := "shop explore " + entry.Name + engine.Flags(e.Name, e.URLs.LocalDB, e.URLs.LocalRedis)
	if n := parts(entry); n > 0 {
		line += fmt.Sprintf(" --parts %d", n)
	}
	return line
}

// parts is explore.Config.Parts: where a strategy divides the stock, its buyers are to meet at
// the rows, and not at the product's, from which the first moves the units.
func parts(entry lockstrategy.Entry) int64 {
	if entry.Left != nil {
		return 2
	}
	return 0
}

// exploration is the searches of one cell, and what the last of them found.
type exploration struct {
	explore.Config
	result explore.Result
	never  bool // there was nothing that the event could strike
}

// run raises the number of preemptions until an order breaks, so that the witness is a
// simple one, or until there is no order left, or a level has taken so many runs that the
// next would take too long. How far it goes is a matter of the strategy and of no
// machine's speed: a level is searched whole.
//
// Order alone is searched to two preemptions at least, since a lock that needs a majority
// and takes less breaks there; an event may come at any step and takes one. Where a buyer
// has several commands on the way, to the nodes of a lock or by a worker of its own, the
// orders are too many: order alone ends with two, an event with none, and buyer 1 begins. A
// break that is promised there is looked for with one, until it is found.
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
			x.Bound, x.result.Explored = -1, x.result.All // by the states that are known, also of more preemptions
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

// verdict: that no order breaks takes all of them, and more than one.
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

// extent is how far it went, in words that claim no more.
func (x *exploration) extent() string {
	of := "of at most " + explore.Count(x.Bound, "preemption")
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

// replay is the line that shows the witness again, or searches as far again.
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

// witnessed draws the witness, and takes the books from its last step.
func (c *Cell) witnessed(w *explore.Witness) error {
	var text, mermaid strings.Builder
	if err := errors.Join(w.Text(&text, exploredBuyers), w.Mermaid(&mermaid, exploredBuyers)); err != nil {
		return err
	}
	c.Witness = &Witness{recorded: recorded(*w), Text: text.String(), Mermaid: mermaid.String()}
	if n := len(w.Steps); n > 0 {
		last := w.Steps[n-1]
		c.Audited = audit.Report{Stocked: 1, Leftover: last.Stock, Records: last.Records, UnitsSold: last.Records}.Sums()
	}
	return nil
}
