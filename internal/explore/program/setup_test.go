package program_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// setupShop writes a file for testdata/setup/shop.py.
func setupShop(t *testing.T, more string) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	return appFile(t, fmt.Sprintf(`name: setup
run: python3 %s/shop.py
ready: http://127.0.0.1:8080/
mysql: 127.0.0.1:3306
local: true
schema: %s
buyer: POST http://127.0.0.1:8080/buy
never: [ SELECT 1 FROM orders HAVING count(*) <> :sold ]
`, absolute(t, "testdata/setup"), absolute(t, "../../../examples/schema.sql"))+more)
}

// TestAppSetup: a shop that answers 200 to a refusal, that must be reset over HTTP, and whose instances
// need a HOME each. Without one of these keys it cannot be explored.
func TestAppSetup(t *testing.T) {
	tier.Soak(t, "no other test has it: a reset over HTTP, and a HOME for each instance")
	t.Parallel()
	const (
		reset = "reset: { http: POST http://127.0.0.1:8080/reset }\n"
		sql   = "reset: { sql: [ UPDATE items SET stock = 1, DELETE FROM orders ] }\n"
		sold  = "sold: { status: 200, body: '\"placeOrder\": \\{' }\n"
		home  = "home: own\n"
	)
	code, r, stderr := search(t, setupShop(t, reset+sold+home))
	if code != 0 || !r.Complete || r.Void > 0 || r.Explored < 2 || r.Violations > 0 {
		t.Errorf("exit %d, %d explored, %d break, %v: %s", code, r.Explored, r.Violations, r.Voids, stderr)
	}
	if code, r, stderr := search(t, setupShop(t, reset+home+"sold: 200\n")); code != shoptest.Broken { // a refusal counts as a sale
		t.Errorf("exit %d, %d of %d break: %s", code, r.Violations, r.Explored, stderr)
	}
	for _, c := range []struct{ name, file, says string }{
		{"reset by SQL only", sql + sold + home, "buyer 1 alone: no command came to a gate"},
		{"one HOME", reset + sold + "env: { HOME: " + t.TempDir() + " }\n", "buyer 2 alone"},
		{"reset fails", strings.Replace(reset, "/reset", "/broken", 1) + sold + home, `reset fails: POST http://127.0.0.1:8080/broken: it is answered 500 {"error": "no reset"}`},
		{"nobody listens", strings.Replace(reset, "8080", "8081", 1) + sold + home, "reset fails: POST http://127.0.0.1:8081/reset: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, _, stderr := exploreApp(t, setupShop(t, c.file), "--app-check", "--json")
			if code != shoptest.Harness || !strings.Contains(stderr, c.says) || strings.Count(stderr, "\n") != 1 {
				t.Errorf("exit %d: %s; want %q", code, stderr, c.says)
			}
		})
	}
}

// TestAppCheckRestarts: each buyer alone leaves a lock behind, so its program is restarted before the
// reset over HTTP. A rule with :sold makes the check also send the buyers one after the other.
func TestAppCheckRestarts(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	file := setupShop(t, "reset: { http: POST http://127.0.0.1:8080/reset }\nsold: { status: 200, body: placeOrder }\nhome: own\n")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("8080/buy", "8080/keep", "SELECT 1 FROM orders HAVING count(*) <> :sold", "SELECT 1 FROM items WHERE stock > 0 AND :sold < 2").Replace(string(text))
	shoptest.Write(t, file, changed)
	if code, stdout, stderr := exploreApp(t, file, "--app-check"); code != 0 || strings.Count(stdout, "SELECT GET_LOCK") != 2 {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}

// TestAppCheckJSON: --app-check --json has what the text has.
func TestAppCheckJSON(t *testing.T) {
	tier.Soak(t, "no other test has it: the JSON of --app-check")
	t.Parallel()
	code, stdout, stderr := exploreApp(t, shoptest.Example(t, "python/naive.yaml"), "--app-check", "--json")
	var r target.CheckReport
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s%s", code, err, stdout, stderr)
	}
	if !r.OK || r.Program != "python-naive" || !strings.HasPrefix(r.Servers, "MariaDB ") || len(r.Buyers) != 2 {
		t.Fatalf("%+v", r)
	}
	b := r.Buyers[1]
	if b.Buyer != 2 || !b.Sold || b.Answer != "200 bought" || b.TookMS <= 0 || len(b.Commands) != 3 || b.Commands[0] != (target.SeenReport{Server: "mysql", Text: "SELECT stock FROM items WHERE id = 1", Result: "stock=1"}) || b.Why != "" {
		t.Errorf("%+v", b)
	}
}
