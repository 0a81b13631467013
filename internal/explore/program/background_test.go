package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/explore/target/gates"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// postgresShop writes a file for a shop in testdata that sells one unit. reset contains further
// statements.
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

func backgroundShop(t *testing.T, mode, more string) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	return postgresShop(t, "testdata/background", "python3 "+absolute(t, "testdata/background/shop.py")+" "+mode, `"UPDATE news SET n = n + 1"`, more)
}

// TestAppIgnore: --app-check names the commands that a program sends by itself, and the entries of
// `ignore` that let them pass. With these entries, the search is complete, and no run is discarded.
func TestAppIgnore(t *testing.T) {
	tier.Soak(t, "no other test has it: a search of a program with background work")
	t.Parallel()
	code, stdout, stderr := exploreApp(t, backgroundShop(t, "jobs", ""), "--app-check", "--json")
	var check target.CheckReport
	if err := json.Unmarshal([]byte(stdout), &check); err != nil {
		t.Fatalf("exit %d: %v: %s%s", code, err, stdout, stderr)
	}
	polls := func(p gates.Poller) bool {
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

// TestAppIgnoreHides: if an ignored command writes data that a rule reads, the search is not complete.
// If an ignored command waits for a buyer, the search ends.
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

// TestAppQuiet: with `quiet`, the first buyer comes after the program has sent nothing for some time.
func TestAppQuiet(t *testing.T) {
	tier.Soak(t, "no other test has it: the wait for a quiet program")
	t.Parallel()
	code, r, stderr := search(t, backgroundShop(t, "flush", "quiet: 200ms\n"), "--max-schedules", "4")
	if code != shoptest.Inconclusive || r.Void > 0 || r.Explored < 3 {
		t.Errorf("exit %d, %d explored, %v: %s", code, r.Explored, r.Voided, stderr)
	}
}

// TestAppRecovery: after a discarded run, the explorer makes the programs open new connections. It
// restarts them only if the next run is discarded, too.
func TestAppRecovery(t *testing.T) {
	tier.Soak(t, "no other test has it: new connections of a program after a discarded run")
	t.Parallel()
	for mode, again := range map[string]bool{"hup": false, "hups": true} {
		starts := filepath.Join(t.TempDir(), "starts")
		_, r, stderr := search(t, backgroundShop(t, mode+" "+starts, ""), "--full", "--max-schedules", "8")
		text, err := os.ReadFile(starts)
		require.NoError(t, err)
		n := strings.Count(string(text), "\n")
		if r.Void == 0 || r.Voids["a program, or a server, hung up on a command"] != r.Void || again != (n > 2) || again != (r.Void > 1) {
			t.Errorf("%s: %d starts, %v: %s", mode, n, r.Voided, stderr)
		}
	}
}

// TestAppNotify: commands that a process of the program sends because of a NOTIFY in `reset` are not
// steps.
func TestAppNotify(t *testing.T) {
	tier.Soak(t, "no other test has it: a program that listens for a NOTIFY")
	t.Parallel()
	code, r, stderr := search(t, backgroundShop(t, "news", ""))
	if code != 0 || !r.Complete || r.Void > 0 || r.Explored < 6 {
		t.Errorf("exit %d, %d explored, complete %v, %v: %s", code, r.Explored, r.Complete, r.Voided, stderr)
	}
}

func parallelShop(t *testing.T, mode string) string {
	t.Helper()
	shoptest.Needs(t, "node", "npm")
	run := strings.Join([]string{"node", absolute(t, "testdata/parallel/shop.mjs"), absolute(t, "../../../examples/node"), mode}, " ")
	return postgresShop(t, "testdata/parallel", run, `"DELETE FROM payments"`, "")
}

// TestAppParallel: a buyer has several commands at the gates at once. No run diverges, even if two
// commands are equal or come after a random pause.
func TestAppParallel(t *testing.T) {
	tier.Soak(t, "no other test has it: a buyer with several commands at once")
	t.Parallel()
	code, r, stderr := search(t, parallelShop(t, "branches"), "--max-schedules", "12")
	if code != shoptest.Broken || r.Void > 0 || r.Explored < 6 {
		t.Errorf("exit %d, %d explored, %d discarded, %v: %s", code, r.Explored, r.Void, r.Voided, stderr)
	}
}

// TestAppJob: no run diverges if a timer of the program sends a command after the buyer's answer.
func TestAppJob(t *testing.T) {
	tier.Soak(t, "no other test has it: a timer that sends after the answer")
	t.Parallel()
	code, r, stderr := search(t, parallelShop(t, "job"), "--max-schedules", "40")
	if code != shoptest.Broken || r.Void > 0 || r.Late || r.Explored < 20 {
		t.Errorf("exit %d, %d explored, %d discarded, %v: %s", code, r.Explored, r.Void, r.Voided, stderr)
	}
}

func varyingShop(t *testing.T, mode, more string) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	return postgresShop(t, "testdata/varying", "python3 "+absolute(t, "testdata/varying/shop.py")+" "+mode, `"DELETE FROM carts"`, more)
}

// TestAppVarying: no run diverges because of values that differ in each run. The explorer finds them by
// itself, or by a pattern of `random`.
func TestAppVarying(t *testing.T) {
	tier.Soak(t, "no other test has it: searches of programs whose values differ")
	t.Parallel()
	code, r, stderr := search(t, varyingShop(t, "values", ""))
	if code != shoptest.Broken || r.Void > 0 || !r.Complete || r.Explored < 10 {
		t.Errorf("exit %d, %d explored, complete %v, %v: %s", code, r.Explored, r.Complete, r.Voided, stderr)
	}
	if w := r.Witness; w != nil {
		for _, s := range w.Steps {
			if s.Command == "" || strings.Contains(s.Command, "INSERT INTO carts") && !strings.Contains(s.Command, "VALUES ('<carts.") {
				t.Errorf("%+v", s)
			}
		}
	}
	// The explorer compares requests 3 and 5, since request 4 sends an additional command.
	code, r, stderr = search(t, varyingShop(t, "refresh", ""), "--max-schedules", "5")
	if code != shoptest.Broken || r.Void > 0 {
		t.Errorf("refresh: exit %d, %v: %s", code, r.Voided, stderr)
	}
	code, _, stderr = exploreApp(t, varyingShop(t, "list", ""))
	const says = "buyer 1 alone: a value that differs each time cannot be found in its command \"SELECT ARRAY["
	if code != shoptest.Harness || !strings.Contains(stderr, says) || !strings.Contains(stderr, "write a pattern for it in `random:` of the file") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit %d: %s; want %q", code, stderr, says)
	}
	code, r, stderr = search(t, varyingShop(t, "list", "random: [ 'ARRAY\\[.*\\]' ]\n"), "--max-schedules", "5")
	if code != shoptest.Broken || r.Void > 0 {
		t.Errorf("exit %d, %v: %s", code, r.Voided, stderr)
	}
}

// TestAppRefusals: if a rate limiter refuses a buyer, the report on the discarded run contains its answer.
func TestAppRefusals(t *testing.T) {
	tier.Soak(t, "no other test has it: the reason of a run that a rate limiter ends")
	t.Parallel()
	_, r, stderr := search(t, varyingShop(t, "limits", ""), "--max-schedules", "12")
	named := func(v explore.Voided) bool { return strings.Contains(v.Details, "buyer 1 was answered 429") }
	if r.Void == 0 || !slices.ContainsFunc(r.Voided, named) {
		t.Errorf("%d void: %+v: %s", r.Void, r.Voided, stderr)
	}
}
