package program_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// A statementShop describes a run of testdata/answers/shop.py, which sends the statements in sql.
type statementShop struct {
	database string // mysql or postgres
	sql      []string
	buyers   string // lines for the key `buyers`; "": two buyers of item 1
	fails    string // the program's status after a refused statement; "": 500; "-": no answer
	never    string // the rule; "": a rule that no sale breaks; "-": no rule
	more     string // further lines of oversell.yaml
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
		require.NoError(t, err)
		schema = filepath.Join(t.TempDir(), "schema.sql")
		shoptest.Write(t, schema, string(basic)+s.schema)
	}
	port := map[string]string{"mysql": "3306", "postgres": "5432"}[s.database]
	env := fmt.Sprintf("SQL: %q", strings.Join(s.sql, "\n"))
	if s.fails != "" {
		env += fmt.Sprintf(", FAILS: %q", strings.Trim(s.fails, "-"))
	}
	never := fmt.Sprintf("never: [ %q ]", cmp.Or(s.never, "SELECT * FROM items WHERE stock < 0"))
	if s.never == "-" {
		never = ""
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
%[6]s
%[7]s`, dir, s.database, env, port, cmp.Or(s.buyers, "buyer: POST http://127.0.0.1:8080/buy?1"), never, s.more, schema, cmp.Or(s.reset, "SELECT 1")))
}

// staleSnapshot takes the snapshot before the lock, so PostgreSQL refuses the write of a buyer that has
// waited.
var staleSnapshot = []string{
	"BEGIN ISOLATION LEVEL REPEATABLE READ", "SELECT pg_advisory_xact_lock(1)",
	"UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0", "INSERT INTO orders VALUES (1)", "COMMIT",
}

// crossed updates two rows in the order of the basket: two baskets may deadlock.
var crossed = []string{"BEGIN", "UPDATE items SET stock = stock - 1 WHERE id = {0}", "UPDATE items SET stock = stock - 1 WHERE id = {1}", "COMMIT"}

// TestAppAnswers: a failure or a missing answer is a violation while every server is healthy. A refusal
// is no violation, unless a rule forbids it.
func TestAppAnswers(t *testing.T) {
	tier.Soak(t, "no other test has it: answers in a search of a program")
	t.Parallel()
	const baskets = "buyers:\n  - POST http://127.0.0.1:8080/buy?1,2\n  - POST http://127.0.0.1:8080/buy?2,1"
	for _, c := range []struct {
		name    string
		shop    statementShop
		args    []string
		code    int
		why     string // beginning of the witness's verdict and reason; "": there is no witness
		answers []string
	}{
		{"a stale snapshot", statementShop{database: "postgres", sql: staleSnapshot}, nil, shoptest.Broken, "failed: buyer 2 was answered 500, and every server is healthy", []string{"200", "500"}},
		{"a deadlock", statementShop{database: "mysql", sql: crossed, buyers: baskets}, nil, shoptest.Broken, "failed: buyer ", []string{"200", "500"}},
		{"no answer", statementShop{database: "mysql", sql: crossed, buyers: baskets, fails: "-"}, []string{"--first"}, shoptest.Broken, "failed: buyer ", []string{"200", "no answer"}},
		{"a refusal", statementShop{database: "postgres", sql: staleSnapshot, fails: "503"}, nil, 0, "", []string{"200", "503"}},
		{"no refusal while a unit is left", statementShop{database: "postgres", sql: staleSnapshot, fails: "503", never: "SELECT 1 FROM items WHERE stock > 0 AND :sold < 2"}, nil, shoptest.Broken, "broken: must return no row, and does: SELECT 1 FROM items WHERE stock > 0 AND :sold < 2", []string{"200", "503"}},
		{"a refusal while a unit is left", statementShop{database: "postgres", sql: staleSnapshot, fails: "503", never: "-"}, nil, 0, "", []string{"200", "503"}},
		{"the same, and strict", statementShop{database: "postgres", sql: staleSnapshot, fails: "503", never: "-", more: "strict: true\n"}, nil, shoptest.Broken, "broken: refused while a unit was left", []string{"200", "503"}},
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
			if noted := r.Early > 0; noted != (c.shop.never == "-" && c.code == 0) {
				t.Errorf("%d schedules in which a buyer was refused while a unit was left", r.Early)
			}
			if kinds := slices.Sorted(maps.Keys(r.Answers)); !slices.Equal(kinds, c.answers) {
				t.Errorf("%v, want %v", r.Answers, c.answers)
			}
		})
	}
}

// TestAppWithoutRules: without a rule, each schedule must end like a serial order of the buyers. If a
// table or value cannot be compared, the error names it before the search.
func TestAppWithoutRules(t *testing.T) {
	t.Parallel()
	const check, take = "UPDATE items SET stock = stock WHERE id = 1 AND stock = 2", "UPDATE items SET stock = stock - 2 WHERE id = 1"
	naive := statementShop{database: "postgres", sql: []string{check, take}, never: "-"}
	for _, c := range []struct {
		name       string
		shop       statementShop
		code       int
		says       string
		uncompared []string
		quick      bool
	}{
		{"a check and a write", naive, shoptest.Broken, "equals no order of the buyers, one after the other; nearest: buyer 1, then buyer 2", nil, true},
		{"in one transaction", statementShop{database: "postgres", sql: []string{"BEGIN", check, take, "COMMIT"}, never: "-"}, 0, "", nil, true},
		{"a refused buyer with an order", statementShop{database: "mysql", sql: []string{"INSERT INTO orders SELECT 1 FROM items WHERE id = 1 AND stock = 2", "UPDATE items SET stock = 0 WHERE id = 1"}, never: "-"}, shoptest.Broken, "equals no order of the buyers", nil, false},
		{"an owner who allows it", statementShop{database: "postgres", sql: naive.sql, never: "-", more: "except: [ items.stock, status ]\n"}, 0, "", []string{"items.stock", "status"}, false},
		{"a rule and the orders", statementShop{database: "postgres", sql: naive.sql, never: "SELECT 1 WHERE false", more: "rules: also\n"}, shoptest.Broken, "equals no order", nil, false},
		{"a number that changes during the search", statementShop{database: "postgres", sql: []string{"INSERT INTO log VALUES (nextval('tick') / 30)", take, take}, never: "-", schema: "CREATE TABLE log (n INT);\nCREATE SEQUENCE tick;\n", reset: "DELETE FROM log"}, 0, "", []string{"log.n"}, false},
		{"a table that reset forgets", statementShop{database: "postgres", sql: []string{"INSERT INTO log VALUES (1)"}, never: "-", schema: "CREATE TABLE log (n INT);\n"}, shoptest.Harness, "reset does not restore log, which a buyer uses", nil, false},
		{"chance", statementShop{database: "postgres", sql: []string{"INSERT INTO orders SELECT 1 FROM generate_series(1, 1 + floor(random() * 1000000)::int / 1000)"}, never: "-"}, shoptest.Harness, "end differently each time: orders.*", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.quick {
				tier.Soak(t, "make test searches only two of the programs")
			}
			code, r, stderr := search(t, c.shop.file(t))
			if r.Witness != nil {
				stderr = r.Witness.Why
			}
			if code != c.code || !strings.Contains(stderr, c.says) || !slices.Equal(r.Uncompared, c.uncompared) {
				t.Errorf("exit %d, %q, without %q; want %d, %q, %q", code, stderr, r.Uncompared, c.code, c.says, c.uncompared)
			}
		})
	}
}

// TestAppRuleAboutAnswers: the explorer checks a rule about answers only after all buyers have answers.
// --app-check rejects a rule that is broken after the reset, or if the buyers come one after the other.
func TestAppRuleAboutAnswers(t *testing.T) {
	tier.Soak(t, "no other test has it: when a search checks a rule about answers")
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

// Two sales in one command, for the two items of a request, in the order of the request.
const (
	twoRows     = "UPDATE items SET stock = stock - 1 WHERE id = {0}; UPDATE items SET stock = stock - 1 WHERE id = {1}"
	crossing    = "buyers: [ 'POST http://127.0.0.1:8080/buy?1,2', 'POST http://127.0.0.1:8080/buy?2,1' ]"
	moveMariaDB = `
DELIMITER //
CREATE PROCEDURE move(a INT, b INT) BEGIN
  START TRANSACTION;
  UPDATE items SET stock = stock - 1 WHERE id = a;
  UPDATE items SET stock = stock + 1 WHERE id = b;
  COMMIT;
END//
`
)

// TestAppDivided: a statement that reads and then writes can hide a race inside one step. If another
// buyer's write could come in between, the result names the statement and the exit code is 3, unless
// oversell.yaml contains `atomic: accepted`.
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
		quick   bool
	}{
		{"a count", statementShop{database: "postgres", sql: []string{counts}}, shoptest.Inconclusive, []string{counts}, true},
		{"a count that the file accepts", statementShop{database: "postgres", sql: []string{counts}, more: "atomic: accepted\n"}, 0, []string{counts}, false},
		{"a count under a lock", statementShop{database: "postgres", sql: []string{"BEGIN", "SELECT stock FROM items WHERE id = 1 FOR UPDATE", counts, "COMMIT"}}, 0, nil, true},
		{"a plain update", statementShop{database: "postgres", sql: []string{"UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 0"}}, 0, nil, false},
		{"a level without locks", statementShop{database: "mysql", sql: []string{unlocked, looks, "UPDATE items SET stock = stock - 1 WHERE id = 1"}}, shoptest.Inconclusive, []string{looks}, false},
		{"a level without locks, for rows that no buyer writes", statementShop{database: "mysql", sql: []string{unlocked, looks}}, 0, nil, false},
		{"a trigger", statementShop{database: "postgres", sql: []string{order}, schema: onlyOne + "CREATE TRIGGER one BEFORE INSERT ON orders FOR EACH ROW EXECUTE FUNCTION one();"}, shoptest.Inconclusive, []string{order + ", which runs trigger one"}, true},
		{"a function", statementShop{database: "mysql", sql: []string{"SELECT take(1)"}, schema: takeMariaDB}, shoptest.Inconclusive, []string{"SELECT take(1), which runs function take"}, false},
		{"a packet that locks two rows in the order of the request", statementShop{database: "postgres", sql: []string{twoRows}, buyers: crossing}, shoptest.Inconclusive, []string{strings.NewReplacer("{0}", "1", "{1}", "2").Replace(twoRows), strings.NewReplacer("{0}", "2", "{1}", "1").Replace(twoRows)}, false},
		{"a packet that locks two rows in one order", statementShop{database: "postgres", sql: []string{strings.NewReplacer("{0}", "1", "{1}", "2").Replace(twoRows)}, buyers: crossing}, 0, nil, false},
		{"a procedure that locks two rows in the order of the request", statementShop{database: "mysql", sql: []string{"CALL move({0}, {1})"}, buyers: crossing, schema: moveMariaDB}, shoptest.Inconclusive, []string{"CALL move(1, 2), which runs procedure move", "CALL move(2, 1), which runs procedure move"}, false},
		{"a procedure that locks two rows in one order", statementShop{database: "mysql", sql: []string{"CALL move(1, 2)"}, buyers: crossing, schema: moveMariaDB}, 0, nil, false},
		{"a level with locks", statementShop{database: "mysql", sql: []string{looks}}, 0, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.quick {
				tier.Soak(t, "make test searches only three of the programs")
			}
			code, r, stderr := search(t, c.shop.file(t))
			if runs := strings.Contains(stderr, "which runs procedure"); runs && strings.Contains(stderr, "add --overlap") {
				t.Errorf("--overlap holds no procedure: %s", stderr)
			}
			slices.Sort(r.Divided)
			if code != c.code || !slices.Equal(r.Divided, c.divided) || r.Explored < 2 || r.Violations > 0 {
				t.Errorf("exit %d, %q in %d schedules; want %d, %q: %s", code, r.Divided, r.Explored, c.code, c.divided, stderr)
			}
		})
	}
}

// The statements of TestAppOverlap. countsOrders decides and writes in one statement.
const (
	countsOrders = "INSERT INTO orders SELECT 1 FROM items WHERE id = 1 AND stock > 1 + (SELECT count(*) FROM orders)"
	takesOne     = "UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 1"
	withoutLocks = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
	oneOrder     = "SELECT 1 FROM orders HAVING count(*) > 1"
)

// overlapping are programs with a race inside one statement. The race also happens without the
// explorer: some of 400 pairs of such statements on two connections sold twice.
var overlapping = map[string]statementShop{
	"postgres": {database: "postgres", sql: []string{countsOrders}, never: oneOrder},
	"mysql":    {database: "mysql", sql: []string{withoutLocks, countsOrders}, never: oneOrder},
}

// TestAppOverlap: --overlap finds a race inside one statement and replays it. It finds none in an
// atomic statement, although another statement runs while it is held. For a statement that it cannot
// explore, the exit code stays 3.
func TestAppOverlap(t *testing.T) {
	tier.Soak(t, "no other test has it: statements of a program that are held inside the servers")
	t.Parallel()
	atomic := []string{takesOne, "INSERT INTO orders VALUES (1)"}
	for _, c := range []struct {
		name    string
		shop    statementShop
		code    int
		divided []string
	}{
		{"postgres, a count", overlapping["postgres"], shoptest.Broken, nil},
		{"mysql, a count", overlapping["mysql"], shoptest.Broken, nil},
		{"postgres, an atomic update", statementShop{database: "postgres", sql: atomic, never: oneOrder}, 0, nil},
		{"mysql, an atomic update", statementShop{database: "mysql", sql: atomic, never: oneOrder}, 0, nil},
		{"mysql, a count that locks", statementShop{database: "mysql", sql: []string{countsOrders}, never: oneOrder}, shoptest.Inconclusive, []string{countsOrders}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := c.shop.file(t)
			code, r, stderr := search(t, file, "--overlap")
			if code != c.code || !slices.Equal(r.Divided, c.divided) || !r.Complete || !r.Overlap || r.Overlapped == 0 || r.Overlapped == r.Explored {
				t.Fatalf("exit %d, %q, %d of %d schedules with a held statement; want %d, %q: %s", code, r.Divided, r.Overlapped, r.Explored, c.code, c.divided, stderr)
			}
			if c.code != shoptest.Broken {
				return
			}
			held := slices.ContainsFunc(r.Witness.Steps, func(s explore.Step) bool {
				return s.Result == "1 changed, held inside the server before its commit"
			})
			if code, stdout, stderr := exploreApp(t, file, "--replay", r.Witness.Schedule); code != shoptest.Broken || !held || !strings.Contains(stdout, "(commits) INSERT INTO orders") {
				t.Errorf("%s: exit %d, held %v: %s%s", r.Witness.Schedule, code, held, stdout, stderr)
			}
		})
	}
}

const rowsBuyers = "buyers:\n  - POST http://127.0.0.1:8080/buy?1,2\n  - POST http://127.0.0.1:8080/buy?2,1"

// TestAppRows: in the search of a long program on PostgreSQL, commands on different rows commute. Here
// a trigger writes a row that both buyers use, although no statement names it. If the search ignored
// the trigger, it would leave out the schedule that breaks the rule. Without the savepoints, the same
// shop sends too few commands for this reduction, and must give the same result.
func TestAppRows(t *testing.T) {
	tier.Soak(t, "a search of a program with 100 commands")
	t.Parallel()
	shop := statementShop{
		database: "postgres", buyers: rowsBuyers, fails: "503",
		schema: `CREATE TABLE totals (id INT PRIMARY KEY, sold INT);
INSERT INTO totals VALUES (1, 0);
CREATE FUNCTION count_sale() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE totals SET sold = sold + NEW.id; RETURN NEW; END $$;
CREATE TRIGGER counts AFTER UPDATE OF stock ON items FOR EACH ROW WHEN (NEW.stock < 2) EXECUTE FUNCTION count_sale();
ALTER TABLE items ADD seen INT;`,
		reset: "UPDATE totals SET sold = 0", never: "SELECT * FROM totals WHERE sold > 2",
	}
	short := []string{"UPDATE items SET seen = 1 WHERE id = {0} AND (SELECT sold FROM totals WHERE id = 1) = 0", "UPDATE items SET stock = stock - 1 WHERE id = {0}"}
	shop.sql = append(padding(), short...)
	code, long, stderr := search(t, shop.file(t))
	if code != shoptest.Broken || !long.Complete || long.Explored > 400 {
		t.Errorf("exit %d, %d explored, complete %t, %s: %s", code, long.Explored, long.Complete, long.Unforeseen, stderr)
	}
	shop.sql = short
	if code, r, stderr := search(t, shop.file(t)); code != shoptest.Broken || !r.Complete || r.Explored < long.Explored {
		t.Errorf("the short program: exit %d, %d explored, complete %t: %s", code, r.Explored, r.Complete, stderr)
	}
}

// padding returns statements that make a program long without using a row.
func padding() (all []string) {
	all = append(all, "BEGIN")
	for n := range 50 {
		all = append(all, fmt.Sprint("SAVEPOINT s", n))
	}
	return append(all, "COMMIT")
}

// TestAppRowsAtRandom: the search of a random program reaches the same final states with the comparison
// of rows as without it. The padding turns the comparison on. About a third of the possible final
// states break the rule, so the rule shows which of them a search reaches. The same holds for a buyer with two
// transactions at once and `answers: accepted`.
func TestAppRowsAtRandom(t *testing.T) {
	tier.Soak(t, "60 searches of random programs")
	t.Parallel()
	statements := []string{
		"UPDATE items SET seen = seen * 3 + {0} WHERE id = %s",
		"UPDATE items SET stock = stock - 1 WHERE id = %s AND stock > 0",
		"UPDATE items SET seen = seen * 3 + (SELECT stock FROM items WHERE id = %s) WHERE id = {0}",
		"UPDATE items SET seen = seen * 3 + (SELECT count(*) FROM parts WHERE item = %s) WHERE id = {0}",
		"INSERT INTO parts (item, n) VALUES (%s, {0})",
		"UPDATE parts SET item = {1} WHERE item = %s AND n > 0",
		"DELETE FROM parts WHERE item = %s",
		"SELECT * FROM items WHERE id = %s FOR UPDATE",
		"INSERT INTO parts (item, n) SELECT id, stock FROM items WHERE id = %s",
	}
	for seed := range uint64(10) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dice := rand.New(rand.NewPCG(seed, 1))
			var sql []string
			for range 4 {
				sql = append(sql, "?"+fmt.Sprintf(statements[dice.IntN(len(statements))], []string{"{0}", "{1}"}[dice.IntN(2)]))
			}
			buyers := rowsBuyers
			switch {
			case seed >= 8: // the first buyer opens two transactions at once
				sql = []string{"BEGIN", "|BEGIN", "|" + strings.TrimPrefix(sql[0], "?"), "|COMMIT", sql[1], "COMMIT"}
				buyers = "buyers:\n  - POST http://127.0.0.1:8080/buy?1,2,1\n  - POST http://127.0.0.1:8080/buy?2,1"
			case dice.IntN(2) == 0:
				sql = slices.Concat([]string{"BEGIN"}, sql[:2], []string{"COMMIT"}, sql[2:])
			}
			t.Log(sql)
			for third := range 3 {
				shop := statementShop{
					database: "postgres", sql: sql, buyers: buyers, fails: "503",
					schema: "ALTER TABLE items ADD seen INT DEFAULT 0; CREATE TABLE parts (item INT, n INT); INSERT INTO parts VALUES (1, 1), (2, 1);",
					reset:  "WITH gone AS (DELETE FROM parts), back AS (INSERT INTO parts VALUES (1, 1), (2, 1)) UPDATE items SET seen = 0",
					never:  fmt.Sprintf("SELECT 1 FROM items HAVING :sold = 2 AND (sum(id * seen + stock) + (SELECT COALESCE(sum(item + n), 0) FROM parts)) %% 3 = %d", third),
				}
				code, short, stderr := search(t, shop.file(t))
				shop.sql = append(padding(), sql...)
				again, long, more := search(t, shop.file(t))
				if seed >= 8 {
					shop.sql, shop.more = sql, "answers: accepted\n"
					accepted, some, says := search(t, shop.file(t))
					if some.Complete != (some.Unforeseen == "") || some.Complete && accepted != code || some.Explored > short.Explored {
						t.Errorf("answers accepted: exit %d after %d schedules, complete %t: %s", accepted, some.Explored, some.Complete, says)
					}
					t.Logf("answers accepted: %d schedules: %s", some.Explored, some.Unforeseen)
				}
				t.Logf("rule %d: exit %d after %d schedules, and %d after %d by rows: %s", third, code, short.Explored, again, long.Explored, long.Unforeseen)
				if !short.Complete || long.Complete != (long.Unforeseen == "") || long.Complete && (code == shoptest.Broken) != (again == shoptest.Broken) {
					t.Errorf("exit %d and %d, complete %t and %t: %s%s", code, again, short.Complete, long.Complete, stderr, more)
				}
			}
		})
	}
}
