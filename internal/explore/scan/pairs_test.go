package scan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// resources parses a list of resources, such as "items redis:lock".
func resources(text string) (all []target.Resource) {
	for _, name := range strings.Fields(text) {
		server, key, found := strings.Cut(name, ":")
		if !found {
			server, key = "mysql", name
		}
		all = append(all, target.Resource{Server: server, Name: key})
	}
	return all
}

func locking(name, reads, locks string) Request {
	return Request{Name: name, usable: true, uses: target.Footprint{Reads: resources(reads), Locks: resources(locks)}}
}

// TestPairsOfLocks: two locks on the same table conflict, and so do a lock and a read. Even without a
// common write, a request can deadlock, be refused or skip rows.
func TestPairsOfLocks(t *testing.T) {
	all := pairs([]Request{locking("a", "", "users items"), locking("b", "", "items"), locking("list", "items", ""), locking("named", "", "postgres:7")})
	want := map[string]string{
		"a twice": "items, users", "b twice": "items", "named twice": "7", "a and b": "items", "a and list": "items", "b and list": "items",
		"a and named": "", "b and named": "", "list twice": "", "list and named": "",
	}
	for _, p := range all {
		if got := strings.Join(p.Conflicts, ", "); got != want[p.Name()] || p.LeftOut != (got == "") {
			t.Errorf("%s: conflicts %q, left out %t; want %q", p.Name(), got, p.LeftOut, want[p.Name()])
		}
	}
	if len(all) != len(want) {
		t.Errorf("%d pairs, want %d", len(all), len(want))
	}
}

// TestPairsOfIgnored: an ignored command conflicts with a step of the other request, not with its ignored commands.
func TestPairsOfIgnored(t *testing.T) {
	logs := target.Footprint{Writes: resources("log")}
	buy, list, health := locking("buy", "items", "items"), locking("list", "log", ""), Request{Name: "health", usable: true, ignored: logs}
	buy.ignored = logs
	want := map[string]string{"buy twice": "items", "buy and list": "log", "list and health": "log"}
	for _, p := range pairs([]Request{buy, list, health}) {
		if got := strings.Join(p.Conflicts, ", "); got != want[p.Name()] || p.LeftOut != (got == "") {
			t.Errorf("%s: conflicts %q, left out %t; want %q", p.Name(), got, p.LeftOut, want[p.Name()])
		}
	}
}

func used(name string, commands int, reads, writes, naive string) Request {
	return Request{Name: name, Commands: commands, usable: true, uses: target.Footprint{Reads: resources(reads), Writes: resources(writes), Naive: resources(naive)}}
}

// TestPairs: the scan explores only pairs that can conflict, the most suspicious first.
func TestPairs(t *testing.T) {
	refused := used("refused", 1, "orders", "", "")
	refused.refused = true
	all := pairs([]Request{
		used("locked", 3, "items", "items orders", ""), used("naive", 4, "items orders", "items orders", "items"), used("list", 1, "orders", "", ""),
		used("key", 1, "redis:n", "redis:n", ""), used("script", 1, "redis:*", "redis:*", ""),
		{Name: "broken", Problem: "it fails"},
		refused,
	})
	var got []string
	for _, p := range all {
		what := p.Why
		if !p.LeftOut {
			what = fmt.Sprint(p.suspicious, " ", strings.Join(p.Conflicts, ", "))
		}
		got = append(got, p.Name()+": "+what)
	}
	want := []string{
		"locked and naive: true items, orders", "naive twice: true items, orders",
		"key twice: false redis key n", "key and script: false any key of redis, redis key n", "script twice: false any key of redis",
		"locked and list: false orders", "locked and refused: false orders", "naive and list: false orders", "naive and refused: false orders", "locked twice: false items, orders",
	}
	if !slices.Equal(got[:len(want)], want) {
		t.Errorf("want first\n%s", strings.Join(want, "\n"))
	}
	for _, w := range []string{"list twice: both only read what they share", "list and key: no table and no key in common", "refused twice: both are refused alone", "list and refused: both only read what they share"} {
		if !slices.Contains(got[len(want):], w) {
			t.Errorf("not left out: %q", w)
		}
	}
	if strings.Contains(strings.Join(got, "\n"), "broken") {
		t.Error("a request with a problem is in a pair")
	}
	if t.Failed() {
		t.Log(strings.Join(got, "\n"))
	}
}

// TestInconclusive: a failure after a race does not replace the verdict of the race.
func TestInconclusive(t *testing.T) {
	for before, want := range map[verdict.Verdict]verdict.Verdict{verdict.Broken: verdict.Broken, verdict.Oversold: verdict.Oversold, "": verdict.Inconclusive, verdict.Inconclusive: verdict.Inconclusive} {
		p := Pair{Verdict: before}
		if p.inconclusive("it was interrupted"); p.Verdict != want {
			t.Errorf("%q becomes %q, want %q", before, p.Verdict, want)
		}
	}
}

// TestUnfinished: the text contains the reason for an early end of the scan.
func TestUnfinished(t *testing.T) {
	var text strings.Builder
	if err := (Report{Unfinished: "--save: no space"}).Text(&text, false); err != nil || !strings.Contains(text.String(), "unfinished: --save: no space\n") {
		t.Errorf("%v: %s", err, text.String())
	}
}

// TestUnproven: without a race, a scan proves nothing if a request or pair is not completely explored,
// or if no pair is explored.
func TestUnproven(t *testing.T) {
	for _, c := range []struct {
		name string
		r    Report
		says string
	}{
		{"all hold", Report{Pairs: []Pair{{Verdict: "holds"}, {LeftOut: true}}}, ""},
		{"none explored", Report{Pairs: []Pair{{LeftOut: true}}}, "no request writes what another one uses"},
		{"all race", Report{Pairs: []Pair{{Verdict: "broken"}, {LeftOut: true}}}, ""},
		{"different rows", Report{Pairs: []Pair{{LeftOut: true, Search: &explore.Report{}}}}, "every pair uses different rows"},
		{"one open", Report{Pairs: []Pair{{Verdict: "holds"}, {Requests: [2]string{"a", "b"}, of: [2]int{0, 1}, Verdict: "inconclusive", Why: "why"}}}, "a and b: why"},
		{"no turn", Report{Pairs: []Pair{{Verdict: "holds"}, {NotRun: true, Verdict: "inconclusive"}, {NotRun: true, Verdict: "inconclusive"}}}, "2 pairs had no turn before --budget was spent"},
		{"a problem", Report{Requests: []Request{{Name: "a", Problem: "p"}}, Unused: []string{"u"}, Pairs: []Pair{{Verdict: "holds"}}}, "a: p; and 1 other reason"},
	} {
		if got := c.r.Unproven(); !strings.HasPrefix(got, c.says) || c.says == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
}
