package judge

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/exercises"
	"github.com/oversell/oversell/exercises/kata"
	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

// searchWithin limits a search of the schedules (orders of the buyers' commands). An unfinished search proves
// nothing.
const searchWithin = 60 * time.Second

func (s *subject) search(ctx context.Context, q exercises.Search) (c Check, err error) {
	e, err := s.open(ctx, nil)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	before, err := read(ctx, e)
	if err != nil {
		return c, err
	}
	config, err := s.config(e, q)
	if err != nil {
		return c, err
	}
	defer explore.OneProcessor(false)()
	result, err := explored(ctx, config)
	if err != nil {
		return c, err // close nothing, since Close would wait for code that does not end
	}
	after, err := read(ctx, e)
	if err != nil {
		return c, err
	}
	if other := touched(before, after, first, second); other != "" {
		return c, wrongf("something is changed that no buyer has asked for: %s", other)
	}
	return shown(q, config, result), nil
}

// few is the number of schedules in a short first search. It is enough to find a buyer that loops forever,
// which would make the full search endless.
const few = 50

// explored runs a short search. If it finds nothing, explored runs the full one.
func explored(ctx context.Context, c explore.Config) (r explore.Result, _ error) {
	for _, c.Schedules = range []int{few, 0} {
		x, err := explore.New(ctx, c)
		if err != nil {
			return r, err
		}
		if r, err = x.Search(ctx); err != nil {
			return r, err
		}
		if err := x.Close(); err != nil || r.Complete || r.Cut > 0 || r.Violations > 0 && c.First {
			return r, err
		}
	}
	return r, nil
}

func (s *subject) config(e *engine.Engine, q exercises.Search) (explore.Config, error) {
	events, err := explore.ParseEvents(q.Events)
	if err != nil {
		return explore.Config{}, fmt.Errorf("%s: %w", s.exercise.Folder, err)
	}
	c := explore.Config{
		OfStrategy: explore.OfStrategy{Engine: e, Strategy: s.entry(e, q), Stock: max(q.Stock, 1), Product: first},
		Buyers:     max(q.Buyers, 2), Events: events, Bound: -1, Shared: q.Shared, Budget: searchWithin, First: !q.Foreign,
		Full: q.Scenario == exercises.BothWays, // the search does not know the state of the second product
	}
	if q.Bound != nil {
		c.Bound = *q.Bound
		c.Symmetry = q.Scenario == exercises.Once && c.Buyers > 2
	}
	return c, c.Check()
}

// entry describes the learner's code as a lock strategy, in the form that the explorer needs.
func (s *subject) entry(e *engine.Engine, q exercises.Search) lockstrategy.Entry {
	entry := lockstrategy.Entry{
		Name: kata.Name,
		New: func(d lockstrategy.Deps) purchase.Strategy {
			if q.Scenario == exercises.BothWays {
				_ = errors.Join(product.Put(e.Admin, second, explore.MaxBuyers), purchase.Clear(e.Admin, second))
			}
			return s.seller(d, q.Scenario)
		},
	}
	if s.exercise.Redis {
		entry.Needs = []lockstrategy.Need{lockstrategy.NeedsRedis}
	}
	if s.exercise.Second {
		entry.Needs = append(entry.Needs, lockstrategy.NeedsRedlock)
	}
	entry.Scripts = kata.Scripts()
	if own, ok := s.new(kata.Kit{}).(kata.Scripted); ok {
		entry.Scripts = append(entry.Scripts, own.Scripts()...)
	}
	return entry
}

// touched describes the differences between two books (contents of the servers), except for the given products.
func touched(before, after book, but ...string) string {
	for b := range slices.Values([]book{before, after}) {
		for key, text := range b {
			for _, name := range but {
				if strings.HasSuffix(key, " of "+name) || strings.HasPrefix(key, "record ") && strings.Contains(text, " of "+name+" for ") {
					delete(b, key)
				}
			}
		}
	}
	return before.changes(after)
}

func shown(q exercises.Search, config explore.Config, r explore.Result) Check {
	report := explore.NewReport(config, r)
	report.NodesAlike = false // with at most one node, the search skipped no node as equivalent
	if len(config.Engine.Redlock) > 0 {
		named(r.Witness)
		named(r.ForeignWitness)
	}
	found := r.Witness
	if q.Foreign {
		found = r.ForeignWitness
	}
	switch {
	case q.Foreign && r.Foreign > 0:
		return broken(found, config.Buyers, fmt.Sprintf("a buyer deletes the lock of another, in %d of %d orders", r.Foreign, r.Explored))
	case !q.Foreign && r.Violations > 0:
		return broken(found, config.Buyers, fmt.Sprintf("%s: %s", found.Verdict, found.Why))
	case r.Cut > 0:
		return Check{Verdict: Wrong, Why: "a buyer tries again without end; if it waits for another buyer, call kit.Sleep between two tries, so that the search sees the wait"}
	case !r.Complete:
		return Check{Verdict: Unsure, Why: fmt.Sprintf("nothing was found, and not all orders were tried: %s", report.Extent())}
	case len(r.Never) > 0:
		return Check{Verdict: Unsure, Why: fmt.Sprintf("%s had no effect: this exercise is about a lock in Redis", listed(r.Never))}
	case r.Explored < 2 && !q.Shared:
		return Check{Verdict: Wrong, Why: "the buyers wait for each other in memory that a second process does not have: they never meet at a server"}
	case r.Explored < 2:
		return Check{Verdict: Passed, Why: "the buyers of one process wait for each other in its memory, so there is one order alone"}
	}
	return Check{Verdict: Passed, Why: report.Extent()}
}

func listed(events []explore.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, string(e))
	}
	return strings.Join(all, ", ")
}

// broken returns a failed Check that shows the witness, a schedule that breaks the code, in words and as
// diagrams.
func broken(w *explore.Witness, buyers int, why string) Check {
	var table, mermaid strings.Builder
	_, _ = w.Text(&table, buyers), w.Mermaid(&mermaid, buyers)
	return Check{Verdict: Wrong, Why: why, Story: Story(w), Diagram: table.String(), Mermaid: mermaid.String()}
}

// named gives the two stores of a witness (a schedule that breaks the code) the names that a learner knows
// from Kit.Stores. The witness may be nil.
func named(w *explore.Witness) {
	if w == nil {
		return
	}
	names := strings.NewReplacer("redlock-1", "store-2", string(lockstrategy.NeedsRedis), "store-1")
	for i := range w.Steps {
		s := &w.Steps[i]
		s.Server = names.Replace(s.Server)
		if strings.HasPrefix(s.Command, "(") { // an event of a server; no buyer sends it
			s.Command = names.Replace(s.Command)
		}
	}
}
