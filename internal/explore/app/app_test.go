package app

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/require"
)

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
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return Load(file)
}

// TestLoad: Load returns the values in a file, and the defaults for the rest.
func TestLoad(t *testing.T) {
	a, err := load(t, sound)
	require.NoError(t, err)
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

// TestLoadRefused: Load reports each mistake of testdata/refused.txt in one line that says what to do.
// In that file, "- " precedes a line of a valid file, "+ " the wrong line in its place, and "= " a part
// of the error.
func TestLoadRefused(t *testing.T) {
	text, err := os.ReadFile("testdata/refused.txt")
	require.NoError(t, err)
	cases := strings.Split(string(text), "\n## ")[1:]
	if len(cases) < 50 {
		t.Errorf("%d cases", len(cases))
	}
	for _, c := range cases {
		name, lines, _ := strings.Cut(c, "\n")
		t.Run(name, func(t *testing.T) {
			part := map[string][]string{} // parts by the first two characters of their line
			for line := range strings.SplitSeq(strings.TrimSuffix(lines, "\n"), "\n") {
				part[line[:2]] = append(part[line[:2]], line[2:])
			}
			old, by, says := strings.Join(part["- "], "\n"), strings.Join(part["+ "], "\n"), part["= "][0]
			if old == "ALL" {
				old = sound
			}
			if !strings.Contains(sound, old) {
				t.Fatalf("the file has no %q", old)
			}
			_, err := load(t, strings.Replace(sound, old, by, 1))
			if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v; want one line with %q", err, says)
			}
		})
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); err == nil || !strings.Contains(err.Error(), "--app-example") {
		t.Errorf("no file: %v", err)
	}
}

// TestGuard: Guard refuses a server on another machine, unless its address is allowed.
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
		require.NoError(t, err)
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

// TestHeaderOfAll: a map in `buyer` provides the header and body of each request in `buyers`, unless
// the request has its own.
func TestHeaderOfAll(t *testing.T) {
	a, err := load(t, strings.Replace(sound, "buyer: POST http://127.0.0.1:8080/buy?item=1", `buyer: { header: { content-type: application/json, A: b }, body: '{"item":1}' }
buyers:
  - POST http://127.0.0.1:8080/buy
  - { request: PUT http://127.0.0.1:8080/buy, header: { a: c }, body: "2" }`, 1))
	want := []Request{
		{Method: "POST", URL: "http://127.0.0.1:8080/buy", Header: map[string]string{"Content-Type": "application/json", "A": "b"}, Body: `{"item":1}`},
		{Method: "PUT", URL: "http://127.0.0.1:8080/buy", Header: map[string]string{"Content-Type": "application/json", "A": "c"}, Body: "2"},
	}
	if err != nil || !reflect.DeepEqual(a.Buyers, want) {
		t.Errorf("%v: %+v, want %+v", err, a, want)
	}
}

// TestManyBuyers: the maximum number of buyers is smaller if each serial order must run first.
func TestManyBuyers(t *testing.T) {
	for text, most := range map[string]int{sound: maxBuyers, strings.Replace(sound, "never:", "rules: also\nnever:", 1): maxSerial} {
		a, err := load(t, text)
		require.NoError(t, err)
		if a.SetBuyers(most) != nil || a.SetBuyers(most+1) == nil {
			t.Errorf("%d buyers: %v, and one more: %v", most, a.SetBuyers(most), a.SetBuyers(most+1))
		}
	}
}
