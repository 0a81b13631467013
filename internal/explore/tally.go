package explore

import (
	"cmp"
	"math"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A tally counts the ends of all schedules that continue from a place. A place is a state, with the buyer of the last
// step and the preemptions left.
type tally struct {
	schedules, foreign, early int
	verdicts                  map[verdict.Verdict]int
}

// tallies caches the tally of each place.
type tallies map[place]tally

func (all tallies) of(p place) tally {
	if t, known := all[p]; known {
		return t
	}
	t := tally{verdicts: map[verdict.Verdict]int{}}
	if end := p.at.ended; end != nil {
		t.schedules, t.verdicts[end.Verdict] = 1, 1
		if end.Foreign {
			t.foreign = 1
		}
		if end.Early {
			t.early = 1
		}
	}
	p.follow(func(_ *schedule.Choice, to place) {
		below := all.of(to)
		t.schedules, t.foreign, t.early = plus(t.schedules, below.schedules), plus(t.foreign, below.foreign), plus(t.early, below.early)
		for v, n := range below.verdicts {
			t.verdicts[v] = plus(t.verdicts[v], n)
		}
	})
	all[p] = t
	return t
}

// plus adds without overflow.
func plus(a, b int) int {
	if a > math.MaxInt-b {
		return math.MaxInt
	}
	return a + b
}

// A suffix is the rest of a schedule. A lower cost is better, in the order of candidate.cost.
type suffix struct {
	cost  [3]int
	token string
	rest  *suffix
}

// ends finds, for each place, the best suffix for whose end `wanted` returns true.
type ends struct {
	wanted func(*schedule.Ended) bool
	best   map[place]*suffix
}

// of returns the best suffix from p; nil if there is none.
func (all ends) of(p place) *suffix {
	if w, known := all.best[p]; known {
		return w
	}
	var best *suffix
	if p.at.ended != nil && all.wanted(p.at.ended) {
		best = &suffix{}
	}
	p.follow(func(c *schedule.Choice, to place) {
		rest := all.of(to)
		if rest == nil {
			return
		}
		w := &suffix{cost: rest.cost, token: c.Token, rest: rest}
		w.cost[0]++
		switch {
		case c.Event != "":
			w.cost[2]++
		case p.last != 0 && p.last != c.Buyer:
			w.cost[1]++
		}
		if best == nil || w.before(best) {
			best = w
		}
	})
	all.best[p] = best
	return best
}

// before reports whether w is better than other.
func (w *suffix) before(other *suffix) bool {
	return cmp.Or(slices.Compare(w.cost[:], other.cost[:]), slices.Compare(w.tokens(), other.tokens())) < 0
}

func (w *suffix) tokens() (tokens []string) {
	for ; w != nil && w.rest != nil; w = w.rest {
		tokens = append(tokens, w.token)
	}
	return tokens
}

// count sets the counts of the result. A schedule is a path through the graph, and the search has not run most paths.
// The graph has no cycle, since each step adds to the answers that a process has received. So count adds up the ends of
// all paths.
func (g *graph) count() {
	r := &g.result
	r.States = len(g.states)
	if g.root == nil {
		return
	}
	total := tallies{}.of(g.start(g.x.config.Bound))
	r.Explored, r.Foreign, r.Early, r.Verdicts = total.schedules, total.foreign, total.early, total.verdicts
	r.Violations = 0
	for v, n := range r.Verdicts {
		if v != verdict.Holds {
			r.Violations = plus(r.Violations, n)
		}
	}
	if r.Whole {
		r.All = tallies{}.of(g.start(anyNumber)).schedules
	}
	if r.Within >= 0 {
		r.ExploredWithin = tallies{}.of(g.start(r.Within)).schedules
	}
	if r.Complete {
		g.best = g.shortest(func(e *schedule.Ended) bool { return e.Verdict != verdict.Holds })
		g.foreign = g.shortest(func(e *schedule.Ended) bool { return e.Foreign })
	}
}

// shortest returns the best schedule for whose end `wanted` returns true.
func (g *graph) shortest(wanted func(*schedule.Ended) bool) *candidate {
	w := ends{wanted, map[place]*suffix{}}.of(g.start(g.x.config.Bound))
	if w == nil {
		return nil
	}
	end := g.root
	for _, token := range w.tokens() {
		end = end.next[slices.IndexFunc(end.choices, func(c *schedule.Choice) bool { return c.Token == token })]
	}
	return &candidate{Ended: schedule.Ended{Tokens: w.tokens(), Verdict: end.ended.Verdict, Why: end.ended.Why}, cost: w.cost}
}
