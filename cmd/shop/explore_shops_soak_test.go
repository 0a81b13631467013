package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/tier"
)

// exploreShop runs the documented script of examples/NAME, which installs a shop that people run, and
// returns the report of its search. The script must exit with that code.
func exploreShop(t *testing.T, name string, code int, args ...string) (r explore.Report) {
	t.Helper()
	tool, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.CommandContext(t.Context(), "../../examples/"+name+"/run.sh", append(args, "--report", report)...)
	cmd.Env = append(os.Environ(), "SHOP="+tool, "SHOP_DIR="+filepath.Join(t.TempDir(), name))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != code {
		t.Fatalf("%v, want exit code %d: %s", err, code, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if code == exitBroken && (r.Violations == 0 || r.Witness == nil || r.Witness.Verdict != verdict.Broken) {
		t.Errorf("%d of %d schedules break, %d discarded: %s", r.Violations, r.Explored, r.Void, out)
	}
	t.Logf("%d of %d schedules break, %d discarded, complete %v, %.0f s", r.Violations, r.Explored, r.Void, r.Complete, r.Seconds)
	return r
}

// TestVendure and TestMedusa: the shop, as npm publishes it, sells its last unit twice.
func TestVendure(t *testing.T) { sellsTwice(t, "vendure") }

func TestMedusa(t *testing.T) { sellsTwice(t, "medusa") }

func sellsTwice(t *testing.T, shop string) {
	t.Helper()
	tier.Soak(t, "a long search of a program")
	appCase{needs: []string{"node", "npm"}}.need(t)
	exploreShop(t, shop, exitBroken, "--budget", "10m", "--first")
}

// TestTryton: the shop assigns its last unit to a sale and to a transfer from the shelf, but never to two
// sales: a real shop whose locks hold.
func TestTryton(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	appCase{needs: []string{"apt-get"}}.need(t)
	if _, err := exec.LookPath("trytond"); err != nil && os.Geteuid() != 0 {
		t.Skip("trytond is not installed, and apt-get needs root")
	}
	exploreShop(t, "tryton", exitBroken, "shelf", "--budget", "30m", "--first")
	r := exploreShop(t, "tryton", exitInconclusive, "two-sales", "--budget", "30m", "--max-schedules", "100")
	if r.Violations > 0 || r.Explored < 90 || r.Void > 1 {
		t.Errorf("%d of %d schedules break, %d discarded: %v", r.Violations, r.Explored, r.Void, r.Voided)
	}
}
