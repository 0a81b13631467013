package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/load/rush"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// TestSoldOutRestocks: each strategy keeps its promise behind the check. The rushes find the check
// in use: the product is sold out, restocked, and sold out again at each of two processes.
func TestSoldOutRestocks(t *testing.T) {
	tier.Soak(t, "20 strategies on two engines; TestReadBeginsLater of internal/purchase orders the read and the restock")
	t.Parallel()
	for _, args := range [][]string{{"--engine", "embedded"}, {"--engine", "local", "--processes", "2"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			t.Parallel()
			args = append([]string{"rush", "--" + soldOutCheck, "--restocks", "4", "--expect", "--json", "--wait", "1m", "--lease", "2m"}, args...)
			code, stdout, stderr := shoptest.Exit(t, shoptest.Command(t, args...))
			var report rush.Report
			if err := json.Unmarshal([]byte(stdout), &report); err != nil || code != 0 {
				t.Fatalf("exit %d, %v: %s %s", code, err, stderr, stdout)
			}
			for _, r := range report.Results {
				checkResult(t, r)
			}
		})
	}
}

// TestUncheckable: there is no check on a database that does not support its read. A user that
// requests it is told why in one line.
func TestUncheckable(t *testing.T) {
	t.Parallel()
	e := enginetest.Local(t)
	args := serveArgs(e)
	variable := "transaction_isolation"
	if strings.Contains(e.Server, "MariaDB") { // before 11.1
		variable = "tx_isolation"
	}
	args[1] += "?" + variable + "=%27READ-UNCOMMITTED%27"
	for _, command := range [][]string{
		{"serve", "--addr", "127.0.0.1:0", "--" + soldOutCheck},
		{"rush", "--strategy", "none", "--" + soldOutCheck},
	} {
		code, stdout, stderr := shoptest.RunRaced(t, append(command, args...)...)
		if code != exitHarness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, soldOutCheck) || !strings.Contains(stderr, "READ UNCOMMITTED") {
			t.Errorf("%v: exit %d, %q %q; want %d and one line", command, code, stdout, stderr, exitHarness)
		}
	}
	base := startServe(t, args...) // the default is off
	if r := webtest.Call(t, http.MethodGet, base+"/product/buy", "", nil); r.Status != http.StatusOK {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}
