package verify

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestExplore: a violation has a witness and the command that shows it again. Without a violation
// the cell says how far the search went. A search whose injected event cannot occur proves nothing.
func TestExplore(t *testing.T) {
	tier.Test(t, "a search of each cell")
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		strategy string
		fault    promise.Condition
		promise  verdict.Verdict
		want     verdict.Verdict
		ok       bool
		says     string
		replay   string
	}{
		{"none", promise.Explore, verdict.Oversold, verdict.Oversold, true, "2 units sold of 1 stocked", "shop explore none --replay v1:"},
		{"none", promise.Explore, verdict.Holds, verdict.Oversold, false, "break", "--replay"},
		{"conditional", promise.Explore, verdict.Holds, verdict.Holds, true, "explored 36 of 36", "shop explore conditional"},
		{"conditional", promise.ExploreCrash, verdict.Holds, verdict.Holds, true, "explored 292 of 292", "--events crash"},
		{"conditional", promise.ExploreCrash, verdict.Oversold, verdict.Holds, false, "no order breaks", "--events crash"},
		{"redis", promise.ExploreExpire, verdict.Oversold, verdict.Oversold, true, "at most 1 preemption break", ".expire."},
		{"redlock", promise.ExploreExpire, verdict.Oversold, verdict.Oversold, true, "seen in schedule", ".expire."},
		{"bucketed", promise.Explore, verdict.Holds, verdict.Holds, true, "explored 360 of 360", "shop explore bucketed --parts 2"},
		{"setnx", promise.ExploreExpire, verdict.Holds, verdict.Inconclusive, false, "never came", "--events expire"},
	} {
		t.Run(c.strategy+" under "+string(c.fault), func(t *testing.T) {
			entry, _ := lockstrategy.ByName(c.strategy)
			cell, err := exploreCell(t.Context(), e, entry, c.fault, c.promise)
			require.NoError(t, err)
			if cell.Verdict != c.want || cell.OK != c.ok || !strings.Contains(cell.Evidence, c.says) || !strings.Contains(cell.Replay, c.replay) {
				t.Errorf("%s, ok %t: %s; %s", cell.Verdict, cell.OK, cell.Evidence, cell.Replay)
			}
			switch broken := c.want == verdict.Oversold; {
			case broken != (cell.Witness != nil):
				t.Errorf("witness %v", cell.Witness)
			case broken && (cell.Audited.Oversold != 1 || !strings.Contains(cell.Witness.Mermaid, "sequenceDiagram") || !strings.Contains(cell.Witness.Text, "buyer 2")):
				t.Errorf("stock and records %+v, witness %+v", cell.Audited, cell.Witness)
			}
		})
	}
}

// TestExploreVaries: a strategy that keeps its promise is also searched in the variations in which it
// promises to hold. If it breaks there, the cell contradicts its promise, whatever that is.
func TestExploreVaries(t *testing.T) {
	tier.Test(t, "several searches of each strategy")
	e := enginetest.Embedded(t)
	shared, one := "--instances shared --stock 4 --units 3,2 --events disconnect", "--one-key --stock 3 --units 1,2"
	leaky, _ := lockstrategy.ByName("mutex")
	early, _ := lockstrategy.ByName("early-unlock")
	leaky.Name, leaky.New = "leaky", early.New
	for _, c := range []struct {
		strategy string
		ok       bool
		says     []string
		not      string
		quick    bool
	}{
		{"for-update", true, []string{one, "--before failing-read"}, "shared", false},
		{"queue", true, []string{shared, one}, "--buyers", true},
		{"mutex", true, []string{shared}, "--one-key", false},
		{"fenced", true, []string{one, "--buyers 3 --events expire,forget"}, "shared", false},
		{"leaky", false, []string{"with " + shared, "units sold of 4 stocked"}, "also", true},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			if !c.quick {
				tier.Soak(t, "make test searches only two strategies")
			}
			entry, known := lockstrategy.ByName(c.strategy)
			if !known {
				entry = leaky
			}
			promised, _ := entry.Explored(promise.Explore, e.Database)
			cell, err := exploreCell(t.Context(), e, entry, promise.Explore, promised)
			require.NoError(t, err)
			for _, text := range c.says {
				if !strings.Contains(cell.Evidence, text) || strings.Contains(cell.Evidence, c.not) || cell.OK != c.ok || (cell.Verdict == promised) != (c.ok || promised == verdict.Oversold) {
					t.Errorf("%s, ok %t: %s; %s", cell.Verdict, cell.OK, cell.Evidence, cell.Replay)
				}
			}
		})
	}
}

// freeing is a lock of one key around a statement that needs no lock, so the stock is right
// whatever the lock does.
type freeing struct {
	lockstrategy.Deps
	blind bool // whether it deletes the key without a look at its owner
}

func (s freeing) Buy(ctx context.Context, o purchase.Order) (purchase.Receipt, error) {
	key := "shop:lock:freeing:{" + o.Product + "}"
	for {
		got, err := s.Redis.SetNX(ctx, key, o.Purchaser, s.Settings.LeaseTTL).Result()
		if err != nil {
			return purchase.Receipt{}, err
		}
		if got {
			break
		}
		s.Sleep(ctx, s.Settings.Poll)
		if ctx.Err() != nil {
			return purchase.Receipt{}, context.Cause(ctx)
		}
	}
	receipt, err := lockstrategy.NewConditional(s.Deps).Buy(ctx, o)
	if s.blind {
		return receipt, errors.Join(err, s.Redis.Del(ctx, key).Err())
	}
	return receipt, errors.Join(err, redis.NewScript(freeIfOwn).Eval(ctx, s.Redis, []string{key}, o.Purchaser).Err())
}

const freeIfOwn = `if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`

// TestExploreFreesAnothers: releasing another holder's lock is a violation even if no unit is sold twice,
// unless the lock is known to do that. A lock that compares the owner first never does it.
func TestExploreFreesAnothers(t *testing.T) {
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		name  string
		blind bool
		known bool
		want  verdict.Verdict
	}{
		{"compares", false, false, verdict.Holds},
		{"blind", true, false, verdict.Unlocked},
		{"blind, as known", true, true, verdict.Holds},
	} {
		t.Run(c.name, func(t *testing.T) {
			entry := lockstrategy.Entry{
				Name: "freeing", Needs: []lockstrategy.Need{lockstrategy.NeedsRedis},
				Scripts: []redisscript.Description{{SHA: redisscript.SHA(freeIfOwn), Name: "delete if mine", Role: redisscript.Release, Lock: 1, Refused: []string{"0"}}},
				New:     func(d lockstrategy.Deps) purchase.Strategy { return freeing{d, c.blind} },
				Traits:  lockstrategy.Traits{Leased: true, WaitsFor: lockstrategy.WaitLock, Lock: lockstrategy.LockPromise{FreesAnothers: c.known}},
			}
			cell, err := exploreCell(t.Context(), e, entry, promise.ExploreExpire, verdict.Holds)
			require.NoError(t, err)
			if cell.Verdict != c.want || cell.OK != (c.want == verdict.Holds) || strings.Contains(cell.Evidence, "deletes the lock of another") != c.blind {
				t.Errorf("%s, ok %t: %s; want %s", cell.Verdict, cell.OK, cell.Evidence, c.want)
			}
			if broke := c.want == verdict.Unlocked; broke && (cell.Witness == nil || !strings.Contains(cell.Witness.Text, "deleted the lock of buyer")) {
				t.Errorf("witness %+v", cell.Witness)
			}
		})
	}
}

// TestExplored: every strategy whose commands the explorer can control is explored. Each event is tried if the
// strategy promises to hold without events, and the event can take effect.
func TestExplored(t *testing.T) {
	cells := map[promise.Condition]int{}
	for _, entry := range lockstrategy.All() {
		for _, f := range promise.Explorations() {
			promise, possible := entry.Explored(f, "sqlite")
			if !possible {
				continue
			}
			cells[f]++
			if promise == "" {
				t.Errorf("%s under %s: nothing is promised", entry.Name, f)
			}
		}
	}
	atLeast := map[promise.Condition]int{ // counts at the time of writing: the number must not fall
		promise.Explore: 24, promise.ExploreExpire: 10, promise.ExploreCrash: 21, promise.ExploreForget: 13,
	}
	for f, n := range atLeast {
		if cells[f] < n {
			t.Errorf("%d cells of %s, want %d or more", cells[f], f, n)
		}
	}
}
