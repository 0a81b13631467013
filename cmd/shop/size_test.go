package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// size runs shop size and returns its JSON.
func size(t *testing.T, args ...string) (r struct {
	Results []struct {
		Strategy  string  `json:"strategy"`
		PerSecond float64 `json:"per_second"`
		GivesWay  string  `json:"gives_way"`
		One       float64 `json:"one_product_per_second"`
	}
	LeftOut     []string `json:"left_out"`
	Assumptions []string
},
) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), append([]string{"size", "--json"}, args...), &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr.String())
	}
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

var measureNew = flag.String("measure", "", "the strategy whose points are added to internal/load/sizing/reference.csv")

// TestSizeReference measures a new strategy, with -measure.
func TestSizeReference(t *testing.T) {
	if *measureNew == "" {
		t.Skip("make generate STRATEGY=NAME measures")
	}
	reference, err := sizing.Reference()
	if err != nil {
		t.Fatal(err)
	}
	databases := map[string]bool{}
	for _, p := range reference.Points {
		databases[p.Database] = true
	}
	file := filepath.Join(t.TempDir(), "points.csv")
	names := strings.Join(slices.Sorted(maps.Keys(databases)), ",")
	if code, _, stderr := exitCode(t, "size", "--measure", file, "--strategy", *measureNew, "--local-db", names); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	added, err := sizing.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if added.Provisional != "" || added.Cores != reference.Cores {
		t.Fatalf("%s; the points of a reference come from one kind of machine: %s", added.From(), reference.From())
	}
	old := func(p sizing.Point) bool { return p.Strategy == *measureNew }
	reference.Points = append(slices.DeleteFunc(reference.Points, old), added.Points...)
	const path = "../../internal/load/sizing/reference.csv"
	text, err := reference.File(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

// unmeasured lists the strategies that the reference does not have yet.
func unmeasured(t *testing.T) (left []string) {
	t.Helper()
	reference, err := sizing.Reference()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range lockstrategy.Names() {
		if !slices.ContainsFunc(reference.Points, func(p sizing.Point) bool { return p.Strategy == name }) {
			left = append(left, name+": not measured there")
		}
	}
	return left
}

// TestSize: every strategy has a prediction, the fastest first, and each flag has its effect.
func TestSize(t *testing.T) {
	t.Parallel()
	plain := size(t)
	if got, want := len(plain.Results)+len(plain.LeftOut), len(lockstrategy.All()); got != want || !slices.Equal(plain.LeftOut, unmeasured(t)) {
		t.Errorf("%d predictions, left out %q; want all %d except %q", len(plain.Results), plain.LeftOut, want, unmeasured(t))
	}
	for i, r := range plain.Results {
		if r.PerSecond <= 0 || r.One <= 0 || r.GivesWay == "" || i > 0 && r.PerSecond > plain.Results[i-1].PerSecond+1 {
			t.Errorf("%d: %+v", i, r)
		}
	}
	one := func(args ...string) float64 {
		return size(t, append(args, "--strategy", "for-update")...).Results[0].PerSecond
	}
	base := one()
	for _, tt := range []struct {
		name   string
		args   []string
		faster bool
	}{
		{"products", []string{"--products", "500"}, true},
		{"network", []string{"--rtt-ms", "1"}, false},
		{"row until disk", []string{"--row-until-disk", "--commit-ms", "5"}, false},
		{"nodes", []string{"--nodes", "3", "--node-rtt-ms", "1"}, false},
		{"one machine", []string{"--one-machine", "--cores", "0.5"}, false},
		{"buyers", []string{"--buyers", "1", "--rtt-ms", "1"}, false},
	} {
		if got := one(tt.args...); (got > 1.05*base) != tt.faster || (got < 0.95*base) == tt.faster {
			t.Errorf("%s: %.0f a second, and %.0f without", tt.name, got, base)
		}
	}
	if many, more := one("--products", "500"), one("--products", "500", "--cores", "8", "--shop-cores", "8"); more < 1.5*many {
		t.Errorf("with four times the processors %.0f a second, and %.0f without", more, many)
	}
}

// TestSizeLeavesOut: a strategy that cannot run on several nodes has no prediction, and the output
// says why.
func TestSizeLeavesOut(t *testing.T) {
	t.Parallel()
	if got := size(t, "--nodes", "3", "--strategy", "named-lock,conditional"); len(got.Results) != 1 || got.Results[0].Strategy != "conditional" ||
		len(got.LeftOut) != 1 || !strings.HasPrefix(got.LeftOut[0], "named-lock: GET_LOCK is one node's own") {
		t.Errorf("%+v, left out %q", got.Results, got.LeftOut)
	}
}

// TestSizeBadInput: one line that says what to do, exit 2.
func TestSizeBadInput(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	empty := filepath.Join(folder, "empty.json")
	if err := os.WriteFile(empty, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	wantOneLine(t, "size", map[string]string{
		"--products 0":                    "--products must be between 1 and 1000000000 (got 0)",
		"--rtt-ms -1":                     "--rtt-ms must be between 0 and 10000 (got -1)",
		"--commit-ms NaN":                 "--commit-ms must be between 0 and 10000 (got NaN)",
		"--commit-ms soon":                `--commit-ms must be a number (got "soon")`,
		"--writers 2":                     "--writers must be between 0 and 1 (got 2)",
		"--nodes 3 --writers 3":           "--writers must be at most --processes (got 3 and 1)",
		"--node-rtt-ms 1":                 "--node-rtt-ms requires several nodes",
		"--one-machine --shop-cores 4":    "--shop-cores cannot be combined with --one-machine",
		"--strategy nope":                 `unknown strategy "nope" (did you mean "none"?)`,
		"--strategy redis,redis":          "--strategy names redis twice",
		"--strategy=":                     "--strategy needs names, or all",
		"--nodes 3 --strategy named-lock": "no strategy can run on --nodes 3: named-lock: GET_LOCK is one node's own",
		"--calibrate a --products 5":      "--products cannot be combined with --calibrate and --measure; use it in a prediction",
		"--calibrate a --commit-ms 2":     "--commit-ms cannot be combined with --calibrate and --measure; use it in a prediction",
		"--measure a --one-machine":       "--one-machine cannot be combined with --calibrate and --measure; use it in a prediction",
		"--strategy redis,all":            `unknown strategy "all"`,
		"--points " + folder + "/no":      "no such file",
		"--points " + empty:               "has no points; create them with: shop size --calibrate",
		"--rounds 2":                      "--rounds requires --calibrate or --measure",
		"--calibrate a --measure b":       "--calibrate and --measure cannot be combined",
		"--calibrate a --points b":        "--points cannot be combined",
		"--calibrate a --engine url":      `unknown engine "url"; choose from: `,
		"--calibrate a --round 1ms":       "--round must be between 300ms and 1m (got 1ms)",
		"--calibrate a --local-db x":      "--local-db",
		"--calibrate " + folder + "/a/b":  "cannot write ",
		"500":                             `size takes no arguments (got "500")`,
	})
}

// TestSizeCalibrate measures this machine's servers and uses the result for predictions.
func TestSizeCalibrate(t *testing.T) {
	t.Parallel()
	tier.Test(t, "needs servers")
	file := filepath.Join(t.TempDir(), "mine.json")
	// The shops are child processes of a shop, so this test needs the program.
	out, err := plainCommand(t, "size", "--calibrate", file, "--engine", engine.Local, "--strategy", "mutex,for-update,redis", "--round", "1s").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	measured, err := sizing.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range measured.Points {
		if p.PerSecond <= 0 || p.CPU.Database <= 0 || p.CPU.Shop <= 0 || p.CPU.Buyers <= 0 || p.Servers.StatementMS <= 0 || p.Servers.RedisMS <= 0 {
			t.Errorf("%+v", p)
		}
	}
	if got := size(t, "--points", file, "--products", "100"); len(got.Results) != 3 || len(got.LeftOut) != len(lockstrategy.All())-3 {
		t.Errorf("%d predictions, left out %v; want those that were measured", len(got.Results), got.LeftOut)
	}
}
