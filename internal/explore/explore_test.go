package explore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/tier"
)

// TestShortest: the witness of none is the one that a person would draw, and no schedule is
// shorter.
func TestShortest(t *testing.T) {
	entry := exploretest.Entry(t, "none")
	x := exploretest.Open(t, exploretest.Config(enginetest.Embedded(t), entry))
	result, err := x.Search(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !result.Complete || result.Explored != 92 || result.Violations != 90 {
		t.Errorf("explored %d, complete %v, %d violations; want 92, true, 90", result.Explored, result.Complete, result.Violations)
	}
	if got, want := result.Witness.Schedule, "v1:none:b2:s1:1*2.2*5.1*3"; got != want {
		t.Errorf("witness %s, want %s", got, want)
	}
	last := result.Witness.Steps[len(result.Witness.Steps)-1]
	if last.Stock != 0 || last.Records != 2 {
		t.Errorf("after the last step: stock %d, records %d", last.Stock, last.Records)
	}
}

// TestMerged: the search continues schedules with equal states only once, and loses nothing. It
// counts as many schedules with the same results and the same shortest witness as a search that
// runs each schedule.
func TestMerged(t *testing.T) {
	tier.Test(t, "a search that runs each schedule")
	e := enginetest.Embedded(t)
	for _, c := range []exploretest.Expectation{
		{Strategy: "none"},
		{Strategy: "transaction", Soak: "902 schedules, run one by one"},
		{Strategy: "optimistic"},
		{Strategy: "early-unlock"},
		{Strategy: "check-after"},
		{Strategy: "mutex", Config: shared},
		{Strategy: "early-unlock", Config: shared},
		{Strategy: "setnx", Events: []explore.Event{explore.Crash}},
		{Strategy: "conditional", Events: []explore.Event{explore.Crash, explore.Timeout}},
		{Strategy: "none", Config: func(c *explore.Config) { c.Buyers, c.Bound, c.Symmetry = 3, 1, true }},
		{Strategy: "token-get-del", Events: []explore.Event{explore.Expire}, Config: bound(1)},
		{Strategy: "redisson", Events: []explore.Event{explore.Renew}, Config: bound(0)},
		{Strategy: "redlock", Config: bound(0)},
		{Strategy: "redis-lua", Config: bound(0)},
	} {
		t.Run(c.Name(), func(t *testing.T) {
			tier.Soak(t, c.Soak)
			config := exploretest.Config(e, exploretest.Entry(t, c.Strategy))
			config.Events = c.Events
			if c.Config != nil {
				c.Config(&config)
			}
			sameMerged(t, config)
		})
	}
}

func shared(c *explore.Config) { c.Shared = true }

func bound(n int) func(c *explore.Config) {
	return func(c *explore.Config) { c.Bound = n }
}

// TestHandedOver: a buyer that got its lock from another buyer of the same process releases a lock
// of its own.
func TestHandedOver(t *testing.T) {
	config := exploretest.Config(enginetest.Embedded(t), exploretest.Entry(t, "redisson"))
	config.Shared, config.Bound = true, 1
	result := search(t, config)
	if !result.Complete || result.Foreign > 0 || result.Violations > 0 {
		t.Errorf("complete %t, %d free another's lock, %v: %+v", result.Complete, result.Foreign, result.Verdicts, result.ForeignWitness)
	}
}

// TestManyBuyers: the explorer controls eight buyers as well as two, and the report names the bound.
func TestManyBuyers(t *testing.T) {
	e := enginetest.Embedded(t)
	many := exploretest.Config(e, exploretest.Entry(t, "none"))
	many.Buyers, many.Bound, many.Symmetry, many.Schedules = explore.MaxBuyers, 1, true, 25
	if result := search(t, many); result.Runs != 25 || result.Verdicts[verdict.Oversold] == 0 {
		t.Errorf("%d runs of %d buyers, want 25: %v", result.Runs, explore.MaxBuyers, result.Verdicts)
	}
	c := explore.Config{OfStrategy: explore.OfStrategy{Engine: e}, Bound: 2}
	if got := explore.NewReport(c, explore.Result{Explored: 7, Complete: true}).Extent(); !strings.Contains(got, "bound 2") || strings.Contains(got, "7 of 7") {
		t.Errorf("%q", got)
	}
}

// TestInterrupted: an interrupted search returns the result so far.
func TestInterrupted(t *testing.T) {
	entry := exploretest.Entry(t, "none")
	c := exploretest.Config(enginetest.Embedded(t), entry)
	c.Full = true
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("enough")
	c.Progress = func(explored, _ int) {
		if explored == 20 {
			cancel(stop)
		}
	}
	result, err := exploretest.Open(t, c).Search(ctx)
	if !errors.Is(err, stop) || result.Explored != 20 || result.Complete || result.Witness == nil {
		t.Errorf("%v, %+v", err, result)
	}
}

// TestReplayRefused: the replay string of another strategy gives an error, not a result.
func TestReplayRefused(t *testing.T) {
	entry := exploretest.Entry(t, "none")
	x := exploretest.Open(t, exploretest.Config(enginetest.Embedded(t), entry))
	for _, c := range []struct{ line, says string }{
		{"v1:redis:b2:s1:1.2", "belongs to redis"},
		{"v1:none:b3:s1:1.2", "with 3 buyers"},
		{"v9:none:b2:s1:1.2", "the replay string has version v9"},
		{"v1:none:b2:s1:1*2", "the replay string ends after step 2"},
		{"v1:none:b2:s1:1*9", "step 6 of the schedule is 1"},
		{"v1:none:b2:s1:1*5.2.2", "done after step 6"},
		{"v1:none:b2:s1:jump", `"jump" is no step`},
		{"hello", "invalid replay string"},
	} {
		if _, err := x.Replay(t.Context(), c.line); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want something with %q", c.line, err, c.says)
		}
	}
}
