package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestVendure and TestMedusa install a shop that people run, as npm publishes it, and explore its last unit
// with the documented script. The shop sells the unit twice.
func TestVendure(t *testing.T) { sellsTwice(t, "vendure") }

func TestMedusa(t *testing.T) { sellsTwice(t, "medusa") }

func sellsTwice(t *testing.T, shop string) {
	t.Helper()
	soakOnly(t)
	appCase{needs: []string{"node", "npm"}}.need(t)
	tool, err := plain()
	if err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.CommandContext(t.Context(), "../../examples/"+shop+"/run.sh", "--budget", "10m", "--first", "--report", report)
	cmd.Env = append(os.Environ(), "SHOP="+tool, "SHOP_DIR="+filepath.Join(t.TempDir(), shop))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != exitBroken {
		t.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r explore.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.Violations == 0 || r.Witness == nil || r.Witness.Verdict != verdict.Broken {
		t.Errorf("%d of %d schedules break, %d discarded: %s", r.Violations, r.Explored, r.Void, out)
	}
	t.Logf("%d of %d schedules break, %d discarded, %.0f s", r.Violations, r.Explored, r.Void, r.Seconds)
}
