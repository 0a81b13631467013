package program_test

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// parallelShop writes a file for testdata/parallel/shop.mjs.
func parallelShop(t *testing.T, mode string) string {
	t.Helper()
	shoptest.Needs(t, "node", "npm")
	run := strings.Join([]string{"node", absolute(t, "testdata/parallel/shop.mjs"), absolute(t, "../../../examples/node"), mode}, " ")
	return postgresShop(t, "testdata/parallel", run, `"DELETE FROM payments"`, "")
}

// TestAppParallel: a buyer has several commands at the gates at once. Equal ones, and those that come
// after a random pause, make no run diverge.
func TestAppParallel(t *testing.T) {
	tier.Soak(t, "no other test has it: a buyer with several commands at once")
	t.Parallel()
	code, r, stderr := search(t, parallelShop(t, "branches"), "--max-schedules", "12")
	if code != shoptest.Broken || r.Void > 0 || r.Explored < 6 {
		t.Errorf("exit %d, %d explored, %d discarded, %v: %s", code, r.Explored, r.Void, r.Voided, stderr)
	}
}

// TestAppJob: a timer of the program sends after the buyer is answered. That makes no run diverge either.
func TestAppJob(t *testing.T) {
	tier.Soak(t, "no other test has it: a timer that sends after the answer")
	t.Parallel()
	code, r, stderr := search(t, parallelShop(t, "job"), "--max-schedules", "40")
	if code != shoptest.Broken || r.Void > 0 || r.Late || r.Explored < 20 {
		t.Errorf("exit %d, %d explored, %d discarded, %v: %s", code, r.Explored, r.Void, r.Voided, stderr)
	}
}
