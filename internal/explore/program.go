package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// mostRanked violations of a program are kept: the next one is shown when one does not run
// again.
const mostRanked = voidInARow / shownTries

// leastShrinking is spent on shrinking however soon the search has ended.
const leastShrinking = 5 * time.Second

// rank keeps a violation when it is one of the best.
func (s *search) rank(e schedule.Ended) {
	if s.x.config.Program == "" {
		s.best = s.best.better(e)
		return
	}
	c := newCandidate(e)
	i, _ := slices.BinarySearchFunc(s.ranked, c, (*candidate).compare)
	s.ranked = slices.Insert(s.ranked, i, c)
	s.ranked = s.ranked[:min(len(s.ranked), mostRanked)]
}

// showProgram is show of a program: the best violation that runs again. One that does not is
// dropped. Shrinking may take as long again as the search.
func (s *search) showProgram(ctx context.Context) error {
	patience := max(time.Since(s.begun), leastShrinking)
	if budget := s.x.config.Budget; budget > 0 {
		patience = min(patience, budget)
	}
	s.until = time.Now().Add(patience)
	for _, c := range s.ranked {
		w, err := s.shown(ctx, c)
		if w != nil || err != nil || ctx.Err() != nil {
			s.result.Witness = w
			return err
		}
		s.drop(c)
	}
	return nil
}

// shown is the witness of a violation, shrunk when shorter ones may not have been run; nil
// when it does not run again.
func (s *search) shown(ctx context.Context, c *candidate) (*Witness, error) {
	shrunk := c
	if !s.result.exhausted {
		var err error
		if shrunk, err = c.shrink(ctx, s); err != nil {
			return nil, err
		}
	}
	w, err := s.witness(ctx, shrunk)
	if w == nil && err == nil && shrunk != c {
		w, err = s.witness(ctx, c)
	}
	return w, err
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
