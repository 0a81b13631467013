package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/load/soak"
)

// TestSoak: the waves of a seed hold under a kill, and the table, JSON and the page show it. Its
// processes run as they do for a user, which takes too long for -short.
func TestSoak(t *testing.T) {
	t.Parallel()
	tier.Test(t, "it lasts ten seconds")
	page := filepath.Join(t.TempDir(), "soak.html")
	result := filepath.Join(t.TempDir(), "soak.json")
	example := transcripts("```console\n" + commandExamples["soak"])[0]
	args := strings.Fields(strings.TrimPrefix(example.command, "./shop "))
	code, stdout, stderr := exitOfCommand(t, plainCommand(t, append(args, "--report", page, "--report", result)...))
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
	printed := strings.Replace(plainText(stdout), " 1 kill;", " 1 kills;", 1) // a slow machine has fewer waves
	if !example.pattern().MatchString(printed) {
		t.Errorf("%s prints\n%s", example.command, stdout)
	}
	if !regexp.MustCompile(`\n\d waves, [\d,]+ sales, [\d,]+ refusals, [1-9] kills?; drift 0 in all; void: 0\n$`).MatchString(stdout) || !strings.Contains(stdout, "at rest, process 0") {
		t.Errorf("printed %s", stdout)
	}
	var r soak.Result
	text, err := os.ReadFile(result)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || r.Seed != 3 || len(r.Waves) < 3 || len(r.Samples) < 8 || len(r.Rests) != 2*len(r.Waves) {
		t.Fatalf("%v: %+v", err, r)
	}
	for _, s := range r.Samples {
		if u := s.Processes[0]; u.Goroutines < 5 || u.Heap <= 0 || u.Descriptors < 5 || u.Resident < u.Heap {
			t.Errorf("process 0 uses %+v", u)
		}
	}
	for _, w := range r.Waves {
		if w.Answers.Sales() == 0 || w.Audited.Stocked != w.Stock || w.Killed != (w.Kind == "kill") {
			t.Errorf("%+v", w)
		}
	}
	if html, err := os.ReadFile(page); err != nil || strings.Count(string(html), "<svg") != 4 || !strings.Contains(string(html), "process 1 was killed") {
		t.Errorf("%v: %d bytes", err, len(html))
	}
}

// TestSoakSees: a strategy that oversells is reported at once, with exit 1.
func TestSoakSees(t *testing.T) {
	t.Parallel()
	tier.Test(t, "it lasts ten seconds")
	code, stdout, stderr := exitOfCommand(t, plainCommand(t, "soak", "--duration", "10s", "--wave", "2s", "--strategy", "none", "--seed", "5", "--json"))
	var r soak.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != exitBroken || r.Violated() == 0 {
		t.Errorf("exit %d, %v, violated %d: %s", code, err, r.Violated(), stderr)
	}
	for _, want := range []string{"shop: wave 1 (steady, none), seed 5: drift +", "repeat with: shop soak --seed 5 --duration 10s --wave 2s --clients 64 --processes 2 --strategy none\n"} {
		if !strings.Contains(stderr, want) {
			t.Errorf("does not say %q: %s", want, stderr)
		}
	}
}

// TestSoakBadInput: the error is one line, and nothing is started.
func TestSoakBadInput(t *testing.T) {
	t.Parallel()
	wantOneLine(t, "soak", map[string]string{
		"--strategy nosuch":         `unknown strategy "nosuch"`,
		"--strategy=":               "--strategy needs names, or all",
		"--strategy unit-rows":      "no strategy can run here: unit-rows: ",
		"--duration 9s":             "--duration must be between 10s and 24h (got 9s)",
		"--duration 25h":            "--duration must be between 10s and 24h (got 25h)",
		"--wave 999ms":              "--wave must be between 1s and 1m (got 999ms)",
		"--wave 11m --duration 1h":  "--wave must be between 1s and 10m (got 11m)",
		"--wave 30s --duration 20s": "--wave must be between 1s and 20s (got 30s)",
		"--clients 0":               "--clients must be between 1 and 20000 (got 0)",
		"--processes 65":            "--processes must be between 1 and 64 (got 65)",
		"--seed -1":                 "--seed",
		"--engine url":              `unknown engine "url"; choose from: `,
		"--local-db postgres":       "--local-db requires --engine local",
		"--admission maybe":         `unknown admission "maybe"`,
		"--db-conns 1":              "--db-conns must be at least 2 (got 1)",
		"--report x.svg":            "unknown ending",
		"64":                        `soak takes no arguments (got "64")`,
	})
}
