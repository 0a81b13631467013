package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// OfProgram is the part of Config for programs under test. NewOn explores them.
type OfProgram struct {
	Program string // name of the program; "": explore a strategy of the catalogue
	Servers string // the program's servers as text: "MariaDB 10.11.6, Redis 7.0"
	Again   string // the command that repeats the search, such as "shop explore --app oversell.yaml"
	// Reduce uses sleep sets: of the schedules that differ only in the order of commuting commands, the search runs one.
	// Reduce has no effect with Full, Overlap, Shared, Symmetry, a Bound, or MaxEvents.
	Reduce bool
	// Tries is the maximum number of futile retries in a row. A retry is futile if the buyer sends the same commands and
	// gets the same answers, while another buyer could continue. The search leaves out schedules with more, since there
	// may be infinitely many.
	Tries int
	// Ignore lists the entries of `ignore` in oversell.yaml: commands that the program sends for itself, not for a
	// buyer. They are not steps.
	Ignore []string
	// Split runs an autocommitted statement as two steps, execution and commit, if another buyer's command could see the
	// difference. For a program, --overlap sets Split instead of Overlap.
	Split bool
	// Atomic reports that oversell.yaml has `atomic: accepted`: the user asserts that no other write comes between the
	// read and the write of one statement. See Report.Divided.
	Atomic bool
	// Racing is one line about a buyer that breaks a rule even when it runs alone.
	Racing string
	// ShortPauses reports that oversell.yaml has `pauses: accepted`. Some pauses are too short to explore: the user
	// asserts that no buyer relies on its pooled connection during them.
	ShortPauses bool
	// AnyOrder reports that oversell.yaml has `answers: accepted`: the user asserts that the order of the answers to
	// parallel commands of one buyer does not matter.
	AnyOrder bool
}

type programMode struct{ Config }

func (m programMode) name() string { return m.Program }

func (m programMode) check() error { return m.checkEvents() }

// schedule implements mode. The replay string of a program contains no stock.
func (m programMode) schedule(tokens []string) Schedule {
	return Schedule{Strategy: m.Program, Buyers: m.Buyers, Stock: 1, Shared: m.Shared, Overlap: m.Split, Tokens: tokens}
}

func (m programMode) stocked(s Schedule) bool { return len(s.Units) == 0 && s.Parts == 0 && !s.OneKey }

func (m programMode) merges() bool { return false } // a program's state is unknown

// diverged implements mode. For a program, it returns a Void error: the run is discarded.
func (m programMode) diverged(details string) error {
	return schedule.Void{Why: schedule.ErrUnrepeated.Error(), Details: details, Diverged: true}
}

func (m programMode) hint(err error) error { return err }

func (m programMode) violations(s *search) violations {
	s.limit = limit{begun: s.begun, budget: m.Budget}
	return &programViolations{s: s}
}

func (m programMode) origin(r *Report) { r.Engine, r.Server, r.again = AppEngine, m.Servers, m.Again }

// mostRanked is the maximum number of violations that are kept for replay: the most promising ones. At least
// leastReplayed of them are replayed, unless the budget ends.
const mostRanked, leastReplayed = 1000, 10

// leastShrinking is the minimum time for shortening a violation's schedule, unless the budget ends.
const leastShrinking = 5 * time.Second

// programViolations keeps the runs of a program that broke, and replays them. A violation counts only if a replay
// breaks again.
type programViolations struct {
	s         *search
	ranked    []*candidate // candidates for replay
	answers   answers      // the answers in all violations, including those not kept
	last      *candidate   // the latest run, if it broke
	afterVoid bool         // the run before the latest was void: the explorer lost control of it
	until     time.Time    // end of the time for replaying and shrinking
}

func (v *programViolations) begin(afterVoid bool) { v.last, v.afterVoid = nil, afterVoid }

func (v *programViolations) doubt() {
	if v.last != nil {
		v.last.doubtful = true
	}
}

func (v *programViolations) ended(e schedule.Ended) {
	v.s.result.Answers = v.s.result.Answers.add(e, 1)
}

func (v *programViolations) spent() bool { return v.s.limit.searched(v.s.broken > 0) }

func (v *programViolations) rank(e schedule.Ended) {
	v.answers = v.answers.add(e, 1)
	v.last = newCandidate(e)
	v.last.doubtful = v.afterVoid
	if v.ranked = append(v.ranked, v.last); len(v.ranked) == 2*mostRanked {
		slices.SortFunc(v.ranked, (*candidate).promises)
		v.ranked = v.ranked[:mostRanked]
	}
}

func (v *programViolations) isLate(ctx context.Context) bool {
	return ctx.Err() != nil || time.Now().After(v.until)
}

// allow sets the time for the following replays to patience, or to the rest of the budget if that is shorter.
func (v *programViolations) allow(patience time.Duration) {
	v.until = time.Now().Add(patience)
	if end, limited := v.s.limit.end(); limited && end.Before(v.until) {
		v.until = end
	}
}

func (v *programViolations) over() bool {
	end, limited := v.s.limit.end()
	return limited && time.Now().After(end)
}

// promises compares two candidates: it returns a negative number if c is more promising. A doubtful candidate is less
// promising than any other. Among equals, the better candidate is more promising.
func (c *candidate) promises(other *candidate) int {
	if c.doubtful != other.doubtful {
		if c.doubtful {
			return 1
		}
		return -1
	}
	return c.compare(other)
}

// steadyReplays is the number of replays that must break before a violation counts as steady.
const steadyReplays = 2

// A confirmed violation has broken again in a replay. It is unsteady if some replays did not break. Then it depends on
// something that its schedule does not determine, such as the number of pooled connections.
type confirmed struct {
	c              *candidate
	w              *Witness
	broke, replays int // broke: replays that ended with the same verdict; replays: those that reached an end or diverged
}

// isSteady reports whether every replay broke, and enough of them reached an end.
func (v *confirmed) isSteady() bool { return v.broke == v.replays && v.broke >= steadyReplays }

// isSteadier reports whether a larger share of v's replays broke than of other's, or the same share of more replays.
// The parameter `other` may be nil.
func (v *confirmed) isSteadier(other *confirmed) bool {
	if other == nil {
		return true
	}
	share := cmp.Compare(v.broke*other.replays, other.broke*v.replays)
	return cmp.Or(share, cmp.Compare(v.replays, other.replays)) > 0
}

// show implements violations. It replays violations, the most promising first, until one is steady: each replay breaks.
// It drops violations that never break again. If none is steady, it shows the steadiest. If none breaks again, it drops
// all. Replaying may take as long as the search, and so may shortening. The budget ends both.
func (v *programViolations) show(ctx context.Context) error {
	s := v.s
	patience := max(time.Since(s.begun), leastShrinking)
	slices.SortFunc(v.ranked, (*candidate).promises)
	s.voids.forgiven = true
	v.allow(patience)
	var best *confirmed
	for n, c := range v.ranked {
		if (n >= leastReplayed || best != nil) && v.isLate(ctx) || v.over() {
			break
		}
		found, err := v.confirm(ctx, c)
		if err != nil {
			return err
		}
		if found != nil && found.isSteadier(best) {
			best = found
		}
		if best != nil && best.isSteady() || ctx.Err() != nil || v.over() {
			break
		}
		if found == nil {
			v.drop(c)
		}
	}
	if best == nil {
		v.dropAll()
		return nil
	}
	var err error
	if !s.result.exhausted {
		v.allow(patience)
		best, err = v.shrunk(ctx, best)
	}
	s.result.Witness = best.w
	if !best.isSteady() {
		best.w.Again = fmt.Sprintf("this schedule broke in %d of %d replays", best.broke, best.replays)
	}
	return err
}

// shrunk returns a shorter schedule that breaks as steadily. The search need not have run that schedule. If there is
// none, shrunk returns the parameter `found`.
func (v *programViolations) shrunk(ctx context.Context, found *confirmed) (*confirmed, error) {
	bounded, cancel := v.s.limit.bounded(ctx)
	defer cancel()
	shorter, err := found.c.shrink(bounded, v.s)
	if err != nil || shorter == found.c {
		return found, err
	}
	if again, err := v.confirm(ctx, shorter); err != nil || again != nil && !found.isSteadier(again) {
		return cmp.Or(again, found), err
	}
	return found, nil
}

// confirm replays a violation, with up to shownTries runs. It stops early if the first two replays break. Void runs do
// not count as replays. After ctx has ended, confirm makes only one run. It returns nil if no replay breaks, or if the
// budget ends before one does.
func (v *programViolations) confirm(ctx context.Context, c *candidate) (*confirmed, error) {
	bounded, cancel := v.s.limit.bounded(context.WithoutCancel(ctx))
	defer cancel()
	found := &confirmed{c: c}
	for range shownTries {
		if v.s.result.Keeps {
			v.anew()
		}
		w, err := c.witness(bounded, v.s.x)
		if !v.s.result.Keeps && diverged(err) && ctx.Err() == nil { // the run counts as void, not as a replay, since only the programs' memory may be the reason
			v.s.result.Keeps = true
			if err := v.s.voids.count(v.s.x.mode.diverged(err.Error())); err != nil {
				return nil, err
			}
			continue
		}
		switch {
		case err != nil && bounded.Err() != nil:
			return found.orNil(), nil
		case err == nil && w.Verdict == c.Verdict:
			v.s.voids.good()
			found.w = w
			found.broke++
			found.replays++
		case err == nil:
			found.replays++
			err = schedule.Void{Why: "the same schedule did not end in the same way again", Details: fmt.Sprintf("%s, and before %s", w.Verdict, c.Verdict)}
		case errors.Is(err, schedule.ErrDivergence):
			found.replays++
			err = v.s.x.mode.diverged(err.Error())
		case !isVoid(err):
			return nil, err
		}
		if err != nil {
			if err := v.s.voids.count(err); err != nil {
				return nil, err
			}
		}
		if ctx.Err() != nil || found.isSteady() {
			break
		}
	}
	return found.orNil(), nil
}

// diverged reports whether a replay diverged from its schedule.
func diverged(err error) bool {
	void, _ := schedule.AsVoid(err)
	return void.Diverged || errors.Is(err, schedule.ErrDivergence)
}

// anew makes the next run start the programs again. Otherwise data in their memory from earlier runs could change the
// course of a schedule.
func (v *programViolations) anew() {
	if x, ok := v.s.x.runner.(schedule.Anew); ok {
		x.Anew()
	}
}

func (v *confirmed) orNil() *confirmed {
	if v.broke == 0 {
		return nil
	}
	return v
}

// dropAll removes the remaining violations from the result, since no replay has confirmed any.
func (v *programViolations) dropAll() {
	r := &v.s.result
	r.Unconfirmed = r.Violations
	r.Explored -= r.Violations
	r.Violations = 0
	r.Answers.subtract(v.answers)
	for kind := range r.Verdicts {
		if kind != verdict.Holds {
			delete(r.Verdicts, kind)
		}
	}
}

func (v *programViolations) drop(c *candidate) {
	r := &v.s.result
	r.Dropped++
	r.Violations--
	r.Explored--
	v.answers.add(c.Ended, -1)
	r.Answers.add(c.Ended, -1)
	if r.Verdicts[c.Verdict]--; r.Verdicts[c.Verdict] == 0 {
		delete(r.Verdicts, c.Verdict)
	}
}
