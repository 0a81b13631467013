package explore

import (
	"context"
	"regexp"
	"slices"
	"strconv"

	"github.com/oversell/oversell/internal/verdict"
)

// longestCut is how many steps in a row are left out at once.
const longestCut = 6

// shrink looks for a shorter schedule that breaks in the same way, by leaving
// out steps of this one (delta debugging, Zeller and Hildebrandt, TSE 2002, in
// its simplest form). A search of all schedules has no need of it.
func (c *candidate) shrink(ctx context.Context, x *Explorer) (*candidate, error) {
	if c == nil || x.schedule(c.tokens).Overlaps() {
		return c, nil
	}
	for again := true; again; {
		again = false
		for n := longestCut; n > 0 && !again; n-- {
			for i := 0; i+n <= len(c.tokens) && !again; i++ {
				e, err := x.once(ctx, leavingOut(c.tokens, i, n), false)
				if err != nil {
					return c, err
				}
				if e.cut || e.pruned || e.verdict != c.verdict || e.verdict == verdict.Holds {
					continue
				}
				shorter := c.better(e)
				again = shorter != c
				c = shorter
			}
		}
	}
	if !x.config.Alike {
		return c, nil
	}
	return c.renamed(ctx, x)
}

// renamed has the buyers begin in order again, which are alike until they do.
func (c *candidate) renamed(ctx context.Context, x *Explorer) (*candidate, error) {
	names := map[string]string{}
	var tokens []string
	for _, token := range c.tokens {
		tokens = append(tokens, number.ReplaceAllStringFunc(token, func(old string) string {
			if names[old] == "" {
				names[old] = strconv.Itoa(len(names) + 1)
			}
			return names[old]
		}))
	}
	e, err := x.once(ctx, leavingOut(tokens, 0, 0), false)
	if err != nil || e.verdict != c.verdict || !slices.Equal(e.tokens, tokens) {
		return c, err
	}
	return &candidate{ended: e, cost: c.cost}, nil
}

// number is a buyer in a token.
var number = regexp.MustCompile(`[1-9]`)

// leavingOut follows tokens but for the n from i on. One that there is not is left
// out too, and where they end whoever can goes on.
func leavingOut(tokens []string, i, n int) chooser {
	rest := slices.Delete(slices.Clone(tokens), i, i+n)
	return func(_ *run, _ int, actions []action) (string, error) {
		for len(rest) > 0 {
			token := rest[0]
			rest = rest[1:]
			if _, ok := pick(actions, token); ok {
				return token, nil
			}
		}
		for _, a := range actions {
			if a.event == "" {
				return a.token, nil
			}
		}
		return "", nil
	}
}
