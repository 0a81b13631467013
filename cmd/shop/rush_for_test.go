package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestRushFor: in a long rush, a strategy that holds does so in every wave, also under a kill, and one
// that oversells is seen.
func TestRushFor(t *testing.T) {
	t.Parallel()
	tier.Test(t, "lasts three seconds")
	run := func(args ...string) (report rush.Report) {
		t.Helper()
		code, stdout, stderr := shoptest.Run(t, append([]string{"rush", "--for", "1s", "--expect", "--json"}, args...)...)
		if code == exitInconclusive {
			t.Skip("the machine was too slow to show anything: " + stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
			t.Fatalf("exit %d, %v: %s%s", code, err, stderr, stdout)
		}
		if r := report.Results[0]; r.Verdict != verdict.Holds || r.Waves.All < 2 || r.Waves.Broke+r.Waves.Inconclusive > 0 || r.Drift != 0 || r.Records <= 100 {
			t.Errorf("%+v, %+v", r, r.Waves)
		}
		return report
	}
	if r := run("--strategy", "conditional,none").Results[1]; !verdict.Oversold.Keeps(r.Verdict) || r.Waves.Broke == 0 || r.Drift <= 0 || !strings.HasPrefix(r.Reason, "wave ") {
		t.Errorf("%+v, %+v", r, r.Waves)
	}
	if r := run("--strategy", "conditional", "--kill", "1s", "--processes", "2"); len(r.Strikes) == 0 || !strings.Contains(r.Strikes[0], "was killed with ") {
		t.Errorf("strikes %q", r.Strikes)
	}
}
