package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"

	"github.com/redis/go-redis/v9"
)

// both is a file with every kind of private server. Each database has a table with the same name.
const both = `run: node server.mjs
mysql: 127.0.0.1:3306
postgres: 127.0.0.1:5432
redis: redis://127.0.0.1:6379/3
local: true
schema: schema.sql
buyer: POST http://127.0.0.1:8080/buy?item=1
reset:
  mysql: [ "UPDATE items SET stock = 1", "DELETE FROM orders" ]
  postgres: [ "UPDATE items SET stock = 2", "DELETE FROM orders" ]
  redis: [ flushdb, "SET greeting 'hello, world'", "HSET left 1 7" ]
never:
  - "mysql: SELECT stock, ':sold' FROM items WHERE stock < 0"
  - "postgres: SELECT 1 FROM orders HAVING count(*) <> :sold -- not :sold's"
watch: "postgres: SELECT stock, NULL AS nothing, (SELECT count(*) FROM orders) AS orders FROM items"
`

func openBoth(t *testing.T) *Servers {
	t.Helper()
	tier.Test(t, "needs servers")
	dir := t.TempDir()
	schema := "CREATE TABLE items (id INT PRIMARY KEY, stock INT NOT NULL); -- ; no\nCREATE TABLE orders (id SERIAL PRIMARY KEY, item_id INT NOT NULL);\nINSERT INTO items VALUES (1, 5);\n"
	for n := range 2 * mostRows { // more tables than mostRows
		schema += fmt.Sprintf("CREATE TABLE more%d (id SERIAL PRIMARY KEY, note CHAR(9));\n", n)
	}
	for name, text := range map[string]string{"oversell.yaml": both, "schema.sql": schema} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	a, err := Load(filepath.Join(dir, "oversell.yaml"))
	require.NoError(t, err)
	s, err := Open(t.Context(), a)
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestServers checks the explorer's own queries, which bypass the gates.
func TestServers(t *testing.T) {
	s := openBoth(t)
	for _, c := range []struct {
		name string
		test func(*testing.T, *Servers)
	}{
		{"reset", resets},
		{"purge", purges},
		{"never", nevers},
		{"watch", watches},
		{"errors", serverErrors},
		{"a lock is held", held},
		{"ids", privateIDs},
		{"MySQL's privileges", privilegesMySQL},
		{"PostgreSQL's privileges", privilegesPostgres},
		{"leases", leasesStretched},
		{"blocked", blockedClients},
		{"poolers", poolers},
		{"values", values},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, s) })
	}
	if inOrder := regexp.MustCompile(`^(MySQL|MariaDB) \S+, PostgreSQL \S+, Redis \S+$`); !inOrder.MatchString(s.Versions()) {
		t.Errorf("%q; want %s", s.Versions(), inOrder)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	require.NoError(t, err)
}

func (s *Servers) exec(t *testing.T, protocol, statement string) {
	t.Helper()
	if _, err := s.SQL(protocol).ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (s *Servers) number(t *testing.T, protocol, query string) (n int) {
	t.Helper()
	must(t, s.SQL(protocol).QueryRowContext(t.Context(), query).Scan(&n))
	return n
}

// values: Keys returns the keys of each database number with their values, always in the same order.
func values(t *testing.T, s *Servers) {
	ctx := t.Context()
	must(t, s.redis.FlushAll(ctx).Err())
	for _, words := range []string{"SET a 1", "RPUSH b 2 1", "SADD c z y x", "HSET d g 2 f 1", "ZADD e 2 m 1 n", "XADD h * i 3", "SELECT 5", "SET other 7", "SELECT 3"} {
		var args []any
		for word := range strings.FieldsSeq(words) {
			args = append(args, word)
		}
		must(t, s.redis.Do(ctx, args...).Err())
	}
	got, err := s.Keys(ctx, 100)
	must(t, err)
	slices.SortFunc(got, slices.Compare)
	if want := "[[5:other 7] [a 1] [b 2 1] [c x y z] [d f=1 g=2] [e n 1 m 2] [h i 3]]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
	if _, err := s.Keys(ctx, 6); err == nil || !strings.Contains(err.Error(), "more than 6 keys") {
		t.Errorf("7 keys: %v", err)
	}
}

// purges: after a reset, InnoDB has purged the deleted rows.
func purges(t *testing.T, s *Servers) {
	for range 20 {
		s.exec(t, "mysql", "INSERT INTO orders (item_id) SELECT seq FROM seq_1_to_200")
		must(t, s.Reset(t.Context()))
		var kind, name, status string
		must(t, s.SQL("mysql").QueryRowContext(t.Context(), "SHOW ENGINE INNODB STATUS").Scan(&kind, &name, &status))
		if !strings.Contains(status, "History list length 0\n") {
			t.Fatal("a reset has left deleted rows for the purge")
		}
	}
}

// resets: the statements of `reset` reset each server. In Redis, they reset only the database whose
// number is in the URL.
func resets(t *testing.T, s *Servers) {
	ctx := t.Context()
	other := redis.NewClient(&redis.Options{Addr: s.Addresses()["redis"], DB: 5})
	defer other.Close()
	must(t, other.Set(ctx, "other", 1, 0).Err())
	must(t, s.redis.Set(ctx, "lock:1", "somebody", time.Minute).Err())
	for _, protocol := range []string{"mysql", "postgres"} {
		s.exec(t, protocol, "INSERT INTO orders (item_id) VALUES (1)")
	}
	for range 2 {
		must(t, s.Reset(ctx))
		for protocol, stock := range map[string]int{"mysql": 1, "postgres": 2} {
			if got, orders := s.number(t, protocol, "SELECT stock FROM items"), s.number(t, protocol, "SELECT count(*) FROM orders"); got != stock || orders != 0 {
				t.Errorf("%s: stock %d, orders %d; want %d and 0", protocol, got, orders, stock)
			}
		}
		keys := s.redis.Keys(ctx, "*").Val()
		slices.Sort(keys)
		if !slices.Equal(keys, []string{"greeting", "left"}) || s.redis.Get(ctx, "greeting").Val() != "hello, world" || s.redis.HGet(ctx, "left", "1").Val() != "7" {
			t.Errorf("Redis has %v", keys)
		}
	}
	if other.Exists(ctx, "other").Val() != 1 {
		t.Error("another database number was emptied")
	}
}

// nevers: each query of `never` runs in its own database. :sold becomes the number of acknowledged sales.
func nevers(t *testing.T, s *Servers) {
	must(t, s.Reset(t.Context()))
	for _, c := range []struct {
		sold  int
		found string // expected in the findings
	}{
		{0, ""},
		{1, "postgres: [?column?] [[1]]"},
	} {
		found, err := s.Never(t.Context(), Told{Sold: c.sold})
		must(t, err)
		if got := show(found); got != c.found {
			t.Errorf("%d sold: %q, want %q", c.sold, got, c.found)
		}
	}
	s.exec(t, "mysql", "UPDATE items SET stock = -1")
	s.exec(t, "postgres", "INSERT INTO orders (item_id) VALUES (1)")
	found, err := s.Never(t.Context(), Told{Sold: 1})
	must(t, err)
	if got, want := show(found), "mysql: [stock :sold] [[-1 :sold]]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func show(found []witness.Finding) string {
	var all []string
	for _, f := range found {
		protocol, _, _ := strings.Cut(f.Query, " ")
		all = append(all, fmt.Sprint(protocol, " ", f.Columns, " ", f.Rows))
	}
	return strings.Join(all, "; ")
}

// watches: Watch returns the first row of the query, or nothing if there is none.
func watches(t *testing.T, s *Servers) {
	must(t, s.Reset(t.Context()))
	columns, values, err := s.Watch(t.Context())
	if err != nil || !slices.Equal(columns, []string{"stock", "nothing", "orders"}) || !slices.Equal(values, []string{"2", "NULL", "0"}) {
		t.Errorf("%v %v %v", columns, values, err)
	}
	with(s, func(a *App) { a.Watch = "mysql: SELECT id FROM orders" }, func() {
		if columns, values, err := s.Watch(t.Context()); err != nil || !slices.Equal(columns, []string{"id"}) || len(values) != 0 {
			t.Errorf("no row: %v %v %v", columns, values, err)
		}
	})
	with(s, func(a *App) { a.Watch = "" }, func() {
		if columns, values, err := s.Watch(t.Context()); err != nil || columns != nil || values != nil {
			t.Errorf("no watch: %v %v %v", columns, values, err)
		}
	})
}

// with changes the App of the servers while a function runs.
func with(s *Servers, change func(*App), do func()) {
	before := s.app
	defer func() { s.app = before }()
	changed := *before
	change(&changed)
	s.app = &changed
	do()
}

// serverErrors: an error names the statement or key that failed.
func serverErrors(t *testing.T, s *Servers) {
	for _, c := range []struct {
		change func(*App)
		says   string
	}{
		{func(a *App) { a.Reset.Postgres = []string{"DELETE FROM ordres"} }, "reset fails: DELETE FROM ordres: "},
		{func(a *App) { a.Reset.Redis = [][]string{{"HSET", "left"}} }, "reset fails: HSET left: "},
		{func(a *App) { a.Never = []string{"mysql: SELECT 1 FORM items"} }, "never: mysql: SELECT 1 FORM items: "},
		{func(a *App) { a.Never = []string{"postgres: DELETE FROM orders"} }, "never: postgres: DELETE FROM orders: it is no query"},
		{func(a *App) { a.Watch = "mysql: SELECT stok FROM items" }, "watch: mysql: SELECT stok FROM items: "},
	} {
		with(s, c.change, func() {
			err := s.Reset(t.Context())
			if err == nil {
				_, err = s.Never(t.Context(), Told{})
			}
			if err == nil {
				_, _, err = s.Watch(t.Context())
			}
			if err == nil || !strings.HasPrefix(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want %q", err, c.says)
			}
		})
	}
}

// held: if another session blocks a reset, the error says so.
func held(t *testing.T, s *Servers) {
	tier.Soak(t, "waits 10 s for a reset that another session blocks")
	must(t, s.Reset(t.Context()))
	other, err := Open(t.Context(), elsewhere(s))
	must(t, err)
	defer other.Close()
	tx, err := other.SQL("postgres").BeginTx(t.Context(), nil)
	must(t, err)
	_, err = tx.ExecContext(t.Context(), "UPDATE items SET stock = 9")
	must(t, err)
	if err := s.Reset(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer within 10s: a lock may be held by something that is not explored") {
		t.Errorf("%v", err)
	}
	must(t, tx.Rollback())
	must(t, s.Reset(t.Context()))
}

// elsewhere returns an App that uses the servers of s as servers of the user.
func elsewhere(s *Servers) *App {
	a := *s.app
	a.Local, a.Schema = false, ""
	a.MySQL = &Server{Gate: s.addresses["mysql"], URL: "mysql://root@" + s.addresses["mysql"] + "/shop"}
	a.Postgres = &Server{Gate: s.addresses["postgres"], URL: "postgres://shop@" + s.addresses["postgres"] + "/shop"}
	a.Redis = &Server{Gate: s.addresses["redis"], URL: "redis://" + s.addresses["redis"] + "/3"}
	return &a
}

// privateIDs: the ids of new rows differ from other numbers, and from the ids of another table.
func privateIDs(t *testing.T, s *Servers) {
	for _, protocol := range []string{"mysql", "postgres"} {
		seen := map[int]bool{}
		for _, table := range []string{"more0", fmt.Sprintf("more%d", 2*mostRows-1)} {
			s.exec(t, protocol, "INSERT INTO "+table+" (note) VALUES ('a')")
			if id := s.number(t, protocol, "SELECT max(id) FROM "+table); id < firstID || id%idsPerTable != firstID%idsPerTable || seen[id] {
				t.Errorf("%s: the first row of %s is %d, want %d and some millions, as in no other table of %v", protocol, table, id, firstID, seen)
			} else {
				seen[id] = true
			}
		}
	}
}

// privilegesMySQL: Open refuses a user without the privilege to see the waits of other sessions.
func privilegesMySQL(t *testing.T, s *Servers) {
	for _, statement := range []string{"CREATE USER 'few'@'127.0.0.1' IDENTIFIED BY 'few'", "GRANT ALL ON shop.* TO 'few'@'127.0.0.1'"} {
		s.exec(t, "mysql", statement)
	}
	a := elsewhere(s)
	a.MySQL.URL = "mysql://few:few@" + s.addresses["mysql"] + "/shop"
	const grant = "GRANT PROCESS ON *.* TO 'few'@'127.0.0.1'"
	if _, err := Open(t.Context(), a); err == nil || !strings.Contains(err.Error(), "the user few lacks the privilege PROCESS") || !strings.Contains(err.Error(), ": "+grant+"; or name another user") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v; want %q", err, grant)
	}
	s.exec(t, "mysql", grant)
	other, err := Open(t.Context(), a)
	must(t, err)
	must(t, other.Close())
}

// privilegesPostgres: for a user that may not see the program's waits, the error says what to grant.
// Only a superuser may see and end the sessions of a superuser.
func privilegesPostgres(t *testing.T, s *Servers) {
	ctx := t.Context()
	for _, statement := range []string{"CREATE ROLE look LOGIN", "CREATE ROLE program LOGIN"} {
		s.exec(t, "postgres", statement)
	}
	as := func(user string) (*Servers, int64) {
		t.Helper()
		a := elsewhere(s)
		a.Postgres.URL = "postgres://" + user + "@" + s.addresses["postgres"] + "/shop"
		other, err := Open(ctx, a)
		must(t, err)
		t.Cleanup(func() { _ = other.Close() })
		return other, int64(other.number(t, "postgres", "SELECT pg_backend_pid()"))
	}
	look, itself := as("look")
	_, program := as("program")
	_, superuser := as("shop")
	const grant = "GRANT pg_read_all_stats, pg_signal_backend TO look"
	refused := func(id int64, of string) {
		t.Helper()
		err := look.MayFollow(ctx, "postgres", id)
		if err == nil || !strings.Contains(err.Error(), "the user look can neither see nor end the waits of the program's user "+of) || !strings.HasSuffix(err.Error(), ": "+grant) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v; want %q of %s", err, grant, of)
		}
	}
	refused(program, "program")
	refused(superuser, "shop")
	must(t, look.MayFollow(ctx, "postgres", itself))
	must(t, look.MayFollow(ctx, "postgres", 0))
	must(t, s.MayFollow(ctx, "postgres", program))
	must(t, s.MayFollow(ctx, "postgres", superuser))
	s.exec(t, "postgres", grant)
	must(t, look.MayFollow(ctx, "postgres", program))
	refused(superuser, "shop")
}

// leasesStretched: in every database number of Redis, a key that would expire within a minute gets two
// minutes. Other keys stay unchanged.
func leasesStretched(t *testing.T, s *Servers) {
	ctx := t.Context()
	must(t, s.redis.FlushAll(ctx).Err())
	other := redis.NewClient(&redis.Options{Addr: s.Addresses()["redis"], DB: 7})
	defer other.Close()
	must(t, s.redis.Set(ctx, "short", 1, 20*time.Second).Err())
	must(t, s.redis.Set(ctx, "long", 1, 24*time.Hour).Err())
	must(t, s.redis.Set(ctx, "plain", 1, 0).Err())
	must(t, other.Set(ctx, "short", 1, 20*time.Second).Err())
	must(t, s.Redis().Stretch(ctx))
	for _, c := range []struct {
		client   *redis.Client
		key      string
		from, to time.Duration
	}{
		{s.redis, "short", time.Minute, 2 * time.Minute},
		{other, "short", time.Minute, 2 * time.Minute},
		{s.redis, "long", 23 * time.Hour, 24 * time.Hour},
		{s.redis, "plain", -1, -1},
	} {
		if left := c.client.PTTL(ctx, c.key).Val(); left < c.from || left > c.to {
			t.Errorf("%s has %s left, want %s to %s", c.key, left, c.from, c.to)
		}
	}
	count := func(what string, ask func(context.Context) (int, error), want int) {
		t.Helper()
		if got, err := ask(ctx); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", what, got, err, want)
		}
	}
	before, err := s.Redis().Expired(ctx)
	must(t, err)
	count("leases", s.Redis().Leases, 3)
	count("keys", s.Redis().Keys, 4)
	count("expire", s.Redis().Expire, 3)
	count("leases", s.Redis().Leases, 0)
	count("expired by the clock", s.Redis().Expired, before)
	must(t, s.redis.Set(ctx, "lock", 1, time.Millisecond).Err())
	for s.redis.Get(ctx, "lock").Err() == nil {
	}
	count("expired by the clock", s.Redis().Expired, before+1)
	count("forget", s.Redis().Forget, 1)
	count("keys", s.Redis().Keys, 0)
	if db := s.redis.ClientInfo(ctx).Val().DB; db != 3 {
		t.Errorf("the connection is in database number %d, want 3", db)
	}
}

// blockedClients: the explorer finds a waiting client and ends its wait without a result.
func blockedClients(t *testing.T, s *Servers) {
	ctx := t.Context()
	client := redis.NewClient(&redis.Options{Addr: s.Addresses()["redis"], PoolSize: 1, MaxRetries: -1})
	defer client.Close()
	id := client.ClientID(ctx).Val()
	ended := make(chan error)
	go func() { ended <- client.BLPop(ctx, 0, "queue").Err() }()
	for {
		blocked, err := s.Redis().Blocked(ctx)
		must(t, err)
		if blocked[id] {
			break
		}
	}
	must(t, s.Redis().Interrupt(ctx, id))
	if err := <-ended; err != redis.Nil {
		t.Errorf("it ends with %v, want nil", err)
	}
	if blocked, err := s.Redis().Blocked(ctx); err != nil || len(blocked) > 0 {
		t.Errorf("%v, %v", blocked, err)
	}
}

// TestUnmet: Unmet reports an UPDATE that found a row in an earlier reset, but not in the last one. It
// does not report an UPDATE that found an unchanged row, or a DELETE that found none.
func TestUnmet(t *testing.T) {
	s := openBoth(t)
	for _, protocol := range []string{"mysql", "postgres"} {
		for _, c := range []struct {
			before string
			unmet  bool
		}{{"", false}, {"", false}, {"DELETE FROM items", true}, {"INSERT INTO items VALUES (1, 5)", false}} {
			if c.before != "" {
				if _, err := s.SQL(protocol).ExecContext(t.Context(), c.before); err != nil {
					t.Fatal(err)
				}
			}
			require.NoError(t, s.Reset(t.Context()))
			if text := s.Unmet(); strings.Contains(text, "`UPDATE items SET stock") != c.unmet || c.unmet != (text != "") {
				t.Errorf("%s: after %q: %q", protocol, c.before, text)
			}
		}
	}
}
