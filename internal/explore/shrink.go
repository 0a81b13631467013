package explore

import (
	"context"
	"regexp"
	"slices"
	"strconv"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// longestCut is the maximum number of consecutive steps that shrink omits at once.
const longestCut = 6

// shrink searches for a shorter schedule with the same verdict by omitting steps (the simplest form of delta debugging,
// Zeller and Hildebrandt, TSE 2002). A complete search does not need it. For a program, shrink stops when ctx or the
// time for shrinking ends.
func (c *candidate) shrink(ctx context.Context, s *search) (*candidate, error) {
	if c == nil || s.x.mode.schedule(c.Tokens).Concurrent() {
		return c, nil
	}
	for again := true; again; {
		again = false
		for n := longestCut; n > 0 && !again; n-- {
			for i := 0; i+n <= len(c.Tokens) && !again; i++ {
				if s.violations.isLate(ctx) {
					return c, nil
				}
				e, err := s.steadily(ctx, c.Tokens, i, n)
				switch {
				case isVoid(err):
					continue
				case s.violations.isLate(ctx):
					return c, nil
				case err != nil:
					return c, err
				}
				if e.Cut || e.Pruned || e.Verdict != c.Verdict || e.Verdict == verdict.Holds {
					continue
				}
				shorter := c.better(e)
				again = shorter != c
				c = shorter
			}
		}
	}
	if !s.x.config.Symmetry || s.violations.isLate(ctx) {
		return c, nil
	}
	return c.renamed(ctx, s)
}

// steadily runs the schedule `tokens` (a token names a step) without the n tokens from index i. If the explorer loses
// control of a program's run, the run is void and repeated.
func (s *search) steadily(ctx context.Context, tokens []string, i, n int) (e schedule.Ended, err error) {
	for range shownTries {
		e, err = s.x.runner.Run(ctx, leavingOut(tokens, i, n), false)
		if !isVoid(err) {
			break
		}
		if tooMany := s.voids.count(err); tooMany != nil {
			return e, tooMany
		}
		if s.violations.isLate(ctx) {
			break
		}
	}
	if err == nil {
		s.voids.good()
	}
	return e, err
}

// renamed renumbers the buyers in the order in which they start. Before they start, they are interchangeable.
func (c *candidate) renamed(ctx context.Context, s *search) (*candidate, error) {
	names := map[string]string{}
	var tokens []string
	for _, token := range c.Tokens {
		tokens = append(tokens, number.ReplaceAllStringFunc(token, func(old string) string {
			if names[old] == "" {
				names[old] = strconv.Itoa(len(names) + 1)
			}
			return names[old]
		}))
	}
	e, err := s.steadily(ctx, tokens, 0, 0)
	if isVoid(err) || s.violations.isLate(ctx) {
		return c, nil
	}
	if err != nil || e.Verdict != c.Verdict || !slices.Equal(e.Tokens, tokens) {
		return c, err
	}
	return &candidate{Ended: e, cost: c.cost}, nil
}

// number matches the number of a buyer in a token.
var number = regexp.MustCompile(`[1-9]`)

// leavingOut returns a chooser that follows the tokens, except the n tokens from index i. It skips tokens that are not
// available. After the last token, it takes the first available command.
func leavingOut(tokens []string, i, n int) schedule.Chooser {
	rest := slices.Delete(slices.Clone(tokens), i, i+n)
	return func(p *schedule.Point) (string, error) {
		for len(rest) > 0 {
			token := rest[0]
			rest = rest[1:]
			if _, ok := schedule.Find(p.Choices, token); ok {
				return token, nil
			}
		}
		return p.FirstMove(), nil
	}
}
