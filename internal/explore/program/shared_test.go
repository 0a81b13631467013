package program_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// A sharedCase is a program of testdata/shared, and the expected result if all buyers share one
// instance.
type sharedCase struct {
	mode              string
	node              bool // written for Node; otherwise in Python, with a thread for each request
	pool              int  // number of connections; 0: one for each request
	requests          []string
	orders, violating int
	quick             bool // make test runs the case
}

func (c sharedCase) name() string {
	language := "python"
	if c.node {
		language = "node"
	}
	return fmt.Sprintf("%s/%s,pool=%d", language, c.mode, c.pool)
}

// sharedCases are programs in which all buyers share one instance, so a mutex can protect the sale.
// Sending a request is a step, too, so there are more schedules than with one instance per buyer.
var sharedCases = []sharedCase{
	{mode: "naive", orders: 96, violating: 60},
	{mode: "naive", pool: 4, orders: 96, violating: 60},
	{mode: "guarded", orders: 18, quick: true},
	{mode: "guarded", pool: 4, orders: 18},
	{mode: "guarded", pool: 1, orders: 5},
	{mode: "whole", pool: 4, orders: 4},
	{mode: "early", orders: 21, violating: 10},
	{mode: "early", pool: 4, orders: 21, violating: 10},
	{mode: "trying", orders: 12, violating: 6},
	// Two buyers can deadlock. After each run with a deadlock, the explorer restarts the instance.
	{mode: "basket", requests: []string{"A,B", "B,A"}, orders: 12, violating: 4},
	{mode: "naive", node: true, pool: 4, orders: 96, violating: 60},
	{mode: "naive", node: true, pool: 1, orders: 5, violating: 1},
	{mode: "guarded", node: true, pool: 4, orders: 18},
	{mode: "guarded", node: true, pool: 1, orders: 5},
	{mode: "whole", node: true, pool: 4, orders: 4},
}

func (c sharedCase) file(t *testing.T) string {
	t.Helper()
	needs, line := []string{"python3"}, "python3 shop.py"
	if c.node {
		needs, line = []string{"node", "npm"}, "node shop.cjs"
	}
	shoptest.Needs(t, needs...)
	dir := absolute(t, "testdata/shared")
	modules := absolute(t, "../../../examples/node/node_modules")
	buyers := "buyer: POST http://127.0.0.1:8080/buy"
	if c.requests != nil {
		buyers = "buyers:"
		for _, items := range c.requests {
			buyers += "\n  - POST http://127.0.0.1:8080/buy?items=" + items
		}
	}
	line = strings.Replace(line, "shop.", dir+"/shop.", 1)
	return writeApp(t, fmt.Sprintf(`name: %s
shared: %s %s %d
env: { NODE_PATH: %q }
ready: http://127.0.0.1:8080/
mysql: 127.0.0.1:3306
local: true
schema: %s/schema.sql
`, c.mode, line, c.mode, c.pool, modules, dir), buyers)
}

func writeApp(t *testing.T, head, buyers string) string {
	t.Helper()
	return appFile(t, head+buyers+`
reset:
  sql: [ "UPDATE items SET stock = 1", "DELETE FROM orders" ]
sold: 200
never:
  - SELECT * FROM items WHERE stock < 0
  - SELECT 1 FROM orders HAVING count(*) > 1
  - SELECT 1 FROM orders HAVING count(*) <> :sold
`)
}

func (c sharedCase) found(t *testing.T) explore.Report {
	t.Helper()
	code, r, stderr := search(t, c.file(t))
	want := 0
	if c.violating > 0 {
		want = shoptest.Broken
	}
	if code != want {
		t.Fatalf("exit %d, want %d: %s", code, want, stderr)
	}
	appCase{orders: c.orders, violating: c.violating}.found(t, r)
	t.Logf("%d of %d, %.0f/s", r.Violations, r.Explored, r.PerSecond)
	return r
}

// TestShared: the search finds the mistakes of programs with one instance for all buyers, and no
// violation of a program with a correct mutex.
func TestShared(t *testing.T) {
	t.Parallel()
	for _, c := range sharedCases {
		t.Run(c.name(), func(t *testing.T) {
			if !c.quick {
				tier.Soak(t, "a long search of a program")
			}
			r := c.found(t)
			switch c.mode {
			case "early":
				columnsOfEarly(t, r)
			case "basket":
				if r.Witness == nil || r.Witness.Verdict != "stalled" {
					t.Errorf("witness %+v; want a stalled one", r.Witness)
				}
			}
		})
	}
}

// TestScattered: while a buyer waits for an answer on a second pool's connection, the first pool can give
// the connection with the buyer's transaction to another buyer. A program that keeps the connection is
// correct.
func TestScattered(t *testing.T) {
	tier.Soak(t, "a long search of a program")
	t.Parallel()
	shoptest.Needs(t, "node", "npm")
	for database, port := range map[string]string{"mysql": "3306", "postgres": "5432"} {
		for mode, want := range map[string]int{"pooled": shoptest.Broken, "held": 0} {
			file := writeApp(t, fmt.Sprintf("name: %s\nshared: node %s %s %[1]s\nenv: { NODE_PATH: %[4]q }\nready: http://127.0.0.1:8080/\n%[3]s: 127.0.0.1:%[5]s\nlocal: true\nschema: %[6]s\n",
				mode, absolute(t, "testdata/shared/scattered.cjs"), database, absolute(t, "../../../examples/node/node_modules"), port, absolute(t, "testdata/shared/schema.sql")), "buyer: POST http://127.0.0.1:8080/buy")
			code, r, stderr := search(t, file)
			if code != want || !r.Complete || r.Void > 0 {
				t.Errorf("%s %s: exit %d, complete %v, %d void: %s; want exit %d", database, mode, code, r.Complete, r.Void, stderr, want)
			}
			t.Logf("%s %s: %d of %d", database, mode, r.Violations, r.Explored)
		}
	}
}

// TestAppPooler: a program takes a session lock behind PgBouncer. If each transaction gets any connection
// of PgBouncer, the program may release the lock on another connection. If PgBouncer also takes the
// oldest connection first, the search finds a sale without the lock.
func TestAppPooler(t *testing.T) {
	tier.Soak(t, "needs PgBouncer")
	t.Parallel()
	shoptest.Needs(t, "python3")
	if _, err := exec.LookPath("pgbouncer"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		mode, lends, more string
		code              int
		stray             string
	}{
		{"session", "transaction", "", shoptest.Inconclusive, "SELECT pg_advisory_lock(1), through pgbouncer"},
		{"session", "transaction", "server_round_robin = 1", shoptest.Broken, "SELECT pg_advisory_lock(1), through pgbouncer"},
		{"session", "session", "", 0, ""},
		{"transaction", "transaction", "server_round_robin = 1", 0, ""},
	} {
		settings := filepath.Join(t.TempDir(), "pgbouncer.ini")
		shoptest.Write(t, settings, fmt.Sprintf(`[databases]
shop = host=127.0.0.1 port=5432 user=shop dbname=shop
queue = host=127.0.0.1 port=5432 dbname=queue pool_mode=transaction
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = 6432
unix_socket_dir =
auth_type = any
pool_mode = %s
%s
`, c.lends, c.more))
		const asRoot = "$(test $(id -u) -ne 0 || echo -u nobody)" // PgBouncer refuses to run as root
		file := writeApp(t, fmt.Sprintf("name: %s\nshared: pgbouncer -q %s %s & exec python3 %s %[1]s\nready: http://127.0.0.1:8080/\npostgres: 127.0.0.1:5432\nlocal: true\nschema: %[5]s\n",
			c.mode, asRoot, settings, absolute(t, "testdata/pooler/shop.py"), absolute(t, "testdata/shared/schema.sql")), "buyer: POST http://127.0.0.1:8080/buy")
		code, r, stderr := search(t, file, "--budget", "30s")
		if code != c.code || r.Stray != c.stray || code == 0 && r.Explored < 20 {
			t.Errorf("a lock of the %s, a connection for a %s, %q: exit %d, %d explored, %q: %s; want exit %d and %q", c.mode, c.lends, c.more, code, r.Explored, r.Stray, stderr, c.code, c.stray)
		}
	}
}

// TestPauses: while a buyer pauses in the program, the pool may give another buyer the connection that
// holds the lock. A program that keeps its connection is correct.
func TestPauses(t *testing.T) {
	tier.Soak(t, "no other test has it: a replay of a pause in a program")
	t.Parallel()
	pooled := sharedCase{mode: "pooled", node: true, pool: 4}.file(t)
	saved := filepath.Join(t.TempDir(), "witness.json")
	for _, replay := range [][]string{{"v1:pooled:b2:s1:shared:1.1~2.1*4.2*3", "--save", saved}, {saved}} {
		code, stdout, stderr := exploreApp(t, pooled, append([]string{"--replay"}, replay...)...)
		if code != shoptest.Broken || !strings.Contains(stdout, "leaked_lock: the idle connection of buyer 1 still has lock 'item'") {
			t.Errorf("%q: exit %d: %s%s", replay, code, stdout, stderr)
		}
	}
	if code, r, stderr := search(t, sharedCase{mode: "held", node: true, pool: 4}.file(t)); code != 0 || !r.Complete || r.Void > 0 || len(r.Pauses) > 0 {
		t.Errorf("exit %d, complete %v, %d void, %q: %s", code, r.Complete, r.Void, r.Pauses, stderr)
	}
}

// TestPausesFound: the search finds a schedule in which a buyer moves while the other one pauses.
func TestPausesFound(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	paused := func(s explore.Step) bool { return strings.HasSuffix(s.Command, ", while buyer 1 pauses)") }
	code, r, stderr := search(t, sharedCase{mode: "pooled", node: true, pool: 4}.file(t), "--first")
	if code != shoptest.Broken || r.Witness == nil || !strings.Contains(r.Witness.Schedule, "1~2") || !slices.ContainsFunc(r.Witness.Steps, paused) {
		t.Errorf("exit %d, %+v: %s; want a move during a pause", code, r.Witness, stderr)
	}
}

// columnsOfEarly: after an unlock, the mutex may wake another buyer. The witness must still show one
// transaction for each buyer.
func columnsOfEarly(t *testing.T, r explore.Report) {
	t.Helper()
	begun := map[int]int{}
	for _, s := range r.Witness.Steps {
		if s.Command == "BEGIN" {
			begun[s.Buyer]++
		}
	}
	if begun[1] != 1 || begun[2] != 1 {
		t.Errorf("BEGIN stands %v times in the buyers' columns; want once in each", begun)
	}
}

// TestSharedNotKnown: the explorer discards a run in which a command may come from the holder of the
// mutex or from a waiting buyer.
func TestSharedNotKnown(t *testing.T) {
	t.Parallel()
	tier.Soak(t, "a long search of a program")
	code, r, stderr := search(t, sharedCase{mode: "twice"}.file(t))
	const why = "the buyer of a command is unknown"
	if code != shoptest.Inconclusive || r.Complete || r.Void == 0 || r.Voids[why] != r.Void || r.Violations > 0 {
		t.Errorf("exit %d, complete %v, void %v: %s; want %d, and void runs: %s", code, r.Complete, r.Voids, stderr, shoptest.Inconclusive, why)
	}
	const seen = `"SELECT price FROM prices WHERE item_id = 1" could be of buyer 1 or 2`
	if !slices.ContainsFunc(r.Voided, func(v explore.Voided) bool { return v.Why == why && v.Details == seen }) {
		t.Errorf("%+v; want %s", r.Voided, seen)
	}
}

// TestSharedOneAtATime: the explorer refuses a program that takes one request at a time.
func TestSharedOneAtATime(t *testing.T) {
	t.Parallel()
	code, _, stderr := search(t, sharedCase{mode: "single"}.file(t))
	if code != shoptest.Harness || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "takes one request at a time") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}
