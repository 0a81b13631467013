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

// mostRanked is the number of violations of a program to keep for replay, the most promising ones.
// At least leastReplayed of them are replayed, however long that takes.
const mostRanked, leastReplayed = 1000, 10

// leastShrinking is spent on shrinking however soon the search has ended.
const leastShrinking = 5 * time.Second

// rank keeps a violation when it is one of the best.
func (s *search) rank(e schedule.Ended) {
	if s.x.config.Program == "" {
		s.best = s.best.better(e)
		return
	}
	s.last = newCandidate(e)
	s.last.doubtful = s.afterVoid
	if s.ranked = append(s.ranked, s.last); len(s.ranked) == 2*mostRanked {
		slices.SortFunc(s.ranked, (*candidate).promises)
		s.ranked = s.ranked[:mostRanked]
	}
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

// showProgram is show for a program: it replays violations, the most promising first, until one breaks
// again, and drops the ones that do not. If none breaks again, it drops all violations. Replaying may
// take as long as the search, and so may shrinking.
func (s *search) showProgram(ctx context.Context) error {
	patience := max(time.Since(s.begun), leastShrinking)
	if budget := s.x.config.Budget; budget > 0 {
		patience = min(patience, budget)
	}
	slices.SortFunc(s.ranked, (*candidate).promises)
	s.voids.forgiven = true
	s.until = time.Now().Add(patience)
	for n, c := range s.ranked {
		if n >= leastReplayed && s.late(ctx) {
			break
		}
		w, err := s.witness(ctx, c)
		if w != nil && err == nil && !s.result.exhausted {
			s.until = time.Now().Add(patience)
			w, err = s.shrunk(ctx, c, w)
		}
		s.result.Witness = w
		if err != nil {
			return err
		}
		if w != nil || ctx.Err() != nil {
			break
		}
		s.drop(c)
	}
	if s.result.Witness == nil {
		s.dropAll()
	}
	return nil
}

// shrunk returns the witness of a shorter schedule that breaks like c. The search may not have run that
// schedule. It returns w if no shorter schedule breaks again.
func (s *search) shrunk(ctx context.Context, c *candidate, w *Witness) (*Witness, error) {
	shorter, err := c.shrink(ctx, s)
	if err != nil || shorter == c {
		return w, err
	}
	if again, err := s.witness(ctx, shorter); again != nil || err != nil {
		return again, err
	}
	return w, nil
}

// witness runs a violation once more, and again while that is void or ends in another way.
// After ctx has ended it is tried once.
func (s *search) witness(ctx context.Context, c *candidate) (*Witness, error) {
	for range shownTries {
		w, err := c.witness(context.WithoutCancel(ctx), s.x)
		switch {
		case err == nil && w.Verdict == c.Verdict:
			s.voids.good()
			return w, nil
		case err == nil:
			err = schedule.Void{Why: "the same schedule did not end in the same way again", Details: fmt.Sprintf("%s, and before %s", w.Verdict, c.Verdict)}
		case errors.Is(err, schedule.ErrDivergence):
			err = s.x.otherWay(err.Error())
		case !s.x.isVoid(err):
			return nil, err
		}
		if err := s.voids.count(err); err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, nil
}

// dropAll removes the remaining violations from the result, since no replay has confirmed one.
func (s *search) dropAll() {
	r := &s.result
	r.Unconfirmed = r.Violations
	r.Explored -= r.Violations
	r.Violations = 0
	for v := range r.Verdicts {
		if v != verdict.Holds {
			delete(r.Verdicts, v)
		}
	}
}

// drop takes a violation out of the result.
func (s *search) drop(c *candidate) {
	r := &s.result
	r.Dropped++
	r.Violations--
	r.Explored--
	s.answers(c.Ended, -1)
	if r.Verdicts[c.Verdict]--; r.Verdicts[c.Verdict] == 0 {
		delete(r.Verdicts, c.Verdict)
	}
}
