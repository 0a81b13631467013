package gates

import (
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/witness"
)

// TestEntryFor: the entry for a poller is its tables, or a pattern that matches it with other values.
func TestEntryFor(t *testing.T) {
	taken := func(table string) bool { return table == "orders" }
	for _, c := range []struct{ server, text, other, want string }{
		{"mysql", "UPDATE beats SET at = NOW()", "", "beats"},
		{"postgres", "SELECT id FROM orders WHERE sent = 'no' AND id > 5", "SELECT id FROM orders WHERE sent = 'it''s' AND id > 17", `^SELECT id FROM orders WHERE sent = .* AND id > .*`},
		{"postgres", "SELECT pg_notify('a', 'b')", "SELECT pg_notify('c', '')", `^SELECT pg_notify\(.*, .*\)`},
		{"redis", "BRPOPLPUSH bull:mail:wait bull:mail:active 5", "BRPOPLPUSH bull:mail:wait bull:mail:active 10", `^BRPOPLPUSH bull:mail:wait bull:mail:active .*`},
		{"postgres", "SELECT a FROM orders WHERE name = 'a very long value that ends after the eightieth character of the command'", "SELECT a FROM orders WHERE name = 'b'", `^SELECT a FROM orders WHERE name = `},
	} {
		got := entryFor(c.server, c.text, taken)
		if !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: %q; want %q", c.text, got, c.want)
		}
		for _, text := range []string{c.text, c.other} {
			if c.other != "" && !regexp.MustCompile(got[0]).MatchString(text) {
				t.Errorf("%s does not match %s", got[0], text)
			}
		}
	}
	if got, want := IgnoreLine([]string{"jobs", "^a'b"}), "ignore: [ jobs, '^a''b' ]"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

// TestEntriesWhileBuying: a poller's command that had to wait at a gate while a buyer was there does not count as the
// buyer's.
func TestEntriesWhileBuying(t *testing.T) {
	const beat = "UPDATE beats SET at = now()"
	look := OwnTraffic{app: &app.App{}}
	for _, mark := range []string{"", witness.LetThrough, witness.TimedOut} {
		entries := look.Entries([]Poller{{Server: "postgres", Text: beat}}, []Seen{{Server: "postgres", Text: mark + beat}})
		if !slices.Equal(entries, []string{"beats"}) {
			t.Errorf("%q: %q", mark, entries)
		}
	}
}

// TestPollers: the period is that of one instance. COMMIT and the like are not listed.
func TestPollers(t *testing.T) {
	var p pollers
	for n := range 5 {
		at := time.Unix(int64(n), 0)
		p.saw("mysql", "BEGIN", 1, at)
		for buyer := range 2 {
			p.saw("mysql", "SELECT 1 FROM jobs WHERE id = "+string(rune('0'+n)), buyer, at)
		}
	}
	all := p.list()
	if len(all) != 1 || all[0].Times != 10 || all[0].EveryMS != 1000 || all[0].Period() != "every 1s" {
		t.Errorf("%+v", all)
	}
}
