package explore

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Result holds the findings of a search.
type Result struct {
	Explored int    // complete schedules; with merged states, the search needs to run only a few of them
	Runs     int    // runs that were made, to the end of the schedule or to a known state
	Merged   bool   // equal states were merged
	States   int    // number of states, if Merged
	Digest   string // hash of the schedules that were run, in order, and of their verdicts
	Complete bool   // no other schedules exist within Config.Bound
	Whole    bool   // no other schedules exist, even without a bound
	All      int    // if Whole: number of schedules without a bound

	Within         int // all schedules with up to this many preemptions (switches away from a buyer that could continue) were explored; -1: not even those with 0
	ExploredWithin int // number of those schedules

	Never      []Event        // events that could not happen at any step
	Cut        int            // schedules given up because they had too many steps
	Overlapped int            // explored schedules with a concurrent pair: two commands sent to one server at once
	Missed     int            // branches after a concurrent pair that were given up, since the server did not repeat the pair's result
	Courses    map[string]int // how often each result of a concurrent pair occurred
	Violations int
	Verdicts   map[verdict.Verdict]int
	Seconds    float64
	First      float64  // seconds until the first violation
	Witness    *Witness // the best violation; nil if there is none

	// The following fields apply to a program under test. The result is not Complete if any run was void, or if
	// Late or Ignored is set.
	Void    int      // discarded runs, of which the explorer lost control; not in the other counts
	Voided  []Voided // their reasons and details
	Lost    int      // branches given up, since all their runs were void (discarded)
	Dropped int      // violations that did not break again, and are not counted
	// Unconfirmed counts violations that were never replayed. It is 0 if any replay broke. Violations excludes them.
	Unconfirmed int
	Reduced     bool // of schedules that differ only in the order of commuting commands, one was run
	Asleep      int  // runs that ended early, since other runs cover every choice that was left, see sleep.go
	Held        bool // schedules were left out, since a buyer exceeded Config.Tries
	Late        bool // schedules were left out, since a timer sent a command at different steps

	// The fields from here to Answers become the fields of Report with the same names, where they are explained. The lists
	// have at most maxNamed entries.
	Compound   []string
	Pauses     []string
	Divided    []string
	Holdable   bool
	Ignored    []string
	Uncompared []string

	Unforeseen string
	Namesakes  string
	Stray      string
	GaveUp     string
	Polls      bool
	Keeps      bool

	Answers answers

	exhausted bool // neither a budget nor the first violation ended the search

	Foreign        int      // schedules in which a buyer released another buyer's lock
	ForeignWitness *Witness // one of these schedules

	// Early counts schedules that told a buyer "sold out", although a later buyer could buy when all others were done. The
	// committed stock never rises without a restock, so the refused buyer could have had that unit. If another buyer takes
	// the unit before the end, the mistake stays hidden, unless that buyer crashes.
	Early int
}

// A search is the state of one call of Explorer.Search.
type search struct {
	x       *Explorer
	choices map[schedule.Choice]*schedule.Choice // one pointer for each distinct choice, so that pointers can be compared
	offered map[Event]bool                       // events that were a choice at some step
	result  Result
	digest  hash.Hash
	broken  int  // runs that broke, including those dropped later
	final   bool // after some schedule, code of the strategy still ran, so no other schedule can follow
	begun   time.Time
	limit   limit // used only for a program

	best, foreign *candidate
	violations    violations
	voids         voids
}

// A plan decides which schedule runs next. It is a tree or a graph.
type plan interface {
	// next returns the next execution, and a lower bound for its preemptions. If no schedule is left, `more` is false.
	next() (cost int, t execution, more bool)
	// whole reports whether the bound excluded no schedule.
	whole() bool
}

// An execution is one run that a plan selected. A plan decides which schedule runs next.
type execution interface {
	choose(p *schedule.Point) (token string, err error) // implements schedule.Chooser
	done(e schedule.Ended)
}

// Search explores until all schedules have been run, the budget is spent, or ctx ends. The result covers the schedules
// so far. If ctx has ended, the error is the context's cause.
func (x *Explorer) Search(ctx context.Context) (Result, error) {
	s := newSearch(x)
	bounded, cancel := s.limit.bounded(ctx)
	defer cancel()
	var err error
	if s.result.Merged {
		g := newGraph(s)
		err = s.runAll(bounded, g)
		g.count()
	} else {
		err = s.runAll(bounded, &tree{search: s, frontier: frontier{limit: x.config.Bound}})
		if err == nil {
			err = s.outlast(bounded)
		}
		if s.result.GaveUp != "" || s.result.Late || s.result.Unforeseen != "" || len(s.result.Ignored) > 0 { // schedules with any number of preemptions may have been left out
			s.result.Complete, s.result.Whole, s.result.Within = false, false, -1
		}
		if s.result.Whole {
			s.result.All = s.result.Explored
		}
	}
	s.result.Seconds = time.Since(s.begun).Seconds()
	s.result.Digest = hex.EncodeToString(s.digest.Sum(nil)[:8])
	if s.result.Complete { // if the search is not complete, an event may happen in a schedule that was not run
		s.result.Never = slices.DeleteFunc(slices.Clone(x.config.Events), func(e Event) bool { return s.offered[e] })
	}
	if x, ok := x.runner.(schedule.Poller); ok {
		s.result.Polls = x.Polls()
	}
	if errors.Is(err, ErrHarness) {
		return s.result, err
	}
	if errors.Is(err, errSpent) {
		if err = nil; s.result.Runs+s.result.Void+s.result.Cut == 0 {
			return s.result, s.limit.tooShort()
		}
	}
	return s.result, errors.Join(err, s.violations.show(ctx))
}

func newSearch(x *Explorer) *search {
	s := &search{
		x: x, choices: map[schedule.Choice]*schedule.Choice{}, offered: map[Event]bool{}, begun: time.Now(), digest: sha256.New(),
		result: Result{Verdicts: map[verdict.Verdict]int{}, Courses: map[string]int{}, Within: -1},
	}
	s.result.Merged = x.runner.Stated() && x.mode.merges()
	s.result.Reduced = x.config.reduced()
	s.voids.result, s.violations = &s.result, x.mode.violations(s)
	return s
}

func (s *search) runAll(ctx context.Context, p plan) error {
	c, result := s.x.config, &s.result
	for {
		cost, execution, more := p.next()
		if !more {
			break
		}
		if cost > result.Within+1 && result.Cut == 0 && result.Void == 0 && !c.Overlap && !result.Reduced {
			result.Within, result.ExploredWithin = cost-1, result.Explored
		}
		if c.Schedules > 0 && result.Runs+result.Void >= c.Schedules || s.violations.spent() {
			return nil
		}
		if err := s.run(ctx, execution); err != nil {
			return err
		}
		if c.Progress != nil {
			c.Progress(result.Runs, s.broken)
		}
		if c.First && s.broken > 0 || s.final {
			return nil
		}
	}
	result.exhausted = true
	result.Complete = result.Cut == 0 && result.Void == 0
	result.Whole = result.Complete && p.whole()
	return nil
}

// outlast lets one buyer exceed Config.Tries, to observe it after its last retry. It does so only if the search
// is complete except for schedules with more retries.
func (s *search) outlast(ctx context.Context) error {
	x, ok := s.x.runner.(schedule.Patient)
	if !ok || !s.result.Held || !s.result.Complete || s.result.Violations > 0 {
		return nil
	}
	for tries := 1; ; tries++ {
		gaveUp, err := x.Outlast(ctx)
		switch {
		case ctx.Err() != nil:
			s.result.Complete, s.result.Whole = false, false
			return context.Cause(ctx)
		case err == nil:
			s.result.GaveUp = gaveUp
			return nil
		case errors.Is(err, schedule.ErrDivergence):
			err = s.x.mode.diverged(err.Error())
		case !isVoid(err):
			return err
		}
		if tries == voidTries {
			return s.voids.count(err)
		}
	}
}

func (s *search) run(ctx context.Context, t execution) error {
	begun := time.Now()
	defer func() { s.limit.took(time.Since(begun)) }()
	e, err := s.x.runner.Run(ctx, t.choose, s.x.config.Overlap)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isVoid(err):
		if v, _ := schedule.AsVoid(err); v.Missed {
			s.missed(t, v)
			return nil
		}
		return s.voidBranch(t, err)
	case err != nil:
		return fmt.Errorf("%w; schedule %s", err, strings.Join(e.Tokens, "."))
	}
	s.violations.begin(s.voids.inARow > 0)
	s.voids.good()
	t.done(e)
	s.note(e)
	return nil
}

// maxNamed is the maximum length of a list of commands in a result.
const maxNamed = 20

// withNew appends the entries of seen that are not in all yet, up to maxNamed entries in total.
func withNew(all, seen []string) []string {
	for _, text := range seen {
		if !slices.Contains(all, text) && len(all) < maxNamed {
			all = append(all, text)
		}
	}
	return all
}

func (s *search) note(e schedule.Ended) {
	r := &s.result
	r.Compound, r.Divided, r.Holdable = withNew(r.Compound, e.Compound), withNew(r.Divided, e.Divided), r.Holdable || e.Holdable
	r.Ignored, r.Uncompared = withNew(r.Ignored, e.Ignored), withNew(r.Uncompared, e.Uncompared)
	r.Namesakes, r.Stray = cmp.Or(r.Namesakes, e.Namesakes), cmp.Or(r.Stray, e.Stray)
	fmt.Fprintln(s.digest, e.Tokens, e.Verdict)
	if !e.Pruned || r.Merged || r.Reduced {
		r.Runs++
	}
	if e.Pruned && r.Reduced {
		r.Asleep++
	}
	if r.Reduced {
		r.Unforeseen = cmp.Or(r.Unforeseen, e.Unforeseen)
	}
	if e.Pruned {
		return
	}
	if e.Cut {
		r.Cut++
		return
	}
	s.final = s.final || e.Final
	r.Explored++
	r.Verdicts[e.Verdict]++
	s.violations.ended(e)
	if e.Concurrent {
		r.Overlapped++
	}
	if e.Verdict != verdict.Holds {
		s.broken++
		if r.Violations++; r.Violations == 1 {
			r.First = time.Since(s.begun).Seconds()
		}
		s.violations.rank(e)
	}
	if e.Early {
		r.Early++
	}
	if e.Foreign {
		r.Foreign++
		s.foreign = s.foreign.better(e)
	}
}

// options returns the choices of a point that the search explores, each as its pointer from intern.
func (s *search) options(p *schedule.Point) (all []*schedule.Choice) {
	newcomer := 0              // with Symmetry: the only buyer that may start
	first := map[string]bool{} // for each class of interchangeable nodes: whether a choice for one is in the result
	for _, a := range p.Choices {
		if a.Event != "" {
			s.offered[a.Event] = true
		}
		if s.x.config.Symmetry && a.Command() && !p.Begun(a.Buyer) {
			if newcomer == 0 {
				newcomer = a.Buyer
			}
			if a.Buyer != newcomer {
				continue
			}
		}
		if standing, fresh := s.fresh(p, a.Touches); fresh {
			same := fmt.Sprint(a.Buyer, a.Background, a.Name, standing)
			if first[same] {
				continue
			}
			first[same] = true
		}
		all = append(all, s.intern(a))
	}
	return all
}

// fresh returns p.Fresh, which tells whether a Redis node has received no command. If symmetry reduction does not apply
// to nodes, it returns zero values.
func (s *search) fresh(p *schedule.Point, server string) (standing string, fresh bool) {
	if !s.x.config.nodesAlike() {
		return "", false
	}
	return p.Fresh(server)
}

// intern returns the pointer that the search uses for all choices equal to c.
func (s *search) intern(c schedule.Choice) *schedule.Choice {
	known := s.choices[c]
	if known == nil {
		known = &c
		s.choices[c] = known
	}
	return known
}
