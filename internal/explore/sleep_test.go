package explore_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
)

// TestReduce: of schedules that differ only in commuting commands, one is enough. The reduced
// search finds the same results as the full one, for hundreds of programs, and for thousands in
// make soak. If the commands are described wrongly, the results differ.
func TestReduce(t *testing.T) {
	enough := 400
	if exploretest.Soak() {
		enough = 2500
	}
	named := func(c command) string { return c.name }
	for _, c := range []struct {
		name  string
		lie   func(*little)
		wrong bool
	}{
		{"as it is", func(*little) {}, false},
		{"writes said to be reads", func(l *little) { l.lies = true }, true},
		{"answers of two servers said not to meet", func(l *little) { l.unmixed = true }, true},
		{"races", func(l *little) { l.races = true }, false},
		{"races and rows", func(l *little) { l.races, l.rows = true, named }, false},
		{"rows without races", func(l *little) { l.rows = named }, false},
		{"a row said to be another", func(l *little) { l.races, l.rows = true, command.String }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			programs, fewer, all, reduced, wrong := 0, 0, 0, 0, 0
			for seed := uint64(0); programs < enough && (!c.wrong || wrong == 0); seed++ {
				full, less := randomly(rand.New(rand.NewPCG(seed, 16))), randomly(rand.New(rand.NewPCG(seed, 16)))
				if !full.atMost(100) {
					continue
				}
				c.lie(less)
				config := littleConfig(full)
				every := searchLittle(t, config, full)
				config.Reduce = true
				some := searchLittle(t, config, less)
				if !every.Complete || !some.Complete || !some.Reduced || every.Reduced || some.Within != -1 {
					t.Fatalf("seed %d: complete %v and %v, reduced %v and %v, within %d", seed, every.Complete, some.Complete, every.Reduced, some.Reduced, some.Within)
				}
				programs++
				all, reduced = all+every.Explored, reduced+some.Explored
				if some.Explored < every.Explored {
					fewer++
				}
				if !maps.Equal(full.finals, less.finals) {
					if wrong++; !c.wrong {
						t.Fatalf("seed %d: %v\nall %v\nreduced %v", seed, full.buyers, full.finals, less.finals)
					}
				}
			}
			t.Logf("%d programs, %d with fewer orders: %d of %d; %d came to other ends", programs, fewer, reduced, all, wrong)
			if fewer < programs/4 {
				t.Error("proves nothing")
			}
			if c.wrong && wrong == 0 {
				t.Error("the lie was not noticed")
			}
		})
	}
}

// TestReduceNowhereElse: a search that must run every schedule skips none.
func TestReduceNowhereElse(t *testing.T) {
	for name, set := range map[string]func(*explore.Config){
		"full":       func(c *explore.Config) { c.Full = true },
		"overlap":    func(c *explore.Config) { c.Overlap, c.Schedules = true, 10 },
		"shared":     func(c *explore.Config) { c.Shared = true },
		"bound":      func(c *explore.Config) { c.Bound = 5 },
		"max events": func(c *explore.Config) { c.MaxEvents = 1 },
	} {
		l := oversells()
		c := littleConfig(l)
		c.Reduce = true
		set(&c)
		if name == "overlap" {
			continue // a little does not support pairs
		}
		if r := searchLittle(t, c, l); r.Reduced || r.Explored != 20 {
			t.Errorf("%s: reduced %v, %d orders", name, r.Reduced, r.Explored)
		}
	}
}
