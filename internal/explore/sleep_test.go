package explore_test

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/tier"
)

// TestReduce: one of the schedules that differ only in the order of commuting commands is enough. The reduced search
// finds the same results as the full search, for hundreds of programs, and for thousands in make soak. If the
// commands are described wrongly, the results must differ.
func TestReduce(t *testing.T) {
	tier.Test(t, "long searches")
	enough := 400
	if tier.Soaking() {
		enough = 2500
	}
	named := func(c command) string { return c.name }
	for _, c := range []struct {
		name   string
		lie    func(*little)
		wrong  bool
		random func(*rand.Rand) *little // programs with several threads; nil: randomly
	}{
		{"as it is", func(*little) {}, false, nil},
		{"writes said to be reads", func(l *little) { l.lies = true }, true, nil},
		{"answers of two servers said not to meet", func(l *little) { l.unmixed = true }, true, nil},
		{"races", func(l *little) { l.races = true }, false, nil},
		{"races and rows", func(l *little) { l.races, l.rows = true, named }, false, nil},
		{"rows without races", func(l *little) { l.rows = named }, false, nil},
		{"races and rows of three buyers", func(l *little) { l.races, l.rows = true, named }, false, threeBuyers},
		{"a row said to be another", func(l *little) { l.races, l.rows = true, command.String }, true, nil},
		{"two transactions at once", func(l *little) { l.races, l.rows = true, named }, false, parallelly},
		{"the locks of a transaction left out", func(l *little) { l.races, l.rows, l.unheld = true, named, true }, true, parallelly},
		{"answers of two transactions said not to meet", func(l *little) { l.races, l.rows, l.unmixed = true, named, true }, true, parallelly},
		{"answers in any order", func(l *little) { l.anyOrder = true }, false, severally},
		{"answers in any order, and races", func(l *little) { l.anyOrder, l.races = true, true }, false, severally},
		{"answers in any order, races and rows", func(l *little) { l.anyOrder, l.races, l.rows = true, true, named }, false, severally},
		{"answers in any order, but their order matters", func(l *little) { l.anyOrder, l.races, l.apart = true, true, false }, true, severally},
	} {
		t.Run(c.name, func(t *testing.T) {
			programs, fewer, all, reduced, wrong := 0, 0, 0, 0, 0
			enough, random, most := enough, randomly, 100.0
			if c.random != nil {
				enough, random, most = enough/8, c.random, 1700
			}
			for seed := uint64(0); programs < enough && (!c.wrong || wrong == 0); seed++ {
				full, less := random(rand.New(rand.NewPCG(seed, 16))), random(rand.New(rand.NewPCG(seed, 16)))
				if !full.atMost(most) {
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

// TestReduceNowhereElse: a search that must run every schedule is not reduced.
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
			continue // the programs in memory do not support pairs
		}
		if r := searchLittle(t, c, l); r.Reduced || r.Explored != 20 {
			t.Errorf("%s: reduced %v, %d orders", name, r.Reduced, r.Explored)
		}
	}
}
