package app

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sound is a valid file.
const sound = `run: node server.mjs
mysql: 127.0.0.1:3306
redis: 127.0.0.1:6379
buyer: POST http://127.0.0.1:8080/buy?item=1
reset: { sql: [ "UPDATE items SET stock = 1" ], redis: flushdb }
sold: 200
never: [ "SELECT 1 FROM orders HAVING count(*) <> :sold" ]
`

func load(t *testing.T, text string) (*App, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "oversell.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(file)
}

// TestLoad: Load returns the values in a file, and the defaults for the rest.
func TestLoad(t *testing.T) {
	a, err := load(t, sound)
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Buyers) != 2 || a.Buyers[1].Method != "POST" || !a.Reset.Flush || !slices.Equal(a.Sold.Statuses, []int{200}) || a.Gate("mysql") != "127.0.0.1:3306" || a.Gate("postgres") != "" {
		t.Errorf("%+v", a)
	}
	if a, err = load(t, strings.Replace(sound, "sold: 200", `sold: { status: [ 200, 201 ], body: '"placed": *true' }`, 1)); err != nil {
		t.Fatal(err)
	}
	for answer, sale := range map[string]bool{`200 {"placed": true}`: true, `200 {"placed": false}`: false, `202 {"placed": true}`: false, `201 {"placed":true}`: true} {
		status, _ := strconv.Atoi(answer[:3])
		if got := a.Sold.Has(status, answer[4:]); got != sale {
			t.Errorf("%s acknowledges a sale: %v", answer, got)
		}
	}
	if _, err := load(t, Example()); err != nil {
		t.Errorf("the example: %v", err)
	}
}

// TestLoadRefused: each mistake is reported in one line that says what to do.
func TestLoadRefused(t *testing.T) {
	for _, c := range []struct{ name, old, by, says string }{
		{"a key with a slip", "reset:", "rset:", `oversell.yaml:5: unknown key "rset" (did you mean "reset"?)`},
		{"no such key", "sold: 200", "colour: red", `unknown key "colour"; list them with: shop explore --app-example`},
		{"a name without a letter", "sold: 200", "sold: 200\nname: магазин", `"магазин" gives the program no name; set name: to 1 to 64`},
		{"a long name", "sold: 200", "sold: 200\nname: " + strings.Repeat("x", 65), "set name: to"},
		{"no YAML", "sold: 200", "sold: [", "oversell.yaml:"},
		{"no program", "run: node server.mjs", "env: { A: b }", "choose one of run"},
		{"two programs", "run: node server.mjs", "run: a\nshared: b", "choose one of run"},
		{"attach without a pid", "run: node server.mjs", "attach: { gates: { mysql: \"127.0.0.1:1\" } }", "attach needs pid"},
		{"attach without a gate", "run: node server.mjs", "attach: { pid: 7, gates: { mysql: \"127.0.0.1:1\" } }", "gates needs redis"},
		{"attach with a gate too many", "run: node server.mjs", "attach: { pid: 7, gates: { mysql: \"127.0.0.1:1\", redis: \"127.0.0.1:2\", postgres: \"127.0.0.1:3\" } }", "attach: gates: postgres: also set postgres, the server's own address"},
		{"attach with the gate at the server", "run: node server.mjs", "attach: { pid: 7, gates: { mysql: \"127.0.0.1:3306\", redis: \"127.0.0.1:2\" } }", "127.0.0.1:3306 is the server's own address"},
		{"attach with private servers", "run: node server.mjs", "local: true\nattach: { pid: 7, gates: { mysql: \"127.0.0.1:1\", redis: \"127.0.0.1:2\" } }", "local and attach cannot be combined"},
		{"a line too many", "run: node server.mjs", "run: [ a, b, c ]", "(got 3 for 2 buyers)"},
		{"no port", "mysql: 127.0.0.1:3306", "mysql: 127.0.0.1", "is not host:port"},
		{"a unix socket", "mysql: 127.0.0.1:3306", "mysql: /run/mysqld.sock", "cannot listen on a unix socket"},
		{"TLS of Redis", "redis: 127.0.0.1:6379", "redis: rediss://127.0.0.1:6379", "TLS"},
		{"TLS of PostgreSQL", "mysql: 127.0.0.1:3306", "postgres: postgres://127.0.0.1:5432/shop?sslmode=require", "sslmode=require: TLS cannot be gated"},
		{"another host", "mysql: 127.0.0.1:3306", "postgres: postgres://127.0.0.1:5432/shop?host=db", "?host= contradicts the host"},
		{"no server", "mysql: 127.0.0.1:3306\nredis: 127.0.0.1:6379", "watch: SELECT 1", "set mysql, postgres or redis"},
		{"two databases", "redis: 127.0.0.1:6379", "postgres: 127.0.0.1:5432\nredis: 127.0.0.1:6379", "ambiguous with two databases"},
		{"a schema of one's own server", "sold: 200", "schema: a.sql", "schema requires local: true"},
		{"a migration of one's own server", "sold: 200", "migrate: npx knex migrate:latest", "migrate requires local: true"},
		{"placeholders", "run: node server.mjs", "run: FILL_IN   # FILL_IN: the command\nwatch: SELECT FILL_IN", "oversell.yaml:1: replace FILL_IN in run (line 1), watch (line 2); the comments say by what"},
		{"a placeholder in a list", "UPDATE items SET", "UPDATE FILL_IN SET", "oversell.yaml:5: replace FILL_IN in reset.sql (line 5)"},
		{"a placeholder in env", "sold: 200", "env: { A: FILL_IN }", "replace FILL_IN in env.A (line 6)"},
		{"an empty folder as schema", "sold: 200", "local: true\nschema: .", "has no file of SQL"},
		{"no schema there", "sold: 200", "local: true\nschema: a.sql", "no such file"},
		{"no method", "POST http://127.0.0.1:8080/buy?item=1", "http://127.0.0.1:8080/buy", "expected METHOD URL"},
		{"https", "http://127.0.0.1:8080", "https://127.0.0.1:8443", "only http:// works"},
		{"one buyer", "sold: 200", "buyers: 1", "buyers must be between 2 and 8 (got 1)"},
		{"nine buyers", "sold: 200", "buyers: 9", "buyers must be between 2 and 8 (got 9)"},
		{"ninety buyers", "sold: 200", "buyers: 90", "buyers must be between 2 and 8 (got 90)"},
		{"a status that is none", "sold: 200", "sold: 99", "99 is not an HTTP status"},
		{"a key of a sale with a slip", "sold: 200", "sold: { stauts: 200 }", `sold: unknown key "stauts" (did you mean "status"?)`},
		{"no pattern", "sold: 200", "sold: { status: 200, body: '(' }", "sold: body: error parsing regexp: missing closing )"},
		{"a reset outside", "redis: flushdb", "http: POST http://10.1.2.3/reset", "reset: http: 10.1.2.3:80 is outside the program's own network"},
		{"a reset without a method", "redis: flushdb", `http: [ "http://127.0.0.1:8080/reset" ]`, "reset: http: expected METHOD URL"},
		{"no reset", `reset: { sql: [ "UPDATE items SET stock = 1" ], redis: flushdb }`, "env: { A: b }", "reset is missing"},
		{"reset of no server", "redis: 127.0.0.1:6379\n", "", "reset: redis needs the server; set redis"},
		{"rules of none", `never: [ "SELECT 1 FROM orders HAVING count(*) <> :sold" ]`, "rules: only", "rules: only needs never"},
		{"unknown rules", "sold: 200", "rules: all", `rules: "all"; expected also`},
		{"an exception to rules", "sold: 200", "except: [ orders.at ]", "except says what may differ from an order of the buyers"},
		{"an exception of no place", `never: [ "SELECT 1 FROM orders HAVING count(*) <> :sold" ]`, "except: [ orders ]", `except: "orders" is neither table.column`},
		{"an empty rule", `never: [ "SELECT`, `never: [ "", "SELECT`, "never has an empty query"},
		{"a rule of no server", `never: [ "SELECT`, `never: [ "postgres: SELECT`, `"postgres: SELECT 1 FROM orders HAVING count(*) <> :sold" needs the server; set postgres`},
		{"an empty file", sound, " \n", "oversell.yaml: the file is empty"},
		{"a number", sound, "7", "oversell.yaml:1: "},
		{"no method of HTTP", "POST", "PO/ST", `"PO/ST" is not an HTTP method`},
		{"a header with a line in it", "buyer: POST http://127.0.0.1:8080/buy?item=1", `buyer: { request: "GET http://127.0.0.1:8080/", header: { A: "b\nC: d" } }`, "is not an HTTP header"},
		{"a buyer outside", "127.0.0.1:8080", "10.1.2.3:8080", "10.1.2.3:8080 is outside the program's own network"},
		{"a buyer at a gate", "127.0.0.1:8080", "localhost:6379", "localhost:6379 is the address of the gate for redis"},
		{"a buyer at the port of HTTP", "mysql: 127.0.0.1:3306", "mysql: 127.0.0.1:80\nready: http://127.0.0.1", "ready: 127.0.0.1:80 is the address of the gate for mysql"},
		{"two servers at one address", "redis: 127.0.0.1:6379", "redis: 127.0.0.1:3306", "mysql and redis must have different addresses (got 127.0.0.1:3306"},
		{"another database number", "redis: flushdb", "redis: [ SELECT 1, FLUSHDB ]", "reset: redis: select is not supported"},
		{"another home", "sold: 200", "home: /root", `home: "/root"; the only value is own`},
		{"no time", "sold: 200", "ready-within: soon", `"soon" is not a duration`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !strings.Contains(sound, c.old) {
				t.Fatalf("the file has no %q", c.old)
			}
			_, err := load(t, strings.Replace(sound, c.old, c.by, 1))
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want one line with %q", err, c.says)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "--app-example") {
		t.Errorf("no file: %v", err)
	}
}

// TestGuard: a server on another machine is refused unless it is allowed by its address.
func TestGuard(t *testing.T) {
	for _, c := range []struct {
		address, allowed string
		refused          bool
	}{
		{"127.0.0.1:3306", "", false},
		{"localhost:3306", "", false},
		{"10.1.2.3:3306", "", true},
		{"10.1.2.3:3306", "10.1.2.3:3307", true},
		{"10.1.2.3:3306", "10.1.2.3:3306", false},
	} {
		a, err := load(t, strings.Replace(sound, "127.0.0.1:3306", c.address, 1))
		if err != nil {
			t.Fatal(err)
		}
		err = a.Guard(c.allowed)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), "--yes-this-database-may-be-wiped "+c.address) {
			t.Errorf("%s, allowed %q: %v", c.address, c.allowed, err)
		}
		a.Local = true
		if err := a.Guard(""); err != nil {
			t.Errorf("private servers: %v", err)
		}
	}
}

// TestTold: :sold and :failed become numbers, except in string literals and comments.
func TestTold(t *testing.T) {
	for _, c := range []struct{ protocol, query, want string }{
		{"mysql", "SELECT ':sold', `:sold`, \":sold\" FROM orders HAVING count(*) <> :sold AND :soldier", "SELECT ':sold', `:sold`, \":sold\" FROM orders HAVING count(*) <> 2 AND :soldier"},
		{"mysql", "SELECT 'it\\'s :sold', 'o'':sold' <> :sold", "SELECT 'it\\'s :sold', 'o'':sold' <> 2"},
		{"mysql", "SELECT :sold -- don't: :sold\n, /* it's :sold */ :sold # :sold", "SELECT 2 -- don't: :sold\n, /* it's :sold */ 2 # :sold"},
		{"mysql", "SELECT 5--:sold", "SELECT 5--2"},
		{"mysql", "SELECT ':failed' FROM items WHERE stock > 0 AND :failed+:sold > 1", "SELECT ':failed' FROM items WHERE stock > 0 AND 7+2 > 1"},
		{"postgres", "SELECT 1 FROM items WHERE failed::failed", "SELECT 1 FROM items WHERE failed::failed"},
		{"postgres", `SELECT '\', :sold, E'\':sold', a #> :sold, b::sold, "a:sold" -- it's :sold`, `SELECT '\', 2, E'\':sold', a #> 2, b::sold, "a:sold" -- it's :sold`},
	} {
		if got, asked := (Told{Sold: 2, Failed: 7}).in(c.protocol, c.query); got != c.want || asked != (c.want != c.query) {
			t.Errorf("%s: %s, asked %t\nwant %s", c.protocol, got, asked, c.want)
		}
	}
}
