package program_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/findings"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

func verifyApp(t *testing.T, file string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return shoptest.Run(t, append([]string{"verify", "--app", file}, args...)...)
}

func verified(t *testing.T, name string, args ...string) (code int, r findings.Program, stderr string) {
	t.Helper()
	shoptest.Needs(t, "python3")
	return verifiedFile(t, "testdata/rush/"+name, args...)
}

func verifiedFile(t *testing.T, file string, args ...string) (code int, r findings.Program, stderr string) {
	t.Helper()
	code, stdout, stderr := verifyApp(t, file, append(args, "--json")...)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || r.Rush == nil {
		t.Fatalf("exit %d, %v, rush %v: %s%s", code, err, r.Rush, stdout, stderr)
	}
	return code, r, stderr
}

// roundsOf returns the bursts of a rush. It fails the test if their number is wrong.
func roundsOf(t *testing.T, r *findings.Rush, want int) []target.Crowd {
	t.Helper()
	if len(r.Rounds) != want {
		t.Fatalf("%d rounds, want %d: %+v", len(r.Rounds), want, r.Rounds)
	}
	return r.Rounds
}

// TestVerifyAppBreaks: the search finds the violation. The bursts may miss it.
func TestVerifyAppBreaks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junit, page := filepath.Join(dir, "app.xml"), filepath.Join(dir, "app.md")
	code, r, stderr := verifiedFile(t, shoptest.Example(t, "python/naive.yaml"), "--report", junit, "--report", page)
	if code != shoptest.Broken || r.Explore.Violations != 6 || r.OK || stderr != "" {
		t.Errorf("exit %d, %d orders break, ok %v, %q", code, r.Explore.Violations, r.OK, stderr)
	}
	for n, c := range roundsOf(t, r.Rush, 5) {
		if c.Buyers != 50 || c.Sold < 1 || c.AtOnce < 1 || (c.Verdict == verdict.Broken) != (len(c.Findings) > 0) || (c.Verdict == verdict.Broken) != (c.Sold > 1) {
			t.Errorf("round %d: %+v", n+1, c)
		}
	}
	text, err := os.ReadFile(junit)
	require.NoError(t, err)
	var suites struct {
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Class   string    `xml:"classname,attr"`
			Failure *struct{} `xml:"failure"`
		} `xml:"testsuite>testcase"`
	}
	require.NoError(t, xml.Unmarshal(text, &suites))
	if c := suites.Cases; len(c) != 2 || c[0].Name != "explore" || c[0].Failure == nil || c[1].Name != "rush" || c[1].Class != "verify.python-naive" {
		t.Errorf("cases %+v", c)
	}
	if text, err = os.ReadFile(page); err != nil || !strings.Contains(string(text), "## The rush") || !strings.Contains(string(text), "told sold") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestVerifyAppRushBreaks: a burst finds a violation that needs more than two buyers.
func TestVerifyAppRushBreaks(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	code, r, stderr := verified(t, "tires.yaml", "--rush-buyers", "100", "--repeat", "1")
	if code != shoptest.Broken || r.Explore.Violations != 0 || !r.Explore.Complete || r.OK || stderr != "" {
		t.Errorf("exit %d, %d orders break, ok %v, %q", code, r.Explore.Violations, r.OK, stderr)
	}
	c := roundsOf(t, r.Rush, 1)[0]
	if c.Verdict != verdict.Broken || c.Sold < 26 || len(c.Findings) != 2 || len(c.Findings[0].Rows) != 1 || !strings.HasPrefix(r.Rush.Why, "round 1: must return no row, and does: SELECT") {
		t.Errorf("%s, %+v", r.Rush.Why, c)
	}
	var text strings.Builder
	require.NoError(t, r.Text(&text, false))
	for _, want := range []string{"broken: round 1: must return no row, and does: SELECT * FROM items WHERE stock < 0\n┌", "┘\nmust return no row, and does: SELECT ", fmt.Sprintf("%d of 100 buyers were told that they have bought", c.Sold)} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// TestVerifyAppSerial: a burst is inconclusive if no commands of two buyers overlapped.
func TestVerifyAppSerial(t *testing.T) {
	tier.Soak(t, "TestCrowd of internal/explore/target covers buyers whose commands do not overlap")
	t.Parallel()
	code, r, stderr := verified(t, "serial.yaml", "--repeat", "1")
	c := roundsOf(t, r.Rush, 1)[0]
	if code != shoptest.Inconclusive || r.Rush.Verdict != verdict.Inconclusive || r.OK || c.AtOnce != 1 || c.Sold != 1 || c.Failed+c.Unanswered != 0 {
		t.Errorf("exit %d, %s, %+v", code, r.Rush.Verdict, c)
	}
	if !strings.Contains(stderr, "the rush shows nothing: round 1: no two buyers' commands were at the servers at once") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("not the line that says so: %q", stderr)
	}
}

// TestVerifyAppEnds: if the shop dies during a burst, the verdict is failed, and no further burst
// follows.
func TestVerifyAppEnds(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	code, r, _ := verified(t, "ends.yaml", "--rush-buyers", "100")
	c := roundsOf(t, r.Rush, 1)[0]
	if code != shoptest.Broken || c.Verdict != verdict.Failed || !strings.Contains(c.Why, "the program has ended (exit status 7)") || c.Failed+c.Unanswered == 0 {
		t.Errorf("exit %d, %+v", code, c)
	}
}

// TestVerifyAppLate: the command reads stock and records after the shop's last work, which may end
// after the last answer.
func TestVerifyAppLate(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	_, r, _ := verified(t, "late.yaml", "--budget", "2s", "--repeat", "2")
	for _, c := range roundsOf(t, r.Rush, 2) {
		if c.Verdict != verdict.Holds || c.Sold != 1 || c.Failed+c.Unanswered != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// TestVerifyAppDeadlock: during a burst, only the server ends a deadlock, after its own time-out.
func TestVerifyAppDeadlock(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	_, r, _ := verified(t, "crosses.yaml", "--budget", "2s", "--rush-buyers", "4", "--repeat", "1")
	if c := roundsOf(t, r.Rush, 1)[0]; c.Verdict != verdict.Failed || c.Sold != 1 || c.Failed < 1 || c.Unanswered != 0 {
		t.Errorf("%+v", c)
	}
}
