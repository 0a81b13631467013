package soak_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/load/soak"
)

func plan(seed uint64) soak.Plan {
	return soak.Plan{
		Seed: seed, Clients: 64, Processes: 2, Kill: true,
		Strategies: []soak.Strategy{{Name: "a", Kills: true}, {Name: "b"}},
	}
}

// TestWave: a seed determines the waves, in any order of calls, and another seed gives other waves. A kill
// never hits the first process, or a strategy that does not promise to survive it.
func TestWave(t *testing.T) {
	const waves = 500
	kinds, differs := map[string]int{}, 0
	for n := waves; n > 0; n-- {
		w := plan(7).Wave(n)
		kinds[w.Kind]++
		switch {
		case describe(w) != describe(plan(7).Wave(n)):
			t.Errorf("wave %d is %+v, and then %+v", n, w, plan(7).Wave(n))
		case w.Clients < 1 || w.Clients > 64 || w.Stock < 1 || w.Process < 0 || w.Process > 1:
			t.Errorf("%+v", w)
		case w.Kind == "kill" && (w.Strategy != "a" || w.Process != 1 || w.Clients != 64):
			t.Errorf("kills in %+v", w)
		case w.Kind == "burst" && (w.Stock > 128 || w.Clients != 64):
			t.Errorf("%+v", w)
		}
		if describe(w) != describe(plan(8).Wave(n)) {
			differs++
		}
	}
	for _, k := range soak.Kinds() {
		if kinds[k.Name] < waves/len(soak.Kinds())/2 {
			t.Errorf("%d of %d waves are %s", kinds[k.Name], waves, k.Name)
		}
	}
	if differs < waves/2 {
		t.Errorf("another seed differs in %d of %d waves", differs, waves)
	}
	if first := plan(9).Wave(1); first.Kind != "steady" || first.Clients != 64 {
		t.Errorf("the first is %+v", first)
	}
	for _, p := range []soak.Plan{{Seed: 7, Clients: 1, Processes: 1, Strategies: plan(7).Strategies}, {Seed: 7, Clients: 1, Processes: 1, Kill: true, Strategies: plan(7).Strategies[1:]}} {
		for n := range 100 {
			if w := p.Wave(n + 1); w.Kind == "kill" {
				t.Errorf("%+v kills in %+v", p, w)
			}
		}
	}
}

func describe(w soak.Wave) string {
	return fmt.Sprint(w.Kind, w.Strategy, w.Clients, w.Stock, w.Process)
}

// of returns the first wave of a kind, with its own stock.
func of(t *testing.T, kind string, stock int64) soak.Wave {
	t.Helper()
	for n := 1; n < 1000; n++ {
		if w := plan(1).Wave(n); w.Kind == kind {
			w.Stock = stock
			return w
		}
	}
	t.Fatalf("no wave is %s", kind)
	return soak.Wave{}
}

// books returns the report of records of one unit each.
func books(stock, records, leftover int64) audit.Report {
	return audit.Report{Stocked: stock, Leftover: leftover, Records: records, UnitsSold: records}.Sums()
}

// TestJudge: each violation is reported, a correct wave has none, and a wave that showed nothing is void.
func TestJudge(t *testing.T) {
	for name, c := range map[string]struct {
		kind      string
		answers   soak.Answers
		books     audit.Report
		violation string // a part of one; "" for none
		void      string
	}{
		"sound":                   {"steady", soak.Answers{Sold: 40}, books(100, 40, 60), "", ""},
		"sold out":                {"burst", soak.Answers{Sold: 100, SoldOut: 9, Denied: 9}, books(100, 100, 0), "", ""},
		"lost updates":            {"steady", soak.Answers{Sold: 40}, books(100, 40, 70), "drift +10: 40 sold and 70 left of 100", ""},
		"vanished":                {"steady", soak.Answers{Sold: 40}, books(100, 40, 59), "drift -1", ""},
		"below zero, no drift":    {"burst", soak.Answers{Sold: 101, SoldOut: 1, Denied: 1}, books(100, 101, -1), "101 units sold of 100", ""},
		"untold":                  {"steady", soak.Answers{Sold: 40}, books(100, 41, 59), "41 records, and the answers permit 40", ""},
		"lost":                    {"steady", soak.Answers{Sold: 40}, books(100, 39, 61), "lost: 40 sales were answered, and there are 39 records", ""},
		"another stock":           {"steady", soak.Answers{Sold: 40}, books(90, 40, 50), "100 units were put on sale, and the audit says 90", ""},
		"denied":                  {"burst", soak.Answers{Sold: 99, SoldOut: 5, Denied: 5}, books(100, 99, 1), "5 buyers were told that it is sold out, and 1 units are left", ""},
		"gave back":               {"burst", soak.Answers{Sold: 99, SoldOut: 5, Denied: 5, Busy: 1}, books(100, 99, 1), "", ""},
		"unknown, none of them":   {"kill", soak.Answers{Sold: 40, Unknown: 3, Sent: 3}, books(100, 40, 60), "", ""},
		"unknown, all of them":    {"kill", soak.Answers{Sold: 40, Unknown: 3, Sent: 3}, books(100, 43, 57), "", ""},
		"unknown, and one more":   {"kill", soak.Answers{Sold: 40, Unknown: 3, Sent: 3}, books(100, 44, 56), "44 records, and the answers permit 43", ""},
		"unknown, and one less":   {"kill", soak.Answers{Sold: 40, Unknown: 3, Sent: 3}, books(100, 39, 61), "lost", ""},
		"none was inside":         {"kill", soak.Answers{Sold: 40, Unknown: 3}, books(100, 40, 60), "", "no buyer was inside the process that was killed"},
		"killed no buyer":         {"kill", soak.Answers{Sold: 40, Unreached: 9}, books(100, 40, 60), "", "no buyer was inside the process that was killed"},
		"nothing":                 {"steady", soak.Answers{Busy: 7, FirstNo: "503 busy"}, books(100, 0, 100), "", "nothing was sold; the first answer except sold and sold out: 503 busy"},
		"nothing, and a record":   {"steady", soak.Answers{Busy: 7}, books(100, 1, 99), "1 records, and the answers permit 0", ""},
		"errors":                  {"steady", soak.Answers{Sold: 40, Failed: 4, FirstError: "500 oh"}, books(100, 40, 60), "failed: 4 buyers were answered with an error, although no fault was injected; the first: 500 oh", ""},
		"errors after a kill":     {"kill", soak.Answers{Sold: 40, Failed: 4, Unknown: 1, Sent: 1}, books(100, 40, 60), "", ""},
		"a server is down":        {"steady", soak.Answers{Sold: 40, Failed: 4, Down: 4, FirstNo: "503 redis"}, books(100, 40, 60), "", "4 buyers were told that a server is down; the first answer except sold and sold out: 503 redis"},
		"no buyer asked":          {"idle", soak.Answers{}, books(100, 0, 100), "", "nothing was sold"},
		"not sold out":            {"burst", soak.Answers{Sold: 99}, books(100, 99, 1), "", "no buyer was told that it is sold out"},
		"restocked":               {"restock", soak.Answers{Before: 50, Beside: 2, Sold: 40, SoldOut: 3}, books(100, 41, 59), "", ""},
		"restocked, and one more": {"restock", soak.Answers{Before: 50, Beside: 2, Sold: 40}, books(100, 43, 57), "43 records, and the answers permit 42", ""},
		"restocked for no buyer":  {"restock", soak.Answers{Before: 50}, books(100, 0, 100), "", "nothing was sold after the restock"},
		"restocked for few":       {"restock", soak.Answers{Before: 50, Beside: 100, SoldOut: 9, Denied: 9}, books(100, 100, 0), "", ""},
		"no buyer before":         {"restock", soak.Answers{Sold: 50}, books(100, 50, 50), "", "nothing was sold before the restock"},
	} {
		violations, void := soak.Judge(of(t, c.kind, 100), c.answers, c.books)
		all := strings.Join(violations, "; ")
		if (c.violation == "") != (all == "") || !strings.Contains(all, c.violation) || void != c.void {
			t.Errorf("%s: violated %q, void %q; want %q, %q", name, all, void, c.violation, c.void)
		}
	}
}

// TestGrows: a leak grows in each quarter; a pool that fills up, noise, and a short run do not.
// still is a shop of one process, which is never killed.
type still string

func (s still) URLs() []string                 { return []string{string(s)} }
func (still) Kill(int) error                   { return nil }
func (still) Start(context.Context, int) error { return nil }
func (still) Ended(int) bool                   { return false }

// TestRestockFails: a service that cannot restock breaks its promise, in one wave after the other. If
// it names an unavailable server (503), the soak ends with an error.
func TestRestockFails(t *testing.T) {
	t.Parallel()
	for status, isBreak := range map[int]bool{http.StatusInternalServerError: true, http.StatusServiceUnavailable: false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/metrics" {
				fmt.Fprintln(w, "go_goroutines 5")
				return
			}
			w.WriteHeader(status)
		}))
		defer server.Close()
		p := plan(1)
		p.Processes = 1
		violated := 0
		r, err := soak.Run(t.Context(), soak.Config{
			Plan: p, Duration: 250 * time.Millisecond, Length: 100 * time.Millisecond, Shops: still(server.URL),
			Progress: func(soak.Wave) {}, Violated: func(soak.Waved) { violated++ },
		})
		if (err == nil) != isBreak || (violated > 0) != isBreak || violated > 2 || r.Violated() != violated {
			t.Errorf("status %d: %d waves with a violation, %v", status, violated, err)
		}
	}
}

func TestGrows(t *testing.T) {
	line := func(n int, at func(i int) float64) (values []int) {
		for i := range n {
			values = append(values, int(at(i)))
		}
		return values
	}
	noise := func(i int) float64 { return float64(i * 7 % 5) }
	for name, c := range map[string]struct {
		values []int
		want   bool
	}{
		"one a wave":          {line(8, func(i int) float64 { return float64(10 + i) }), true},
		"a leak under noise":  {line(100, func(i int) float64 { return 20 + 0.3*float64(i) + noise(i) }), true},
		"noise":               {line(100, noise), false},
		"a pool":              {line(100, func(i int) float64 { return 64 - 64*math.Exp(-float64(i)/4) }), false},
		"once":                {line(100, func(i int) float64 { return float64(10 + i/50) }), false},
		"grows and goes back": {line(100, func(i int) float64 { return float64(min(i, 100-i)) }), false},
		"too few":             {line(7, func(i int) float64 { return float64(i) }), false},
		"none":                {nil, false},
	} {
		if got := soak.Grows(c.values); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestTrends: a process and its successor have separate trends.
func TestTrends(t *testing.T) {
	var rests []soak.Rest
	for wave := range 16 {
		rests = append(rests,
			soak.Rest{Wave: wave + 1, Process: 0, Use: soak.Use{Goroutines: 10, Descriptors: 20 + wave}},
			soak.Rest{Wave: wave + 1, Process: 1, Life: wave / 2, Use: soak.Use{Goroutines: 10 + wave, Descriptors: 20}})
	}
	for _, trend := range soak.Trends(rests) {
		if want := trend.Process == 0 && trend.What == "descriptors"; trend.Grows != want {
			t.Errorf("%+v", trend)
		}
	}
}

func result() soak.Result {
	r := soak.Result{
		Seed: 42, Server: "MariaDB 10.11", Cores: 2, Processes: 2, Strategies: []string{"a", "b", "c"}, Clients: 64,
		Wave: 5 * time.Second, Asked: time.Minute, Kill: true, Took: time.Minute,
		Trends: []soak.Trend{{What: "goroutines", Waves: 12, First: 10, Last: 99, Grows: true}},
	}
	for i, kind := range []string{"steady", "kill", "idle"} {
		w := soak.Waved{Began: float64(20 * i), Ended: float64(20*i + 19), Killed: kind == "kill", Answers: soak.Answers{Sold: 1500, SoldOut: 500}}
		w.Number, w.Kind, w.Strategy, w.Clients, w.Process = i+1, kind, r.Strategies[i], 64, 1
		r.Waves = append(r.Waves, w)
	}
	r.Waves[1].Violations, r.Waves[1].Audited.Drift = []string{"drift +1 <b>"}, 1
	r.Waves[2].Void = "nothing was sold"
	for i := range 60 {
		s := soak.Sample{At: float64(i + 1), Seconds: 1, Sold: 75, P99MS: 12, Processes: []soak.Use{{Heap: 8, Goroutines: 20, Descriptors: 40}, {Heap: 9, Goroutines: 21, Descriptors: 41}}}
		if i == 30 { // the process is dead and sells nothing
			s.Processes[1], s.P99MS = soak.Use{}, 0
		}
		r.Samples = append(r.Samples, s)
	}
	return r
}

// TestPrint: twelve rows at most, and the verdict.
func TestPrint(t *testing.T) {
	var b bytes.Buffer
	if err := result().Print(&b, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"MariaDB 10.11, 2 shop processes", "seed 42", "\n 55s ", "  75\n",
		"violated in wave 2 (kill, b): drift +1 <b>", "void: wave 3 (idle, c): nothing was sold",
		"3 waves, 4,500 sales, 1,500 refusals, 1 kill; drift in 1; void: 1; violated: 1; goroutines of process 0: grows\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("does not say %q:\n%s", want, b.String())
		}
	}
	if rows := len(regexp.MustCompile(`(?m)^ +\d+s +[\d.]+ `).FindAllString(b.String(), -1)); rows != 12 {
		t.Errorf("%d rows:\n%s", rows, b.String())
	}
}

// TestDocument: every format writes it; the page has four pictures, with a gap where a
// process was dead.
func TestDocument(t *testing.T) {
	for _, f := range report.Formats() {
		var b bytes.Buffer
		if err := f.Write(&b, result().Document()); err != nil || b.Len() == 0 {
			t.Errorf("%s: %v, %d bytes", f.Ending, err, b.Len())
		}
		if f.Ending != ".html" {
			continue
		}
		page := b.String()
		for what, want := range map[string]int{"<svg": 4, "<polyline": 3*3 + 2, "process 1 was killed": 4, "NaN": 0, "Inf": 0, "<b>drift": 0, "ZgotmplZ": 0} {
			if got := strings.Count(page, what); got != want {
				t.Errorf("%d times %q, want %d", got, what, want)
			}
		}
	}
	if d := (soak.Result{}).Document(); len(d.Cases) != 4 || d.Cases[0].Seen != "nothing was measured" {
		t.Errorf("%+v", d.Cases)
	}
}
