package explore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// TestShortest: the witness of the strategy "none" is the obvious one, and no schedule is shorter.
func TestShortest(t *testing.T) {
	entry := exploretest.Entry(t, "none")
	x := exploretest.Open(t, exploretest.Config(enginetest.Embedded(t), entry))
	result, err := x.Search(t.Context())
	require.NoError(t, err)
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

// TestMerged: the search continues schedules with equal states only once. It must count as many schedules, with the
// same results and the same shortest witness, as a search that runs each schedule.
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

// TestHandedOver: a buyer that gets its lock from another buyer of the same process releases its own lock.
func TestHandedOver(t *testing.T) {
	config := exploretest.Config(enginetest.Embedded(t), exploretest.Entry(t, "redisson"))
	config.Shared, config.Bound = true, 1
	result := search(t, config)
	if !result.Complete || result.Foreign > 0 || result.Violations > 0 {
		t.Errorf("complete %t, %d free another's lock, %v: %+v", result.Complete, result.Foreign, result.Verdicts, result.ForeignWitness)
	}
}

// TestManyBuyers: the explorer controls eight buyers, and the report names the bound.
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

// TestRushVerdict: a broken round makes the rush broken; otherwise, a failed round makes it failed. An inconclusive or
// missing round makes it inconclusive.
func TestRushVerdict(t *testing.T) {
	holds, broken, void := target.Crowd{Verdict: verdict.Holds}, target.Crowd{Verdict: verdict.Broken, Why: "b"}, target.Crowd{Verdict: verdict.Inconclusive, Why: "v"}
	failed := target.Crowd{Verdict: verdict.Failed, Why: "f"}
	for _, c := range []struct {
		rounds []target.Crowd
		want   verdict.Verdict
		why    string
	}{
		{[]target.Crowd{holds, holds, holds}, verdict.Holds, ""},
		{[]target.Crowd{holds, holds}, verdict.Inconclusive, ""},
		{nil, verdict.Inconclusive, ""},
		{[]target.Crowd{holds, void, void}, verdict.Inconclusive, "round 2: v"},
		{[]target.Crowd{void, broken, broken}, verdict.Broken, "round 2: b"},
		{[]target.Crowd{broken}, verdict.Broken, "round 1: b"},
		{[]target.Crowd{void, failed, holds}, verdict.Failed, "round 2: f"},
		{[]target.Crowd{failed, broken, failed}, verdict.Broken, "round 2: b"},
	} {
		if r := findings.NewRush(2, 3, c.rounds, 0); r.Verdict != c.want || r.Why != c.why {
			t.Errorf("%v: %s (%s), want %s (%s)", c.rounds, r.Verdict, r.Why, c.want, c.why)
		}
	}
}

// TestProgramReport checks the content of a report about a program.
func TestProgramReport(t *testing.T) {
	l := oversells()
	c := littleConfig(l)
	c.Reduce = true
	r := explore.NewReport(c, searchLittle(t, c, l))
	if want := fmt.Sprintf("explored %d of %[1]d schedules (commuting commands in one order)", r.Explored); r.Extent() != want || r.Explored >= 20 || r.Total == nil {
		t.Errorf("says %q, want %q", r.Extent(), want)
	}
	if said, want := explore.NewReport(c, explore.Result{Held: true, Explored: 7}).Extent(), fmt.Sprintf("at most %d failed tries in a row, --tries allows more", c.Tries); !strings.Contains(said, want) {
		t.Errorf("says %q, want %q", said, want)
	}
	if r.Strategy != "little" || r.Engine != explore.AppEngine || r.Server != "A 1, B 2" || r.Within != nil {
		t.Errorf("%+v", r)
	}
	if got, want := r.Replay(r.Witness), "shop explore --app little.yaml --replay "+r.Witness.Schedule; got != want || !strings.HasPrefix(r.Witness.Schedule, "v1:little:b2:s1:") {
		t.Errorf("%q, want %q", got, want)
	}
	text, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(text), `"reduced":true`) || strings.Contains(string(text), `"void"`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestMissing: a search that may have left out schedules does not claim to be complete, even without preemptions.
func TestMissing(t *testing.T) {
	late := func(_ *world, p *schedule.Point) error {
		p.Late = true
		return nil
	}
	for name, l := range map[string]*little{"none": oversells(), "late": oversells(), "ignored": oversells()} {
		switch name {
		case "late":
			l.trouble = late
		case "ignored":
			l.ignored = []string{"a statement writes orders"}
		}
		r := explore.NewReport(littleConfig(l), searchLittle(t, littleConfig(l), l))
		if whole := name == "none"; r.Complete != whole || (r.Total != nil) != whole || (r.Within != nil) != whole {
			t.Errorf("%s: complete %v, total %v, within %v: %s", name, r.Complete, r.Total, r.Within, r.Extent())
		}
	}
}

// TestShortestWay: the shortest schedule to a violation is the witness of the search. After each of its steps, the
// rest of the witness is the shortest continuation. If no schedule leads to a violation, the result says so.
func TestShortestWay(t *testing.T) {
	x := exploretest.Open(t, exploretest.Config(enginetest.Embedded(t), exploretest.Entry(t, "none")))
	result, err := x.Search(t.Context())
	if err != nil || result.Witness == nil {
		t.Fatal(result, err)
	}
	s, err := explore.ParseSchedule(result.Witness.Schedule)
	require.NoError(t, err)
	broken := func(e *explore.Ended) bool { return e.Verdict != verdict.Holds }
	for n := range s.Tokens {
		w, err := x.Shortest(t.Context(), s.Tokens[:n], broken)
		if err != nil || !w.Complete || !slices.Equal(w.Tokens, s.Tokens[n:]) {
			t.Errorf("after %v: %+v, %v; want %v", s.Tokens[:n], w, err, s.Tokens[n:])
		}
		if n == 0 && (w.Switches != explore.Switches(s.Tokens) || w.Explored != result.Explored) {
			t.Errorf("%+v, and the search explored %d", w, result.Explored)
		}
	}
	w, err := x.Shortest(t.Context(), nil, func(e *explore.Ended) bool { return e.Verdict == verdict.Stalled })
	if err != nil || w.Tokens != nil || !w.Complete {
		t.Errorf("of what cannot be: %+v, %v", w, err)
	}
	if _, err := x.With(func(c *explore.Config) { c.Full = true }).Shortest(t.Context(), nil, broken); err == nil {
		t.Error("without merged states there is no shortest way")
	}
}

// FuzzParseSchedule: a string is refused in one line, or parsed to a schedule whose own string is equivalent.
func FuzzParseSchedule(f *testing.F) {
	for _, line := range []string{
		"v1:none:b2:s1:1*2.2*5.1*3", "v1:pooled:b2:s1:shared:1.1~2*2.1*3",
		"v1:early-unlock:b2:s1:shared:1*5.2*3.1.2*3",
		"v1:redlock:b2:s1:1a.2a.2b.forget-b.2c.2*4.1b.1c.1*3.2.2a.2b.2c.1*3.1a.1b.1c",
		"v1:watchdog:b2:s1:1.renew1.1r.2.expire.crash2.forget",
		"v1:none:b2:s1:1*2.2+1.1*2.2*4",
		"v1:none:b2:s1:1*999.1*999",
		"v1:none:b2:s1:", "v1:none:b2:s1", "v1:::::", "v0:none:b2:s1:1", "v2:none:b2:s1:1", "v1:none:b:s:1", "v1:none:b+2:s01:1",
		"v1:none:b2:s1:shared", "v1:none:b2:s4:u2:1*5.2*2", "v1:none:b2:s4:u1,2:1*5.2*2", "v1:none:b3:s4:u3,3:1*5.2*2", "v1:none:b2:s4:shared:key:1*5.2*2", "v1:none:b2:s4:key:1*5.2*2", "v1:none:b2:s1:1.disconnect1.1r.2", "v1:none:b2:s4:u2:shared:1", "v1:none:b2:s4:u1:1", "v1:none:b2:s4:shared:u2:1", "v1:none:b2:s1:other:1", "v1:none:b2:s99999999999999999999:1", "v1:none:b2:s1:1*0", "v1:none:b2:s1:1..2",
		"v1:none:b2:s1:0", "v1:none:b2:s1:crash", "v1:none:b2:s1:1\n2", " v1:none:b2:s1:1 ", "", ":", "v", "\x00", "v\n::::",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := explore.ParseSchedule(line)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		if len(s.Tokens) == 0 {
			t.Errorf("%q has no step", line)
		}
		if len(s.Tokens) > 999 {
			return // longer than any run, so Replay refuses it
		}
		again, err := explore.ParseSchedule(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Errorf("%q is written as %q, which is %v, %v", line, s, again, err)
		}
	})
}

// TestPolls: a search whose runs were discarded points to --app-check if the program sends commands by itself. The test
// stands here since make quick would link a test binary for package findings alone, which takes seconds.
func TestPolls(t *testing.T) {
	for _, polls := range []bool{true, false} {
		why := findings.Unproven(explore.Report{Void: 2, Polls: polls})
		if strings.Contains(why, "--app-check prints the line `ignore:`") != polls {
			t.Errorf("polls %v: %s", polls, why)
		}
	}
}
