package explore

import (
	"context"
	"regexp"
	"slices"
	"strconv"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/verdict"
)

// longestCut is how many steps in a row are left out at once.
const longestCut = 6

// shrink looks for a shorter schedule that breaks in the same way, by leaving
// out steps of this one (delta debugging, Zeller and Hildebrandt, TSE 2002, in
// its simplest form). A search of all schedules has no need of it.
func (c *candidate) shrink(ctx context.Context, x *Explorer) (*candidate, error) {
	if c == nil || x.schedule(c.Tokens).Concurrent() {
		return c, nil
	}
	for again := true; again; {
		again = false
		for n := longestCut; n > 0 && !again; n-- {
			for i := 0; i+n <= len(c.Tokens) && !again; i++ {
				e, err := x.runner.Run(ctx, leavingOut(c.Tokens, i, n), false)
				if err != nil {
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
	if !x.config.Symmetry {
		return c, nil
	}
	return c.renamed(ctx, x)
}

// renamed has the buyers begin in order again: until they begin, nothing distinguishes them.
func (c *candidate) renamed(ctx context.Context, x *Explorer) (*candidate, error) {
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
	e, err := x.runner.Run(ctx, leavingOut(tokens, 0, 0), false)
	if err != nil || e.Verdict != c.Verdict || !slices.Equal(e.Tokens, tokens) {
		return c, err
	}
	return &candidate{Ended: e, cost: c.cost}, nil
}

// number is a buyer in a token.
var number = regexp.MustCompile(`[1-9]`)

// leavingOut follows tokens but for the n from i on. One that there is not is left
// out too, and where they end whoever can goes on.
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
