package program_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// exploreShop runs the documented script of examples/NAME, which installs a public shop and searches
// it. It returns the report of the search. The script must exit with the given code.
func exploreShop(t *testing.T, name string, code int, args ...string) (r explore.Report) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.CommandContext(t.Context(), "../../../examples/"+name+"/run.sh", append(args, "--report", report)...)
	cmd.Env = append(os.Environ(), "SHOP="+shoptest.Path(t), "SHOP_DIR="+filepath.Join(t.TempDir(), name))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%v, want exit code %d: %s", err, code, out)
	}
	text, err := os.ReadFile(report)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	if code == shoptest.Broken && (r.Violations == 0 || r.Witness == nil || r.Witness.Verdict != verdict.Broken) {
		t.Errorf("%d of %d schedules break, %d discarded: %s", r.Violations, r.Explored, r.Void, out)
	}
	t.Logf("%d of %d schedules break, %d discarded, complete %v, %.0f s", r.Violations, r.Explored, r.Void, r.Complete, r.Seconds)
	return r
}

// TestVendure and TestMedusa: the shop that npm installs sells its last unit twice.
func TestVendure(t *testing.T) { sellsTwice(t, "vendure") }

func TestMedusa(t *testing.T) { sellsTwice(t, "medusa") }

func sellsTwice(t *testing.T, shop string) {
	t.Helper()
	tier.Soak(t, "a long search of a program")
	shoptest.Needs(t, "node", "npm")
	exploreShop(t, shop, shoptest.Broken, "--budget", "10m", "--first")
}

// TestTryton: this public shop can assign its last unit both to a sale and to a transfer from the
// shelf. Its locks work for two sales.
func TestTryton(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	shoptest.Needs(t, "apt-get")
	if _, err := exec.LookPath("trytond"); err != nil && os.Geteuid() != 0 {
		t.Skip("trytond is not installed, and apt-get needs root")
	}
	exploreShop(t, "tryton", shoptest.Broken, "shelf", "--budget", "30m", "--first")
	r := exploreShop(t, "tryton", shoptest.Inconclusive, "two-sales", "--budget", "30m", "--max-schedules", "100")
	if r.Violations > 0 || r.Explored < 90 || r.Void > 1 {
		t.Errorf("%d of %d schedules break, %d discarded: %v", r.Violations, r.Explored, r.Void, r.Voided)
	}
}

// TestBetterAuth: version 1.3 accepts a single-use API key twice, unless it is mended with a conditional
// write. Version 1.7 may refuse both requests, unless it is mended to keep a used-up key.
func TestBetterAuth(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	shoptest.Needs(t, "node", "npm")
	for _, c := range []struct {
		args                string
		explored, violating int
	}{{"1.3", 4, 2}, {"1.3-mended", 4, 0}, {"1.7 --overlap", 38, 16}, {"1.7-mended --overlap", 18, 0}} {
		code := 0
		if c.violating > 0 {
			code = shoptest.Broken
		}
		r := exploreShop(t, "better-auth", code, strings.Fields(c.args)...)
		if !r.Complete || r.Void > 0 || r.Explored != c.explored || r.Violations != c.violating {
			t.Errorf("%s: %d of %d schedules break, complete %v, %d discarded; want %d of %d", c.args, r.Violations, r.Explored, r.Complete, r.Void, c.violating, c.explored)
		}
	}
}

// TestShopScripts: the scripts of examples/ exit with the code of the tool and delete their folder,
// even after an interrupt. Without the tool, they install nothing. Stand-ins replace the tool and npm.
func TestShopScripts(t *testing.T) {
	tier.Test(t, "the other tests here need servers, and make quick links none of them")
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh is not installed")
	}
	bin := t.TempDir()
	tool := filepath.Join(bin, "tool")
	for file, script := range map[string]string{
		filepath.Join(bin, "npm"):  "echo installed",
		filepath.Join(bin, "dpkg"): "", // the packages seem to be installed
		tool:                       `[ -f "$3" ] || exit 9; [ -z "${INTERRUPT:-}" ] || kill -TERM $PPID; exit 3`,
	} {
		require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+script+"\n"), 0o700))
	}
	for _, c := range []struct {
		name, env string
		code      int
		says      string
	}{
		{"the tool's code", "SHOP=" + tool, shoptest.Inconclusive, ""},
		{"interrupted", "INTERRUPT=1", 143, ""},
		{"no tool", "SHOP=./none", shoptest.Harness, "./none is not there: build it (go build -o shop ./cmd/shop), or name it with SHOP\n"},
	} {
		for _, script := range []string{"vendure/run.sh", "medusa/run.sh", "better-auth/run.sh 1.3", "tryton/run.sh shelf"} {
			temporary := t.TempDir()
			words := strings.Fields(script)
			cmd := exec.CommandContext(t.Context(), "../../../examples/"+words[0], words[1:]...)
			cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "TMPDIR="+temporary, "SHOP_DIR=", "SHOP="+tool, c.env)
			code, stdout, stderr := shoptest.Exit(t, cmd)
			left, err := os.ReadDir(temporary)
			if says := strings.TrimPrefix(stderr, "installed\n"); code != c.code || says != c.says || stdout != "" || err != nil || len(left) > 0 {
				t.Errorf("%s, %s: exit %d, %q, %q, left %v, %v; want exit %d and %q", script, c.name, code, stdout, stderr, left, err, c.code, c.says)
			}
		}
	}
}
