package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A candidate is a violation whose schedule may become the witness, the one that the report shows. A candidate with a
// lower mildness is better. Among equals, fewer steps are better, then fewer switches between buyers, then fewer
// events. Among the rest, the one in which buyer 1 goes first is better.
type candidate struct {
	schedule.Ended
	cost     [3]int
	doubtful bool // only for a program: the explorer lost control of the run before or after (a void run), so the violation may not occur again
}

func (c *candidate) compare(other *candidate) int {
	return cmp.Or(mildness(c.Verdict)-mildness(other.Verdict), slices.Compare(c.cost[:], other.cost[:]), slices.Compare(c.Tokens, other.Tokens))
}

// mildness returns 1 for a failure or a lock that was never released. Both may leave stock and records correct. For
// every other verdict it returns 0.
func mildness(v verdict.Verdict) int {
	if v == verdict.Failed || v == verdict.LeakedLock {
		return 1
	}
	return 0
}

func (c *candidate) better(e schedule.Ended) *candidate {
	if other := newCandidate(e); c == nil || other.compare(c) < 0 {
		return other
	}
	return c
}

func newCandidate(e schedule.Ended) *candidate {
	cost := [3]int{len(e.Tokens), 0, 0}
	last := ""
	for _, token := range e.Tokens {
		if token[0] < '0' || token[0] > '9' {
			cost[2]++
			continue
		}
		if last != "" && token[:1] != last {
			cost[1]++
		}
		last = token[:1]
	}
	return &candidate{Ended: e, cost: cost}
}

// witness repeats the schedule and records its steps. In a concurrent pair, the server decides which command runs
// first, so a repetition may differ. With a pair, the witness has the steps of the original run. Further runs then
// count how often the schedule ends with the same verdict.
func (c *candidate) witness(ctx context.Context, x *Explorer) (*Witness, error) {
	if c == nil {
		return nil, nil
	}
	s := x.mode.schedule(c.Tokens)
	if !s.Concurrent() {
		w, err := x.follow(ctx, c.Tokens)
		if err != nil && c.Final { // code that still runs would disturb the replay
			return x.witness(c.Tokens, c.Ended), nil
		}
		if errors.Is(err, schedule.ErrDivergence) {
			err = fmt.Errorf("%w: %w: %w", ErrHarness, schedule.ErrUnrepeated, err)
		}
		return w, err
	}
	w := x.witness(c.Tokens, c.Ended)
	same := 0
	for range courses {
		again, err := x.follow(ctx, c.Tokens)
		switch {
		case errors.Is(err, schedule.ErrDivergence), isVoid(err):
		case err != nil:
			return nil, err
		case again.Verdict == w.Verdict:
			same++
			w.Choices = again.Choices
		}
	}
	w.Again = fmt.Sprintf("run again %d times, it ended this way %d times", courses, same)
	return w, nil
}
