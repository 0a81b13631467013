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

// steadyReplays is the number of replays that must break again before a violation counts as steady.
const steadyReplays = 2

// A confirmed violation has broken again in a replay. An unsteady one depends on something that its
// schedule does not determine, such as the number of pooled connections.
type confirmed struct {
	c              *candidate
	w              *Witness
	broke, replays int // replays that broke in the same way, of all that reached an end
}

// isSteady reports whether each replay broke again.
func (v *confirmed) isSteady() bool { return v.broke == v.replays }

// isSteadier reports whether a larger share of the replays broke than those of other, which may be nil.
func (v *confirmed) isSteadier(other *confirmed) bool {
	return other == nil || v.broke*other.replays > other.broke*v.replays
}

// show implements search.show for a program. It replays violations, the most promising first, until one
// breaks again each time, and drops those that never do. If none is steady, it shows the steadiest. If
// none breaks again, it drops all violations. Replaying may take as long as the search, and so may
// shrinking, but both end with the budget.
func (v *violations) show(ctx context.Context) error {
	s := v.s
	patience := max(time.Since(s.begun), leastShrinking)
	slices.SortFunc(v.ranked, (*candidate).promises)
	s.voids.forgiven = true
	v.allow(patience)
	var best *confirmed
	for n, c := range v.ranked {
		if (n >= leastReplayed || best != nil) && v.isLate(ctx) || v.spent() {
			break
		}
		found, err := v.confirm(ctx, c)
		if err != nil {
			return err
		}
		if found != nil && found.isSteadier(best) {
			best = found
		}
		if best != nil && best.isSteady() || ctx.Err() != nil || v.spent() {
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

// shrunk returns a shorter schedule that breaks as steadily. The search may not have run that schedule.
// It returns found if there is none.
func (v *violations) shrunk(ctx context.Context, found *confirmed) (*confirmed, error) {
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

// confirm replays a violation until it has broken twice, or has ended in another way and broken once. It
// repeats void runs. After ctx has ended it makes only one attempt. It returns nil if no replay breaks
// again, or if the budget ends first.
func (v *violations) confirm(ctx context.Context, c *candidate) (*confirmed, error) {
	bounded, cancel := v.s.limit.bounded(context.WithoutCancel(ctx))
	defer cancel()
	found := &confirmed{c: c}
	for range shownTries {
		w, err := c.witness(bounded, v.s.x)
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
			err = v.s.x.otherWay(err.Error())
		case !v.s.x.isVoid(err):
			return nil, err
		}
		if err != nil {
			if err := v.s.voids.count(err); err != nil {
				return nil, err
			}
		}
		if ctx.Err() != nil || found.broke == steadyReplays && found.isSteady() {
			break
		}
	}
	return found.orNil(), nil
}

// orNil returns nil if no replay broke again.
func (v *confirmed) orNil() *confirmed {
	if v.broke == 0 {
		return nil
	}
	return v
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
