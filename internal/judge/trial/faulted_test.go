package trial

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
)

// TestUnproven: a crowd without a break proves nothing until the requested fault has taken effect.
func TestUnproven(t *testing.T) {
	t.Parallel()
	c := &crowds{rush: &Crowd{Fault: promise.Pause}, to: &noted{}, ctx: t.Context()}
	holds := rush.Result{Verdict: verdict.Holds}
	see := func(when string, want verdict.Verdict) {
		t.Helper()
		if got := c.proven(holds); got.Verdict != want || want != verdict.Holds && !strings.Contains(got.Reason, "pause did not take effect") {
			t.Errorf("%s: %s: %s", when, got.Verdict, got.Reason)
		}
	}
	c.unproven()
	see("a strike that never began", verdict.Inconclusive)
	field := fault.NewRunningRush(nil, nil, "apple", failpoint.Commit, fault.Times{Wait: time.Second, Lease: time.Second})
	strikes := func(name promise.Condition) {
		c.strike(fault.Fault{Name: name, InRush: func(context.Context, *fault.RunningRush) (string, error) { return "it did", nil }}, field, "any", true)
	}
	strikes(promise.Crash)
	see("another fault", verdict.Inconclusive)
	if !c.struckByHand() {
		t.Error("another fault has struck, and nobody knows")
	}
	strikes(promise.Pause)
	see("the fault", verdict.Holds)
}

// TestTooLateForACrowd: a fault that is requested between two crowds is recorded even if there is no second
// crowd.
func TestTooLateForACrowd(t *testing.T) {
	t.Parallel()
	to := &noted{}
	c := &crowds{to: to, ctx: t.Context(), last: "any"}
	names := make(chan string)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); c.strikeWhenAsked(ctx, names) }()
	names <- "crash"
	cancel()
	<-ended
	c.tooLate()
	if len(to.list) != 1 || to.list[0].Missed != "the last crowd was gone" || to.list[0].Strategy != "any" {
		t.Errorf("%+v", to.list)
	}
}

// TestWhyUntested: a promised break counts as missed only if the crowd could have shown it.
func TestWhyUntested(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, database string
		fault          promise.Condition
		taken          int
		want           string
	}{
		{"no fault", "mariadb", "", 150, ""},
		{"most answers taken", "mariadb", promise.DBKill, 100, "the buyers that the fault left asked for no more than the stock"},
		{"few answers taken", "mariadb", promise.DBKill, 99, ""},
		{"stopped after the read", "sqlite", promise.Pause, 0, "on SQLite, a buyer is stopped after its read"},
	} {
		o := &Crowd{Stock: 100, Fault: c.fault}
		why := o.whyUntested(&Storefront{Database: c.database}, rush.Result{Crowd: 200, Taken: c.taken})
		if !strings.HasPrefix(why, c.want) || (why == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", c.name, why, c.want)
		}
	}
}
