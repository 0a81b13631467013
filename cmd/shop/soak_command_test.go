package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/load/soak"
)

// TestSoak: the waves of a seed hold under a kill, and the table, JSON and the page show it.
// The processes live and die as they do for a user, so -short has no time for it.
func TestSoak(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it lasts ten seconds")
	}
	page := filepath.Join(t.TempDir(), "soak.html")
	result := filepath.Join(t.TempDir(), "soak.json")
	code, stdout, stderr := exitOfCommand(t, plainCommand(t, "soak", "--duration", "10s", "--wave", "1s", "--clients", "16", "--engine", "embedded", "--seed", "3",
		"--strategy", "for-update,conditional,redis,redis-lua,coalesced", "--report", page, "--report", result))
	if code != 0 {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
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

// TestSoakSees: a strategy that oversells is seen, said at once, and exit 1.
func TestSoakSees(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it lasts ten seconds")
	}
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

// TestSoakBadInput: one line, and nothing is started.
func TestSoakBadInput(t *testing.T) {
	t.Parallel()
	wantOneLine(t, "soak", map[string]string{
		"--strategy nosuch":         `--strategy "nosuch" is not known`,
		"--strategy=":               "--strategy is empty",
		"--strategy unit-rows":      "nothing of this can run here: unit-rows: ",
		"--duration 9s":             "--duration is 9s; 10s to 24h are allowed",
		"--duration 25h":            "--duration is 25h0m0s; 10s to 24h are allowed",
		"--wave 999ms":              "--wave is 999ms; 1s to 10m are allowed",
		"--wave 11m --duration 1h":  "--wave is 11m0s; 1s to 10m are allowed",
		"--wave 30s --duration 20s": "--wave is 30s, longer than --duration 20s",
		"--clients 0":               "--clients is 0; 1 to 20000 are allowed",
		"--processes 65":            "--processes is 65; 1 to 64 are allowed",
		"--seed -1":                 "--seed",
		"--engine url":              `--engine is "url"; this command starts its servers: embedded or local`,
		"--local-db postgres":       "--local-db is for --engine local",
		"--admission maybe":         `--admission is "maybe"`,
		"--db-conns 1":              "--db-conns is 1",
		"--report x.svg":            "unknown ending",
		"64":                        `soak takes no arguments, and "64" is one`,
	})
}
