package main

import (
	"bytes"
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
	"github.com/oversell/oversell/internal/tier"
)

// verifyAppOf runs `shop verify --app` in a separate process, as a user does.
func verifyAppOf(t *testing.T, file string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return exitOfCommand(t, plainCommand(t, append([]string{"verify", "--app", file}, args...)...))
}

// verifiedApp returns the --json result for a file in testdata/rush or in examples.
func verifiedApp(t *testing.T, name string, args ...string) (code int, r findings.Program, stderr string) {
	t.Helper()
	example := appCase{file: name, needs: []string{"python3"}}.need(t)
	if local, err := filepath.Abs("testdata/rush/" + name); err == nil {
		if _, err := os.Stat(local); err == nil {
			example = local
		}
	}
	code, stdout, stderr := verifyAppOf(t, example, append(args, "--json")...)
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	if r.Rush == nil {
		t.Fatalf("exit %d, no rush: %s%s", code, stdout, stderr)
	}
	return code, r, stderr
}

// roundsOf fails the test unless the rush has that many rounds.
func roundsOf(t *testing.T, r *findings.Rush, want int) []target.Crowd {
	t.Helper()
	if len(r.Rounds) != want {
		t.Fatalf("%d rounds, want %d: %+v", len(r.Rounds), want, r.Rounds)
	}
	return r.Rounds
}

// TestVerifyAppBreaks: the search certainly shows the violation; the rush may miss it.
func TestVerifyAppBreaks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	junit, page := filepath.Join(dir, "app.xml"), filepath.Join(dir, "app.md")
	code, r, stderr := verifiedApp(t, "python/naive.yaml", "--report", junit, "--report", page)
	if code != exitBroken || r.Explore.Violations != 6 || r.OK || stderr != "" {
		t.Errorf("exit %d, %d orders break, ok %v, %q", code, r.Explore.Violations, r.OK, stderr)
	}
	for n, c := range roundsOf(t, r.Rush, defaultRushRounds) {
		if c.Buyers != 50 || c.Sold < 1 || c.AtOnce < 1 || (c.Verdict == verdict.Broken) != (len(c.Findings) > 0) || (c.Verdict == verdict.Broken) != (c.Sold > 1) {
			t.Errorf("round %d: %+v", n+1, c)
		}
	}
	text, err := os.ReadFile(junit)
	if err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Cases []struct {
			Name    string    `xml:"name,attr"`
			Class   string    `xml:"classname,attr"`
			Failure *struct{} `xml:"failure"`
		} `xml:"testsuite>testcase"`
	}
	if err := xml.Unmarshal(text, &suites); err != nil {
		t.Fatal(err)
	}
	if c := suites.Cases; len(c) != 2 || c[0].Name != "explore" || c[0].Failure == nil || c[1].Name != "rush" || c[1].Class != "verify.python-naive" {
		t.Errorf("cases %+v", c)
	}
	if text, err = os.ReadFile(page); err != nil || !strings.Contains(string(text), "## The rush") || !strings.Contains(string(text), "told sold") {
		t.Errorf("%v: %s", err, text)
	}
}

// TestVerifyAppRushBreaks: two buyers do not break this shop, but a rush does.
func TestVerifyAppRushBreaks(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	code, r, stderr := verifiedApp(t, "tires.yaml", "--rush-buyers", "100", "--repeat", "1")
	if code != exitBroken || r.Explore.Violations != 0 || !r.Explore.Complete || r.OK || stderr != "" {
		t.Errorf("exit %d, %d orders break, ok %v, %q", code, r.Explore.Violations, r.OK, stderr)
	}
	c := roundsOf(t, r.Rush, 1)[0]
	if c.Verdict != verdict.Broken || c.Sold < 26 || len(c.Findings) != 2 || len(c.Findings[0].Rows) != 1 || !strings.HasPrefix(r.Rush.Why, "round 1: must return no row, and does: SELECT") {
		t.Errorf("%s, %+v", r.Rush.Why, c)
	}
	var text strings.Builder
	if err := r.Text(&text, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"broken: round 1: must return no row, and does: SELECT * FROM items WHERE stock < 0\n┌", "┘\nmust return no row, and does: SELECT ", fmt.Sprintf("%d of 100 buyers were told that they have bought", c.Sold)} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

// TestVerifyAppSerial: a rush whose commands never overlapped proves nothing.
func TestVerifyAppSerial(t *testing.T) {
	tier.Soak(t, "starts programs and servers; TestCrowd of internal/explore/target has a burst without overlap")
	t.Parallel()
	code, r, stderr := verifiedApp(t, "serial.yaml", "--repeat", "1")
	c := roundsOf(t, r.Rush, 1)[0]
	if code != exitInconclusive || r.Rush.Verdict != verdict.Inconclusive || r.OK || c.AtOnce != 1 || c.Sold != 1 || c.Failed+c.Unanswered != 0 {
		t.Errorf("exit %d, %s, %+v", code, r.Rush.Verdict, c)
	}
	if !strings.Contains(stderr, "the rush shows nothing: round 1: no two buyers' commands were at the servers at once") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("not the line that says so: %q", stderr)
	}
}

// TestVerifyAppEnds: a shop that dies fails its buyers, and no further round follows.
func TestVerifyAppEnds(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	code, r, _ := verifiedApp(t, "ends.yaml", "--rush-buyers", "100")
	c := roundsOf(t, r.Rush, 1)[0]
	if code != exitBroken || c.Verdict != verdict.Failed || !strings.Contains(c.Why, "the program has ended (exit status 7)") || c.Failed+c.Unanswered == 0 {
		t.Errorf("exit %d, %+v", code, c)
	}
}

// TestVerifyAppLate: stock and records are read when all work is done and not when all buyers are
// answered.
func TestVerifyAppLate(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	_, r, _ := verifiedApp(t, "late.yaml", "--budget", "2s", "--repeat", "2")
	for _, c := range roundsOf(t, r.Rush, 2) {
		if c.Verdict != verdict.Holds || c.Sold != 1 || c.Failed+c.Unanswered != 0 {
			t.Errorf("%+v", c)
		}
	}
}

// TestVerifyAppDeadlock: in a rush only the server ends a deadlock, after its own time-out.
func TestVerifyAppDeadlock(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	_, r, _ := verifiedApp(t, "crosses.yaml", "--budget", "2s", "--rush-buyers", "4", "--repeat", "1")
	if c := roundsOf(t, r.Rush, 1)[0]; c.Verdict != verdict.Failed || c.Sold != 1 || c.Failed < 1 || c.Unanswered != 0 {
		t.Errorf("%+v", c)
	}
}

// TestVerifyAppBadInput: each mistake causes one line.
func TestVerifyAppBadInput(t *testing.T) {
	file := absolute(t, "testdata/rush/serial.yaml")
	for _, c := range []struct{ args, says string }{
		{"--app nowhere.yaml", "no such file"},
		{"--app FILE --strategy none", "--strategy cannot be combined with --app"},
		{"--app FILE --fault crash", "--fault cannot be combined with --app"},
		{"--app FILE --quick", "--quick cannot be combined with --app"},
		{"--app FILE --engine local", "--engine cannot be combined with --app"},
		{"--app FILE --target http://127.0.0.1:1", "--target cannot be combined with --app"},
		{"--app FILE --history dir", "--history cannot be combined with --app"},
		{"--app FILE --lanes 1", "--lanes cannot be combined with --app"},
		{"--app FILE --sold-out-check", "--sold-out-check cannot be combined with --app"},
		{"--app FILE --admission adaptive", "--admission cannot be combined with --app"},
		{"--app FILE --no-idempotency-keys", "--no-idempotency-keys cannot be combined with --app"},
		{"--app FILE --rush-buyers 1", "--rush-buyers must be between 2 and 1000 (got 1)"},
		{"--app FILE --rush-buyers 1001", "--rush-buyers must be between 2 and 1000"},
		{"--app FILE --repeat 0", "--repeat must be between 1 and 1000"},
		{"--app FILE --budget 0s", "--budget must be more than 0s"},
		{"--app FILE --events flood", `"flood"`},
		{"--app FILE --report out.doc", "--report"},
		{"--rush-buyers 9", "--rush-buyers requires --app FILE"},
		{"--tries 9", "--tries requires --app FILE"},
		{"--events crash", "--events requires --app FILE"},
		{"--target http://127.0.0.1:1 --budget 5s", "--budget requires --app FILE"},
		{"--" + wipeFlag + " db:1", "--" + wipeFlag + " requires --app FILE"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"verify"}, strings.Fields(strings.ReplaceAll(c.args, "FILE", file))...), &out, &errs)
		if code != exitHarness || !strings.Contains(errs.String(), c.says) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("%s: exit %d, %q; want %d and one line with %q", c.args, code, errs.String(), exitHarness, c.says)
		}
	}
}
