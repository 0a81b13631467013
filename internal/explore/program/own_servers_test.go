package program_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // to read the tables
	_ "github.com/jackc/pgx/v5/stdlib" // to create a user
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
	"github.com/oversell/oversell/internal/web/webtest"
)

// A badCase is a file, or flags, with one mistake.
type badCase struct {
	name    string
	old, by string   // a text in the file of ownServers, and its replacement
	file    string   // replaces the whole file
	args    []string // flags in addition to --app FILE
	under   string   // a command line for sh, in which "$@" runs the shop
	noPath  bool     // PATH contains no program
	says    []string // the error line must contain all of them
	soak    bool     // only make soak runs the case
}

// ownServers are a user's own servers, which all cases share.
type ownServers struct {
	mysql    *localserver.MySQL
	postgres *localserver.Postgres
	redis    *localserver.Redis
	tables   *sql.DB // a shop's tables in mysql
	shop     string  // the path of examples/python/shop.py
}

// startOwnServers starts the servers, with a shop's tables and a password on Redis.
func startOwnServers(t *testing.T) ownServers {
	t.Helper()
	s := ownServers{
		mysql: localservertest.MySQL(t), postgres: localservertest.Postgres(t), redis: localservertest.Redis(t),
		shop: absolute(t, "../../../examples/python/shop.py"),
	}
	var err error
	credentials, _, _ := strings.Cut(strings.TrimPrefix(s.mysql.URL(), "mysql://"), "@")
	if s.tables, err = sql.Open("mysql", credentials+"@tcp("+s.mysql.Addr+")/shop"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.tables.Close() })
	for _, statement := range []string{
		"CREATE TABLE items (id INT PRIMARY KEY, stock INT NOT NULL)",
		"CREATE TABLE orders (id SERIAL PRIMARY KEY, item_id INT NOT NULL, buyer CHAR(36) NOT NULL)",
		"INSERT INTO items VALUES (1, 7)",
		"INSERT INTO orders (item_id, buyer) VALUES (1, 'somebody')",
		"CREATE USER IF NOT EXISTS 'root'@'127.0.0.1' IDENTIFIED BY ''",
		"GRANT ALL ON *.* TO 'root'@'127.0.0.1'",
		"CREATE USER 'few'@'127.0.0.1' IDENTIFIED BY 'few'",
		"GRANT ALL ON shop.* TO 'few'@'127.0.0.1'",
	} {
		if _, err := s.tables.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	postgres, err := sql.Open("pgx", s.postgres.URL())
	require.NoError(t, err)
	defer postgres.Close()
	if _, err := postgres.ExecContext(t.Context(), "CREATE ROLE few LOGIN PASSWORD 'few'"); err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr})
	defer client.Close()
	require.NoError(t, client.ConfigSet(t.Context(), "requirepass", "secret").Err())
	return s
}

func (s ownServers) file() string {
	return `name: bad
run: python3 ` + s.shop + ` naive
env: { MYSQL_PORT: "` + port(s.mysql.Addr) + `" }
ready: http://127.0.0.1:8080/healthz
mysql: ` + s.mysql.URL() + `
buyer: POST http://127.0.0.1:8080/buy?item=1
reset:
  sql: [ "UPDATE items SET stock = 1", "DELETE FROM orders" ]
sold: 200
never:
  - SELECT * FROM items WHERE stock < 0
  - SELECT 1 FROM orders HAVING count(*) <> :sold
`
}

func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

func (s ownServers) untouched(t *testing.T) {
	t.Helper()
	var stock, orders int
	if err := s.tables.QueryRowContext(t.Context(), "SELECT stock, (SELECT count(*) FROM orders) FROM items").Scan(&stock, &orders); err != nil || stock != 7 || orders != 1 {
		t.Errorf("stock %d, orders %d, %v; want 7 and 1: nothing may be done to the tables", stock, orders, err)
	}
}

// TestAppOwnServers uses servers that the explorer has not started.
func TestAppOwnServers(t *testing.T) {
	t.Parallel()
	shoptest.Example(t, "python/naive.yaml")
	s := startOwnServers(t)
	t.Run("bad input", func(t *testing.T) { badInput(t, s) })
	t.Run("nobody buys", func(t *testing.T) { nobodyBuys(t, s) })
	t.Run("killed", func(t *testing.T) { killedOnOwnServers(t, s) })
}

// badInput: each mistake gives exit code 2 and one line that names the mistake, and no process remains.
// If the explorer finds the mistake before the first run, it does not change the tables.
func badInput(t *testing.T, s ownServers) {
	t.Helper()
	t.Run("before a run", func(t *testing.T) {
		for _, c := range slices.Concat(s.badFlags(), s.badPrograms(), s.badHosts()) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.check(t, s)
			})
		}
	})
	s.untouched(t)
	for _, c := range s.badRuns() {
		t.Run(c.name, func(t *testing.T) { c.check(t, s) })
	}
}

func (c badCase) check(t *testing.T, s ownServers) {
	t.Helper()
	if c.soak {
		tier.Soak(t, "a long search of a program")
	}
	text := c.file
	if text == "" {
		if text = s.file(); !strings.Contains(text, c.old) {
			t.Fatalf("the file has no %q", c.old)
		}
		text = strings.Replace(text, c.old, c.by, 1)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"oversell.yaml": text, "tls.py": insistsOnTLS, "answers500.py": answers500, "saved.json": savedElsewhere} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	mark := "OVERSELL_TEST_MARK=" + strings.ReplaceAll(t.Name(), "/", "-")
	cmd := shoptest.Command(t, append([]string{"explore", "--app", "oversell.yaml"}, c.args...)...)
	if c.under != "" {
		cmd.Args = append([]string{"sh", "-c", c.under, "sh", cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
	cmd.Dir = dir
	cmd.Env = append(cmd.Environ(), mark)
	if c.noPath {
		cmd.Env = append(cmd.Env, "PATH="+t.TempDir())
	}
	code, stdout, line := shoptest.Exit(t, cmd)
	if code != shoptest.Harness || stdout != "" {
		t.Errorf("exit %d with %q, want %d and nothing", code, stdout, shoptest.Harness)
	}
	if !strings.HasPrefix(line, "shop: ") || strings.IndexByte(line, '\n') != len(line)-1 || strings.ContainsAny(line, "\t\r") {
		t.Errorf("%q is not one line", line)
	}
	for _, want := range c.says {
		if !strings.Contains(line, want) {
			t.Errorf("%s\thas no %q", line, want)
		}
	}
	if _, password, _ := strings.Cut(s.mysql.URL(), "shop:"); strings.Contains(line, password[:20]) {
		t.Errorf("%s\thas the password", line)
	}
	webtest.Eventually(t, "nothing is left", func() bool { return len(shoptest.With(t, mark)) == 0 })
	t.Log(line)
}

// badFlags are cases with a valid file and wrong flags.
func (s ownServers) badFlags() []badCase {
	return []badCase{
		{name: "a crash of one of one", old: "run:", by: "shared:", args: []string{"--events", "crash"}, says: []string{"all buyers share one instance", "give `run:`"}},
		{name: "--overlap of one instance", old: "run:", by: "shared:", args: []string{"--overlap"}, says: []string{"--overlap needs an instance for each buyer: write `run:`"}},
		{name: "--replay of another program's file", args: []string{"--replay", "saved.json"}, says: []string{"the saved schedule belongs to the program other, not to bad; write `name: other` in the file"}},
		{
			name: "user namespaces refused", under: `exec unshare --user --map-root-user sh -c 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"' sh "$@"`,
			says: []string{"a program needs a network of its own", "run it as root, or allow user namespaces: sudo sysctl -w user.max_user_namespaces="},
		},
	}
}

// badPrograms are cases in which the program does not serve, or its connections cannot be gated.
func (s ownServers) badPrograms() []badCase {
	shop := "run: python3 "
	attach := func(pid, gate string) string {
		return "attach: { pid: " + pid + `, gates: { mysql: "` + gate + `" } }` + "\n# "
	}
	postgres := strings.Replace(s.postgres.URL(), "?sslmode=disable", "", 1)
	_, password, _ := strings.Cut(strings.TrimSuffix(postgres, "@"+s.postgres.Addr+"/shop"), "shop:")
	return []badCase{
		{name: "no such command", old: shop, by: "run: nosuchprogram ", says: []string{"nosuchprogram: not found", "is the program installed"}},
		{name: "no such file", old: shop, by: "run: ./nosuchprogram ", says: []string{"./nosuchprogram", "ended before it was ready (exit status 127)", "is the program installed, and its path right?"}},
		{name: "it ends at once", old: shop, by: "run: echo starting; echo no config file >&2; exit 3 # ", says: []string{"ended before it was ready (exit status 3); it printed: starting | no config file"}},
		{name: "it goes into the background", old: shop, by: "run: sleep 100 & exit 0 # ", says: []string{"ended before it was ready (exit status 0)", "`run:` is to stay in the foreground"}},
		{name: "never ready", old: shop, by: "ready-within: 1s\nrun: sleep 100 # ", says: []string{"sleep 100: http://127.0.0.1:8080/healthz does not answer within 1s", "`ready:` names what to ask, `ready-within:` how long"}},
		{name: "ready answers 500", old: shop, by: "ready-within: 1s\nrun: python3 answers500.py # ", says: []string{"does not answer within 1s (500 no database)", "it printed: started"}},
		{name: "a gate's port is taken", old: shop, by: attach("1", s.postgres.Addr), says: []string{"the gate for mysql at " + s.postgres.Addr, "address already in use; something listens there: give another port under `gates:`"}},
		{name: "attach to nobody", old: shop, by: attach("4194305", "127.0.0.1:9"), says: []string{"attach: process 4194305: it cannot be attached to: no such process", "pid is the number of the program's first process"}},
		{name: "TLS to MySQL", old: shop, by: "run: python3 tls.py # ", says: []string{"the program asks for TLS at mysql; switch it off for the test, for instance with ssl-mode=DISABLED"}},
		{name: "not the program's user in PostgreSQL", file: `run: python3 ` + s.shop + ` naive postgres
env: { POSTGRES_PORT: "` + port(s.postgres.Addr) + `", PGPASSWORD: "` + password + `" }
postgres: ` + strings.Replace(postgres, "shop:"+password, "few:few", 1) + `
buyer: POST http://127.0.0.1:8080/buy?item=1
reset: { sql: [ "SELECT 1" ] }
never: [ "SELECT 1 WHERE false" ]
`, args: []string{"--app-check"}, says: []string{"the user few can neither see nor end the waits of the program's user shop: name shop or a superuser", "GRANT pg_read_all_stats, pg_signal_backend TO few"}},
		{name: "TLS to PostgreSQL", file: `run: python3 ` + s.shop + ` naive postgres
env: { POSTGRES_PORT: "` + port(s.postgres.Addr) + `", PGPASSWORD: "` + password + `", PGSSLMODE: require }
postgres: ` + postgres + `
buyer: POST http://127.0.0.1:8080/buy?item=1
reset: { sql: [ "SELECT 1" ] }
never: [ "SELECT 1 WHERE false" ]
`, says: []string{"the program asks for TLS at postgres (sslmode=require); use sslmode=disable or prefer"}},
	}
}

// badHosts are cases with servers that do not exist, or that the explorer must not touch.
func (s ownServers) badHosts() []badCase {
	mysql, postgres := "mysql: "+s.mysql.URL(), strings.Replace(s.postgres.URL(), "shop:", "shop:not", 1)
	elsewhere := "mysql: mysql://shop:secret@192.0.2.77:3306/shop"
	const right = "does such a server run there, and are user, password and database right?"
	private := func(name string) string { return name + ": 127.0.0.1:3306\nlocal: true" }
	return []badCase{
		{name: "MySQL is down", old: s.mysql.Addr, by: "127.0.0.1:1", says: []string{"mysql at 127.0.0.1:1: ", "connection refused", right}},
		{name: "PostgreSQL is down", old: mysql, by: "postgres: postgres://shop:secret@127.0.0.1:1/shop", says: []string{"postgres at 127.0.0.1:1: ", "connection refused", right}},
		{name: "Redis is down", old: mysql, by: mysql + "\nredis: redis://:secret@127.0.0.1:1", says: []string{"redis at 127.0.0.1:1: ", "connection refused", right}},
		{name: "MySQL's password", old: "shop:", by: "shop:not", says: []string{"Access denied for user 'shop'", right}},
		{name: "PostgreSQL's password", old: mysql, by: "postgres: " + postgres, says: []string{"password authentication failed", right}},
		{name: "Redis' password", old: mysql, by: mysql + "\nredis: redis://:not@" + s.redis.Addr, says: []string{"WRONGPASS", right}},
		{name: "Redis without a password", old: mysql, by: mysql + "\nredis: " + s.redis.Addr, says: []string{"NOAUTH", right}},
		{name: "no PROCESS", old: mysql, by: "mysql: mysql://few:few@" + s.mysql.Addr + "/shop", args: []string{"--app-check"}, says: []string{"mysql at " + s.mysql.Addr + ": the user few lacks the privilege PROCESS", "GRANT PROCESS ON *.* TO 'few'@'127.0.0.1'"}},
		{name: "no such database", old: s.mysql.Addr + "/shop", by: s.mysql.Addr + "/shpo", says: []string{"Unknown database 'shpo'", right}},
		{name: "another kind of server", old: mysql, by: mysql + "\nredis: 127.0.0.1:" + port(s.postgres.Addr), says: []string{"redis at " + s.postgres.Addr, right}},
		{name: "another machine", old: mysql, by: elsewhere, says: []string{"mysql at 192.0.2.77:3306 is on another machine", "--yes-this-database-may-be-wiped 192.0.2.77:3306"}},
		{name: "another machine, another named", old: mysql, by: elsewhere, args: []string{"--yes-this-database-may-be-wiped", "192.0.2.78:3306"}, says: []string{"--yes-this-database-may-be-wiped 192.0.2.77:3306"}},
		{name: "another machine, without the port", old: mysql, by: elsewhere, args: []string{"--yes-this-database-may-be-wiped", "192.0.2.77"}, says: []string{"--yes-this-database-may-be-wiped 192.0.2.77:3306"}},
		{name: "no mariadbd", old: mysql, by: private("mysql"), noPath: true, says: []string{"local: ", "program not found; get it with: "}},
		{name: "no redis-server", old: mysql, by: mysql + "\n" + private("redis"), noPath: true, says: []string{"local: ", "program not found; get it with: "}},
	}
}

// badRuns are cases with a mistake that the explorer can find only after the reset.
func (s ownServers) badRuns() []badCase {
	never := "SELECT * FROM items WHERE stock < 0"
	return []badCase{
		{name: "reset fails", old: "DELETE FROM orders", by: "DELETE FROM ordres", says: []string{"reset fails: DELETE FROM ordres: ", "Table 'shop.ordres' doesn't exist"}},
		{name: "a slip in never", old: never, by: "SELECT * FORM items", says: []string{"never: SELECT * FORM items: ", "error in your SQL syntax"}},
		{name: "never writes", old: never, by: "UPDATE items SET stock = 1", says: []string{"never: UPDATE items SET stock = 1: it is no query"}},
		{name: "watch fails", old: "sold:", by: "watch: SELECT stok FROM items\nsold:", says: []string{"watch: SELECT stok FROM items: ", "Unknown column 'stok'"}},
		{name: "a rule broken by reset", old: "stock < 0", by: "stock < 2", says: []string{"never: SELECT * FROM items WHERE stock < 2 returns a row right after reset, before any buyer came: correct"}},
		{name: "a rule broken by one buyer", old: "stock < 0", by: "stock < 1", says: []string{"buyer 1 alone: ", "is answered 200 bought, and then SELECT * FROM items WHERE stock < 1 returns a row: correct"}},
		{name: "500 to one buyer", old: "item=1", by: "item=one", says: []string{"buyer 1 alone: it is answered 500 error; it printed: ValueError("}},
		{name: "nothing at a gate", old: "buy?item=1", by: "other", says: []string{"buyer 1 alone: no command came to a gate", "--app-check shows"}},
		{name: "nobody at the buyers' port", old: "8080/buy", by: "8081/buy", says: []string{"a buyer does not reach the program: buyer 1: connect to 127.0.0.1:8081: connection refused"}, soak: true},
		{name: "the program's port is taken", old: "run: ", by: "run: " + othersPort, says: []string{"buyer 1 alone: it is answered 501", "the program has ended (exit status 1)", "it printed: ", " | OSError: [Errno 98] Address already in use"}},
		{name: "a replay line that does not fit", args: []string{"--replay", "v1:bad:b2:s1:7*3"}, says: []string{"the schedule does not fit: step 1 of the schedule is 7, which is not possible there; possible: 1 ("}, soak: true},
	}
}

// nobodyBuys: if the program sells nothing to a buyer that comes alone, a search would prove nothing,
// so the command refuses to run it. --app-check still prints its result. If the program refuses only
// one of two buyers, the search runs.
func nobodyBuys(t *testing.T, s ownServers) {
	t.Helper()
	const (
		told   = "no buyer alone is told of a sale, so nothing can be sold twice: buyers 1 and 2: "
		advice = "name it in `sold:` of the file; else give the item stock in `reset:`"
	)
	for _, c := range []struct {
		name, old, by string
		command       []string
		answer        string // the answer to both buyers; "": the program sells to one of them
		prints        string
	}{
		{"a sale by another answer", "sold: 200\nnever:\n  - SELECT * FROM items WHERE stock < 0\n  - SELECT 1 FROM orders HAVING count(*) <> :sold\n", "sold: 303\nnever: [ SELECT * FROM items WHERE stock < 0 ]\n", []string{"explore"}, "200 bought", ""},
		{"no stock", "stock = 1", "stock = 0", []string{"explore", "--app-check"}, "409 sold out", "told as no sale"},
		{"a rush, too", "stock = 1", "stock = 0", []string{"verify"}, "409 sold out", ""},
		{"one is refused", "buyer: POST http://127.0.0.1:8080/buy?item=1", "buyers: [ POST http://127.0.0.1:8080/buy?item=2, POST http://127.0.0.1:8080/buy?item=1 ]", []string{"explore", "--app-check"}, "", "told as a sale"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := s.file()
			if !strings.Contains(text, c.old) {
				t.Fatalf("the file has no %q", c.old)
			}
			file := appFile(t, strings.Replace(text, c.old, c.by, 1))
			code, stdout, line := shoptest.Exit(t, shoptest.Command(t, append(c.command, "--app", file)...))
			if c.answer == "" && (code != 0 || line != "") {
				t.Errorf("exit %d: %s", code, line)
			}
			if c.answer != "" && (code != shoptest.Harness || !strings.Contains(line, told+c.answer+"; ") || !strings.Contains(line, advice) || strings.IndexByte(line, '\n') != len(line)-1) {
				t.Errorf("exit %d: %q; want %d and one line with %q and %q", code, line, shoptest.Harness, told+c.answer, advice)
			}
			if !strings.Contains(stdout, c.prints) || c.prints == "" && stdout != "" {
				t.Errorf("prints %q, want %q", stdout, c.prints)
			}
		})
	}
}

// othersPort is the beginning of a command line for sh. Before the program starts, another process
// takes the program's port and answers the readiness check. The program must not end earlier, or the
// error would be about its end.
const othersPort = `>
  log=$(mktemp -p .); python3 -m http.server 8080 --bind 127.0.0.1 2>$log &
  until grep -q GET $log; do sleep 0.05; done;
  exec `

// insistsOnTLS is a MySQL client that requests TLS even if the server does not offer it
// (Protocol::SSLRequest), as some clients do.
const insistsOnTLS = `import os, socket, struct
s = socket.create_connection(("127.0.0.1", int(os.environ["MYSQL_PORT"])))
s.recv(4096)
s.sendall(struct.pack("<I", 32 | 1 << 24) + struct.pack("<IIB", 1 << 9 | 1 << 11 | 1 << 15, 1 << 24, 45) + bytes(23))
print(s.recv(4096))
raise SystemExit(1)
`

const answers500 = `from http.server import BaseHTTPRequestHandler, HTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500)
        self.end_headers()
        self.wfile.write(b"no database")
    def log_message(self, *_):
        pass
server = HTTPServer(("127.0.0.1", 8080), Handler)
print("started", flush=True)
server.serve_forever()
`

const savedElsewhere = `{"version":1,"program":"other","buyers":2,"events":[],"verdict":"broken","why":"","schedule":"v1:other:b2:s1:1.2",
"steps":[{"buyer":1,"token":"1","name":"SELECT 1","server":"mysql"},{"buyer":2,"token":"2","name":"SELECT 1","server":"mysql"}]}`

// killedOnOwnServers: when the explorer is killed during a run, its processes and connections end. The
// user's servers have their earlier settings, and every lease that the explorer extended expires soon.
func killedOnOwnServers(t *testing.T, s ownServers) {
	t.Helper()
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: s.redis.Addr, Password: "secret"})
	defer client.Close()
	require.NoError(t, client.ConfigSet(ctx, "requirepass", "").Err())
	before := serverSettings(t, s.tables, client)
	text := s.file() + "redis: " + s.redis.Addr + "\n"
	for old, by := range map[string]string{"naive": "redis-lock", "reset:\n": "reset:\n  redis: flushdb\n", "env: {": "env: { REDIS_PORT: \"" + port(s.redis.Addr) + "\","} {
		text = strings.Replace(text, old, by, 1)
	}
	file := appFile(t, text)
	mark := "OVERSELL_TEST_MARK=" + strings.ReplaceAll(t.Name(), "/", "-")
	cmd := shoptest.Command(t, "explore", "--app", file, "--events", "expire", "--full")
	cmd.Env = append(cmd.Environ(), mark)
	require.NoError(t, cmd.Start())
	webtest.Eventually(t, "a lease is stretched", func() bool { return client.PTTL(ctx, "lock:1").Val() > 10*time.Second })
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	webtest.Eventually(t, "no process is left", func() bool { return len(shoptest.With(t, mark)) == 0 })
	webtest.Eventually(t, "no connection is left", func() bool {
		var others int
		err := s.tables.QueryRowContext(ctx, "SELECT count(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() AND user <> 'system user'").Scan(&others)
		return err == nil && others == 0 && strings.Count(client.ClientList(ctx).Val(), "\n") == 1
	})
	if after := serverSettings(t, s.tables, client); !reflect.DeepEqual(after, before) {
		t.Errorf("settings were\n%v\nand are\n%v", before, after)
	}
	if left := client.PTTL(ctx, "lock:1").Val(); left > 2*time.Minute {
		t.Errorf("the lease has %s left", left)
	}
}

func serverSettings(t *testing.T, db *sql.DB, client *redis.Client) map[string]string {
	t.Helper()
	all, err := client.ConfigGet(t.Context(), "*").Result()
	require.NoError(t, err)
	for _, query := range []string{
		"SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE 'gtid_%pos' AND Variable_name NOT LIKE '%timestamp%'",
		"SELECT table_name, CONCAT_WS(' ', engine, row_format, create_options, table_comment) FROM information_schema.tables WHERE table_schema = 'shop'",
	} {
		require.NoError(t, pairs(t.Context(), db, query, all))
	}
	return all
}

func pairs(ctx context.Context, db *sql.DB, query string, to map[string]string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		to["mysql: "+name] = value
	}
	return rows.Err()
}
