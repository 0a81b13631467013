package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestVerifyExplain: the evidence of each cell of a run can be read from its JSON report.
func TestVerifyExplain(t *testing.T) {
	tier.Test(t, "starts the command for each case")
	t.Parallel()
	folder := t.TempDir()
	explain := func(args ...string) (code int, stdout, stderr string) {
		shop := shoptest.Command(t, append([]string{"verify"}, args...)...)
		shop.Dir = folder
		return shoptest.Exit(t, shop)
	}
	if code, out, stderr := explain("--strategy", "none,redis", "--fault", "explore,rush", "--report", "run.json"); code != 0 {
		t.Fatalf("exit %d: %s%s", code, out, stderr)
	}
	for cell, wants := range map[string][]string{
		"none/rush":    {"strategy   none: ", "condition  rush: 200 buyers", "promised   oversold", "seen       oversold, as promised", "evidence   ", " units sold of 100 stocked\n", "again      ./shop verify --engine embedded --strategy none --fault rush\n"},
		"none/explore": {"again      ./shop explore none --replay v1:none:", "│ step │", "oversold: 2 units sold of 1 stocked"},
		"Y/rush":       {"strategy   redis: ", "seen       holds, as promised", "evidence   100 units sold of 100 stocked, 0 left"},
	} {
		code, out, stderr := explain("--explain", cell, "--from", "run.json")
		if code != 0 || stderr != "" {
			t.Errorf("%s: exit %d: %s", cell, code, stderr)
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s lacks %q:\n%s", cell, want, out)
			}
		}
	}
	for name, text := range map[string]string{"broken.json": "{", "other.json": `{"results": []}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--explain", "redis/rush"}, "run make verify"},
		{[]string{"--explain", "redis/rush", "--from", "none.json"}, "--from: open none.json: no such file"},
		{[]string{"--explain", "redis/rush", "--from", "broken.json"}, "broken.json: not a JSON report of shop verify: unexpected end"},
		{[]string{"--explain", "redis/rush", "--from", "other.json"}, "other.json: not a JSON report of shop verify: it has no cells"},
		{[]string{"--explain", "redis", "--from", "run.json"}, `invalid cell "redis"; expected STRATEGY/CONDITION`},
		{[]string{"--explain", "rediss/rush", "--from", "run.json"}, `unknown strategy "rediss" (did you mean "redis"?)`},
		{[]string{"--explain", "redis/rash", "--from", "run.json"}, `unknown fault "rash" (did you mean "rush"?)`},
		{[]string{"--explain", "redlock/rush", "--from", "run.json"}, "this report has no strategy redlock"},
		{[]string{"--explain", "redis/pause", "--from", "run.json"}, "this report has redis only under explore, rush"},
		{[]string{"--explain", "redis/rush", "--quick"}, "leave out --quick"},
		{[]string{"--from", "run.json"}, "--from belongs to --explain"},
	} {
		code, out, stderr := explain(c.args...)
		if code != exitHarness || out != "" || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %q%q; want 2 and one line with %q", c.args, code, out, stderr, c.want)
		}
	}
	if err := os.MkdirAll(filepath.Join(folder, matrixResults), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(folder, "run.json"), filepath.Join(folder, matrixResults, "mariadb.json")); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := explain("--explain", "redis/rush"); code != 0 || !strings.HasPrefix(out, "strategy   redis") {
		t.Errorf("from the newest result: exit %d: %s%s", code, out, stderr)
	}
}
