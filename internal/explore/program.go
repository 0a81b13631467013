package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// mostRanked is the number of violations of a program to keep for replay, the most promising ones. At
// least leastReplayed of them are replayed, unless the budget is spent.
const mostRanked, leastReplayed = 1000, 10

// leastShrinking is the time for shrinking after a short search, unless the budget is spent.
const leastShrinking = 5 * time.Second

// violations knows which runs of a program broke, and which of them break again in a replay. The others
// are no violations.
type violations struct {
	s         *search
	ranked    []*candidate // violations to replay
	answers   answers      // the answers in all violations, kept or not
	last      *candidate   // the previous run, if it broke
	afterVoid bool         // the previous run was void
	until     time.Time    // end of the time for replaying and shrinking; zero, for a strategy: none
}

// begin records that a run has ended, before rank. afterVoid reports that the previous run was void.
func (v *violations) begin(afterVoid bool) { v.last, v.afterVoid = nil, afterVoid }

// doubt records that a run was void.
func (v *violations) doubt() {
	if v.last != nil {
		v.last.doubtful = true
	}
}

// rank keeps a violation if it is one of the best.
func (v *violations) rank(e schedule.Ended) {
	v.answers = v.answers.add(e, 1)
	v.last = newCandidate(e)
	v.last.doubtful = v.afterVoid
	if v.ranked = append(v.ranked, v.last); len(v.ranked) == 2*mostRanked {
		slices.SortFunc(v.ranked, (*candidate).promises)
		v.ranked = v.ranked[:mostRanked]
	}
}

// isLate reports whether no time is left for replaying and shrinking.
func (v *violations) isLate(ctx context.Context) bool {
	return !v.until.IsZero() && (ctx.Err() != nil || time.Now().After(v.until))
}

// allow gives the following replays that much time, but not more than the budget has.
func (v *violations) allow(patience time.Duration) {
	v.until = time.Now().Add(patience)
	if end, limited := v.s.limit.end(); limited && end.Before(v.until) {
		v.until = end
	}
}

// spent reports whether the budget is spent.
func (v *violations) spent() bool {
	end, limited := v.s.limit.end()
	return limited && time.Now().After(end)
}

// promises returns a negative number if c is more likely to break again, because no void run was next
// to it. If both are equally likely, it is negative if c is the better one.
func (c *candidate) promises(other *candidate) int {
	if c.doubtful != other.doubtful {
		if c.doubtful {
			return 1
		}
		return -1
	}
	return c.compare(other)
}

// show implements search.show for a program. It replays violations, the most promising first, until one
// breaks again, and drops those that do not. If none breaks again, it drops all violations. Replaying
// may take as long as the search, and so may shrinking, but both end with the budget.
func (v *violations) show(ctx context.Context) error {
	s := v.s
	patience := max(time.Since(s.begun), leastShrinking)
	slices.SortFunc(v.ranked, (*candidate).promises)
	s.voids.forgiven = true
	v.allow(patience)
	for n, c := range v.ranked {
		if n >= leastReplayed && v.isLate(ctx) || v.spent() {
			break
		}
		w, err := v.witness(ctx, c)
		if w != nil && err == nil && !s.result.exhausted {
			v.allow(patience)
			w, err = v.shrunk(ctx, c, w)
		}
		s.result.Witness = w
		if err != nil {
			return err
		}
		if w != nil || ctx.Err() != nil || v.spent() {
			break
		}
		v.drop(c)
	}
	if s.result.Witness == nil {
		v.dropAll()
	}
	return nil
}

// shrunk returns the witness of a shorter schedule that breaks like c. The search may not have run that
// schedule. It returns w if no shorter schedule breaks again.
func (v *violations) shrunk(ctx context.Context, c *candidate, w *Witness) (*Witness, error) {
	bounded, cancel := v.s.limit.bounded(ctx)
	defer cancel()
	shorter, err := c.shrink(bounded, v.s)
	if err != nil || shorter == c {
		return w, err
	}
	if again, err := v.witness(ctx, shorter); again != nil || err != nil {
		return again, err
	}
	return w, nil
}

// witness runs a violation once more, and repeats that while the run is void or ends in another way.
// After ctx has ended it makes only one attempt. It returns nil if the budget ends first.
func (v *violations) witness(ctx context.Context, c *candidate) (*Witness, error) {
	bounded, cancel := v.s.limit.bounded(context.WithoutCancel(ctx))
	defer cancel()
	for range shownTries {
		w, err := c.witness(bounded, v.s.x)
		switch {
		case err != nil && bounded.Err() != nil:
			return nil, nil
		case err == nil && w.Verdict == c.Verdict:
			v.s.voids.good()
			return w, nil
		case err == nil:
			err = schedule.Void{Why: "the same schedule did not end in the same way again", Details: fmt.Sprintf("%s, and before %s", w.Verdict, c.Verdict)}
		case errors.Is(err, schedule.ErrDivergence):
			err = v.s.x.otherWay(err.Error())
		case !v.s.x.isVoid(err):
			return nil, err
		}
		if err := v.s.voids.count(err); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, nil
}

// dropAll removes the remaining violations from the result, since no replay has confirmed one.
func (v *violations) dropAll() {
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

// drop removes a violation from the result.
func (v *violations) drop(c *candidate) {
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
