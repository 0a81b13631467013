package format

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/require"
)

// many returns a result with n breaks that do not compress well.
func many(n int) (r result.Result) {
	r.Schema = result.Schema
	for i := range n {
		noise := fmt.Sprintf("%x%x", rand.Uint64(), rand.Uint64())
		r.Checks = append(r.Checks, result.Check{
			Name: fmt.Sprintf("%d.yaml", i), Kind: result.Explore, File: fmt.Sprintf("%d.yaml", i), Line: i, Status: result.Broken, Why: noise,
			Witness: &result.BreakingSchedule{Rules: []string{"rule"}, Steps: []witness.Step{{Buyer: 1, Command: noise, Result: "1"}, {Buyer: 2, Command: noise + "2"}}},
		})
	}
	return r
}

// TestSARIFLimits: if code scanning would refuse a file, the file loses the steps of its witnesses, then
// results, and says so in one line.
func TestSARIFLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name            string
		results, packed int
		kept            int
		flows           bool
		says            string
	}{
		{"small", 100, 1 << 20, 40, true, ""},
		{"many", 10, 1 << 20, 10, true, "the first 10 of 40 breaks"},
		{"large", 100, 4 << 10, 40, false, "the steps of the witnesses are left out"},
		{"many and large", 100, 3 << 10, 20, false, "the first 20 of 40 breaks"},
		{"hopeless", 100, 1, 0, false, "the first 0 of 40 breaks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := cut(sarifOf(many(40)), c.results, c.packed)
			require.NoError(t, err)
			log, err := sarif.FromBytes(f.Text)
			require.NoError(t, err)
			expect.NoError(t, log.Validate())
			size, err := gzipped(f.Text)
			if err != nil || size > c.packed && c.kept > 0 {
				t.Errorf("%d bytes, %v", size, err)
			}
			results := log.Runs[0].Results
			if len(results) != c.kept || len(results) > 0 && (len(results[0].CodeFlows) > 0) != c.flows {
				t.Errorf("%d results of %d bytes, %+v", len(results), size, results[0].CodeFlows)
			}
			if !strings.HasPrefix(f.Cut, c.says) || (f.Cut == "") != (c.says == "") || strings.Contains(f.Cut, "\n") {
				t.Errorf("says %q, want %q", f.Cut, c.says)
			}
		})
	}
}

// TestSARIF: breaks are results, and other problems notifications.
func TestSARIF(t *testing.T) {
	t.Parallel()
	r := many(1)
	r.Shard = "1/3"
	old := r.Checks[0]
	old.Name, old.Change, old.Witness = "old.yaml", result.Before, &result.BreakingSchedule{}
	r.Checks = append(r.Checks, old,
		result.Check{Name: "mine under rush", Kind: result.Verify, Status: result.Broken, Change: result.New},
		result.Check{Name: "slow.yaml", File: "slow.yaml", Status: result.Inconclusive, Why: "nothing"},
		result.Check{Name: "bad.yaml", File: "bad.yaml", Status: result.Error, Why: "no node"},
		result.Check{Name: "good.yaml", Status: result.Holds},
	)
	log := sarifOf(r)
	expect.NoError(t, log.Validate())
	run := log.Runs[0]
	var got []string
	for _, one := range run.Results {
		got = append(got, fmt.Sprintf("%s %s %s %d", *one.RuleID, one.Level, state(one), len(one.Locations)))
	}
	expect.Equal(t, strings.Join(got, "; "), "oversell/rule error  1; oversell/answer warning unchanged 1")
	if *run.AutomationDetails.ID != "oversell/1/3" || *run.Invocations[0].ExecutionSuccessful || len(run.Invocations[0].ToolExecutionNotifications) != 3 {
		t.Errorf("%+v", run)
	}
	r = many(1)
	r.Checks[0].File = "a shop/100%.yaml"
	expect.Equal(t, *sarifOf(r).Runs[0].Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI, "a%20shop/100%25.yaml", "the file")
	if run.Results[0].PartialFingerprints["oversell/v1"] == run.Results[1].PartialFingerprints["oversell/v1"] {
		t.Error("two breaks have one fingerprint")
	}
}

// state returns the state of a result relative to the baseline; "" without one.
func state(one *sarif.Result) string {
	if one.BaselineState == nil {
		return ""
	}
	return *one.BaselineState
}

// TestCodeQuality: the severities are GitLab's, and each issue has a fingerprint of its own.
func TestCodeQuality(t *testing.T) {
	t.Parallel()
	r := many(2)
	r.Checks[1].Change = result.Before
	r.Checks = append(r.Checks,
		result.Check{Name: "slow.yaml", File: "slow.yaml", Status: result.Inconclusive},
		result.Check{Name: "bad.yaml", File: "bad.yaml", Status: result.Error},
		result.Check{Name: "good.yaml", File: "good.yaml", Status: result.Holds},
		result.Check{Name: "mine under rush", Status: result.Broken},
	)
	var got []string
	prints := map[string]bool{}
	for _, issue := range qualityOf(r) {
		got = append(got, fmt.Sprint(issue.Location.Path, ":", issue.Location.Lines.Begin, " ", issue.CheckName, " ", issue.Severity))
		prints[issue.Fingerprint] = true
	}
	want := []string{"0.yaml:1 oversell/rule critical", "1.yaml:1 oversell/rule major", "slow.yaml:1 oversell/inconclusive minor", "bad.yaml:1 oversell/error major"}
	if strings.Join(got, ", ") != strings.Join(want, ", ") || len(prints) != len(want) {
		t.Errorf("%q, want %q; %d fingerprints", got, want, len(prints))
	}
	folder := t.TempDir()
	require.NoError(t, CodeQuality(folder, result.Result{}))
	if text, err := os.ReadFile(filepath.Join(folder, "gl-code-quality.json")); err != nil || string(text) != "[]\n" {
		t.Errorf("%q, %v; an empty report is an empty list", text, err)
	}
}

// TestWrite: a run deletes the replay files of the previous run and leaves other files alone.
func TestWrite(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "new", "out")
	r := many(2)
	for i := range r.Checks {
		r.Checks[i].Witness.Saved, r.Checks[i].Witness.File = &schedule.Saved{Version: 1}, fmt.Sprintf("%d.witness.json", i)
	}
	warn := func(format string, args ...any) { t.Errorf(format, args...) }
	for _, write := range []result.Result{r, {Schema: result.Schema, Checks: r.Checks[1:]}} {
		require.NoError(t, Prepare(folder))
		require.NoError(t, os.WriteFile(filepath.Join(folder, "own.witness.json"), nil, 0o600))
		require.NoError(t, Write(folder, write, warn))
	}
	for name, want := range map[string]bool{"0.witness.json": false, "1.witness.json": true, "own.witness.json": true, "result.json": true, "oversell.sarif": true, "junit.xml": true, "report.html": true, "summary.md": true} {
		if _, err := os.Stat(filepath.Join(folder, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Prepare("/dev/null/out"); err == nil {
		t.Error("a folder below a file")
	}
}

// TestPrepareIgnores: git ignores a new output folder, but not the files of an existing one.
func TestPrepareIgnores(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for folder, want := range map[string]string{filepath.Join(root, "ci", "new"): "*\n", root: ""} {
		for range 2 {
			require.NoError(t, Prepare(folder))
			if text, _ := os.ReadFile(filepath.Join(folder, ".gitignore")); string(text) != want {
				t.Errorf("%s: %q, want %q", folder, text, want)
			}
		}
	}
}
