package program_test

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// A statementShop describes a run of testdata/answers/shop.py, which sends the statements in sql.
type statementShop struct {
	database string // mysql or postgres
	sql      []string
	buyers   string // the key of the file; "": two buyers of item 1
	fails    string // status if the server refuses a statement; "": 500; "-": no answer
	never    string // the rule; "": one that no sale breaks
	more     string // further lines of the file
	schema   string // further statements of the schema
	reset    string // a further statement of the reset
}

// file writes oversell.yaml for the shop and returns its path. The stock of each item is 2.
func (s statementShop) file(t *testing.T) string {
	t.Helper()
	shoptest.Needs(t, "python3")
	dir := absolute(t, "testdata/answers")
	schema := dir + "/schema.sql"
	if s.schema != "" {
		basic, err := os.ReadFile(schema)
		if err != nil {
			t.Fatal(err)
		}
		schema = filepath.Join(t.TempDir(), "schema.sql")
		shoptest.Write(t, schema, string(basic)+s.schema)
	}
	port := map[string]string{"mysql": "3306", "postgres": "5432"}[s.database]
	env := fmt.Sprintf("SQL: %q", strings.Join(s.sql, "\n"))
	if s.fails != "" {
		env += fmt.Sprintf(", FAILS: %q", strings.Trim(s.fails, "-"))
	}
	return appFile(t, fmt.Sprintf(`name: statements
run: python3 %s/shop.py %s
env: { %s }
ready: http://127.0.0.1:8080/
%[2]s: 127.0.0.1:%[4]s
local: true
schema: %[8]s
%[5]s
reset:
  sql: [ "UPDATE items SET stock = 2", "DELETE FROM orders", %[9]q ]
sold: 200
never: [ %[6]q ]
%[7]s`, dir, s.database, env, port, cmp.Or(s.buyers, "buyer: POST http://127.0.0.1:8080/buy?1"), cmp.Or(s.never, "SELECT * FROM items WHERE stock < 0"), s.more, schema, cmp.Or(s.reset, "SELECT 1")))
}

// staleSnapshot takes the lock after the snapshot, so PostgreSQL refuses a buyer that has waited.
var staleSnapshot = []string{
	"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT pg_advisory_xact_lock(1)",
	"UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0", "INSERT INTO orders VALUES (1)", "COMMIT",
}

// crossed updates two rows in the order of the basket: two baskets may deadlock.
var crossed = []string{"BEGIN", "UPDATE items SET stock = stock - 1 WHERE id = {0}", "UPDATE items SET stock = stock - 1 WHERE id = {1}", "COMMIT"}

// TestAppAnswers: a failure or a missing answer breaks the promise while every server is healthy.
// A refusal does not, unless a rule forbids it.
func TestAppAnswers(t *testing.T) {
	tier.Soak(t, "no other test has it: answers in a search of a program")
	t.Parallel()
	const baskets = "buyers:\n  - POST http://127.0.0.1:8080/buy?1,2\n  - POST http://127.0.0.1:8080/buy?2,1"
	for _, c := range []struct {
		name    string
		shop    statementShop
		args    []string
		code    int
		why     string // verdict and reason of the witness begin so; "": there is no witness
		answers []string
	}{
		{"a stale snapshot", statementShop{database: "postgres", sql: staleSnapshot}, nil, shoptest.Broken, "failed: buyer 2 was answered 500, and every server is healthy", []string{"200", "500"}},
		{"a deadlock", statementShop{database: "mysql", sql: crossed, buyers: baskets}, nil, shoptest.Broken, "failed: buyer ", []string{"200", "500"}},
		{"no answer", statementShop{database: "mysql", sql: crossed, buyers: baskets, fails: "-"}, []string{"--first"}, shoptest.Broken, "failed: buyer ", []string{"200", "no answer"}},
		{"a refusal", statementShop{database: "postgres", sql: staleSnapshot, fails: "503"}, nil, 0, "", []string{"200", "503"}},
		{"no refusal while a unit is left", statementShop{database: "postgres", sql: staleSnapshot, fails: "503", never: "SELECT 1 FROM items WHERE stock > 0 AND :sold < 2"}, nil, shoptest.Broken, "broken: must return no row, and does: SELECT 1 FROM items WHERE stock > 0 AND :sold < 2", []string{"200", "503"}},
		{"a rule about failures", statementShop{database: "postgres", sql: staleSnapshot, never: "SELECT 1 WHERE :failed > 0"}, nil, shoptest.Broken, "broken: must return no row, and does: SELECT 1 WHERE :failed > 0", []string{"200", "500"}},
		{"after an event", statementShop{database: "mysql", sql: []string{crossed[0], "UPDATE items SET stock = stock - 1 WHERE id = 1", "COMMIT"}}, []string{"--events", "timeout"}, 0, "", []string{"200", "500"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := c.shop.file(t)
			code, r, stderr := search(t, file, c.args...)
			why := ""
			if r.Witness != nil {
				why = string(r.Witness.Verdict) + ": " + r.Witness.Why
			}
			if code != c.code || !strings.HasPrefix(why, c.why) || (why == "") != (c.why == "") {
				t.Errorf("exit %d, %q; want %d, %q: %s", code, why, c.code, c.why, stderr)
			}
			if kinds := slices.Sorted(maps.Keys(r.Answers)); !slices.Equal(kinds, c.answers) {
				t.Errorf("%v, want %v", r.Answers, c.answers)
			}
		})
	}
}

// TestAppRuleAboutAnswers: the explorer checks a rule about answers only after all buyers have
// come. --app-check rejects a rule that is broken after the reset or when buyers come one by one.
func TestAppRuleAboutAnswers(t *testing.T) {
	tier.Soak(t, "no other test has it: when a search of a program checks such a rule")
	t.Parallel()
	sound := []string{"UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0"}
	for rule, says := range map[string]string{
		"SELECT 1 WHERE :sold < 2":                          "",
		"SELECT 1 WHERE :sold < 3":                          "never: SELECT 1 WHERE :sold < 3 returns a row right after reset",
		"SELECT 1 FROM orders HAVING count(*) <> :sold":     "buyer 1 alone: POST http://127.0.0.1:8080/buy?1 is answered 200, and then SELECT 1 FROM orders",
		"SELECT 1 FROM items WHERE stock = 1 AND :sold = 1": "",
	} {
		code, _, stderr := exploreApp(t, statementShop{database: "postgres", sql: sound, never: rule}.file(t), "--app-check")
		if want := map[bool]int{true: 0, false: shoptest.Harness}[says == ""]; code != want || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d, want %d and %q: %s", rule, code, want, says, stderr)
		}
	}
}

// TestAppDivided: a statement that reads and then writes can hide a race inside one step. The
// result names it if another buyer's write could come between. Exit code 3, unless the file accepts it.
func TestAppDivided(t *testing.T) {
	t.Parallel()
	const (
		counts   = "INSERT INTO orders SELECT 1 FROM items WHERE id = 1 AND stock > (SELECT count(*) FROM orders)"
		looks    = "INSERT INTO orders SELECT id FROM items WHERE id = 1 AND stock > 0"
		unlocked = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
	)
	for _, c := range []struct {
		name    string
		shop    statementShop
		code    int
		divided []string
	}{
		{"a count", statementShop{database: "postgres", sql: []string{counts}}, shoptest.Inconclusive, []string{counts}},
		{"a count that the file accepts", statementShop{database: "postgres", sql: []string{counts}, more: "atomic: accepted\n"}, 0, []string{counts}},
		{"a count under a lock", statementShop{database: "postgres", sql: []string{"BEGIN", "SELECT stock FROM items WHERE id = 1 FOR UPDATE", counts, "COMMIT"}}, 0, nil},
		{"a plain update", statementShop{database: "postgres", sql: []string{"UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0"}}, 0, nil},
		{"a level without locks", statementShop{database: "mysql", sql: []string{unlocked, looks}}, shoptest.Inconclusive, []string{looks}},
		{"a level with locks", statementShop{database: "mysql", sql: []string{looks}}, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, r, stderr := search(t, c.shop.file(t))
			if code != c.code || !slices.Equal(r.Divided, c.divided) || r.Explored < 2 || r.Violations > 0 {
				t.Errorf("exit %d, %q in %d schedules; want %d, %q: %s", code, r.Divided, r.Explored, c.code, c.divided, stderr)
			}
		})
	}
}
