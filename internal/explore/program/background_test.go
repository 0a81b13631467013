package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// postgresShop writes a file for a shop in testdata that sells one unit. reset has further statements.
func postgresShop(t *testing.T, folder, run, reset, more string) string {
	t.Helper()
	return appFile(t, fmt.Sprintf(`name: %s
run: %s
ready: http://127.0.0.1:8080/
postgres: 127.0.0.1:5432
local: true
schema: %s/schema.sql
buyer: POST http://127.0.0.1:8080/buy
reset: { sql: [ "UPDATE items SET stock = 1", "DELETE FROM orders", %s ] }
sold: 200
never: [ SELECT 1 FROM orders HAVING count(*) > 1, SELECT 1 FROM items WHERE stock < 0 ]
`, filepath.Base(folder), run, absolute(t, folder), reset)+more)
}

// backgroundShop writes a file for testdata/background/shop.py.
func backgroundShop(t *testing.T, mode, more string) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	return postgresShop(t, "testdata/background", "python3 "+absolute(t, "testdata/background/shop.py")+" "+mode, `"UPDATE news SET n = n + 1"`, more)
}

// TestAppIgnore: --app-check names what a program sends by itself, and the entries of `ignore` that let
// it pass. With them the search is complete, and no run is discarded.
func TestAppIgnore(t *testing.T) {
	tier.Soak(t, "no other test has it: a search of a program with background work")
	t.Parallel()
	code, stdout, stderr := exploreApp(t, backgroundShop(t, "jobs", ""), "--app-check", "--json")
	var check target.CheckReport
	if err := json.Unmarshal([]byte(stdout), &check); err != nil {
		t.Fatalf("exit %d: %v: %s%s", code, err, stdout, stderr)
	}
	polls := func(p target.PollerReport) bool {
		return strings.HasPrefix(p.Text, "SELECT id FROM jobs") && p.EveryMS >= 100 && p.EveryMS < 2000
	}
	if len(check.Pollers) != 2 || !slices.ContainsFunc(check.Pollers, polls) || strings.Join(check.Ignore, " ") != "jobs beats" {
		t.Fatalf("exit %d: %+v, ignore %q: %s", code, check.Pollers, check.Ignore, stderr)
	}
	more := "ignore: [ " + strings.Join(check.Ignore, ", ") + " ]\n"
	code, r, stderr := search(t, backgroundShop(t, "jobs", more))
	if code != 0 || !r.Complete || r.Void > 0 || r.Explored < 6 || len(r.Ignored) > 0 || !slices.Equal(r.Ignore, check.Ignore) {
		t.Errorf("exit %d, %d explored, complete %v, %v, %q: %s", code, r.Explored, r.Complete, r.Voided, r.Ignored, stderr)
	}
}

// TestAppIgnoreHides: an ignored command that writes what a rule reads makes no search complete, and one
// that waits for a buyer ends it.
func TestAppIgnoreHides(t *testing.T) {
	tier.Soak(t, "no other test has it: ignored commands that meet the steps of a program")
	t.Parallel()
	code, r, stderr := search(t, backgroundShop(t, "touch", "ignore: [ jobs, beats, 'SET item_id = item_id' ]\n"), "--full")
	const says = `"UPDATE orders SET item_id = item_id WHERE id = ?" writes postgres orders, which a rule of never reads`
	if !strings.Contains(stderr, says) || code == shoptest.Harness && strings.Count(stderr, "\n") != 1 || code != shoptest.Harness && (code != shoptest.Inconclusive || r.Complete) {
		t.Errorf("exit %d, complete %v: %s", code, r.Complete, stderr)
	}
	code, _, stderr = search(t, backgroundShop(t, "lock", "ignore: [ beats ]\n"))
	if code != shoptest.Harness || !strings.Contains(stderr, `ignore: "UPDATE beats SET at = now()" waits for a buyer's lock, so it must be a step`) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// TestAppQuiet: the first buyer comes when the program has sent nothing for some time.
func TestAppQuiet(t *testing.T) {
	tier.Soak(t, "no other test has it: the wait for a quiet program")
	t.Parallel()
	code, r, stderr := search(t, backgroundShop(t, "flush", "quiet: 200ms\n"), "--max-schedules", "4")
	if code != shoptest.Inconclusive || r.Void > 0 || r.Explored < 3 {
		t.Errorf("exit %d, %d explored, %v: %s", code, r.Explored, r.Voided, stderr)
	}
}

// TestAppRecovery: after a discarded run the programs get new connections. They are restarted only if the
// next run is discarded, too.
func TestAppRecovery(t *testing.T) {
	tier.Soak(t, "no other test has it: new connections of a program after a discarded run")
	t.Parallel()
	for mode, again := range map[string]bool{"hup": false, "hups": true} {
		starts := filepath.Join(t.TempDir(), "starts")
		_, r, stderr := search(t, backgroundShop(t, mode+" "+starts, ""), "--full", "--max-schedules", "8")
		text, err := os.ReadFile(starts)
		if err != nil {
			t.Fatal(err)
		}
		n := strings.Count(string(text), "\n")
		if r.Void == 0 || r.Voids["a program, or a server, hung up on a command"] != r.Void || again != (n > 2) || again != (r.Void > 1) {
			t.Errorf("%s: %d starts, %v: %s", mode, n, r.Voided, stderr)
		}
	}
}

// TestAppNotify: what a process of the program does because of a NOTIFY in `reset` is no step.
func TestAppNotify(t *testing.T) {
	tier.Soak(t, "no other test has it: a program that listens for a NOTIFY")
	t.Parallel()
	code, r, stderr := search(t, backgroundShop(t, "news", ""))
	if code != 0 || !r.Complete || r.Void > 0 || r.Explored < 6 {
		t.Errorf("exit %d, %d explored, complete %v, %v: %s", code, r.Explored, r.Complete, r.Voided, stderr)
	}
}
