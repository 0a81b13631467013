package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/load/sweep"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestBench: each strategy sells with each number of clients. For a strategy with a lease,
// the result also names its critical section and a sufficient lease.
func TestBench(t *testing.T) {
	tier.Test(t, "it measures two strategies")
	t.Parallel()
	page := filepath.Join(t.TempDir(), "bench.html")
	code, stdout, stderr := shoptest.RunRaced(t, "bench", "--strategy", "conditional,redis,unit-rows", "--clients", "1,4", "--rounds", "2", "--round", "300ms", "--json", "--report", page)
	var r sweep.Result
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
		t.Fatalf("exit %d, %v: %s", code, err, stderr)
	}
	if len(r.Points) != 4 || len(r.LeftOut) != 1 || !strings.HasPrefix(r.LeftOut[0], "unit-rows: ") {
		t.Fatalf("%+v", r)
	}
	if len(r.Sections) != 1 {
		t.Fatalf("sections %+v, want that of redis, which alone leases", r.Sections)
	}
	s := r.Sections[0]
	if s.Strategy != "redis" || s.P50MS <= 0 || s.P99MS < s.P50MS || s.P999MS < s.P99MS || s.P50MS > r.Points[3].P99MS ||
		float64(s.LeaseFromMS) < 3*s.P999MS || float64(s.LeaseToMS) < 5*s.P999MS || float64(s.LeaseToMS) > 5*s.P999MS+1 {
		t.Errorf("%+v, and a buyer waited %+v", s, r.Points[3])
	}
	if html, err := os.ReadFile(page); err != nil || strings.Count(string(html), "<polyline") != 4 { // two strategies with two measures each
		t.Errorf("%v: %s", err, html)
	}
	for i, p := range r.Points {
		if p.Strategy != []string{"conditional", "redis"}[i/2] || p.Clients != []int{1, 4}[i%2] || len(p.Rounds) != 2 || p.PerSecond <= 0 || p.P99MS < p.P50MS || p.P50MS <= 0 || p.Refused > 0 {
			t.Errorf("%+v", p)
		}
	}
}

// TestBenchMarks: the mark of an unsafe strategy depends on the database. PostgreSQL at REPEATABLE READ
// refuses the lost update.
func TestBenchMarks(t *testing.T) {
	tier.Soak(t, "starts two databases")
	t.Parallel()
	for database, want := range map[string]int{dialect.Postgres: 1, dialect.PostgresRepeatableRead: 0} {
		code, stdout, stderr := shoptest.RunRaced(t, "bench", "--engine", "local", "--local-db", database, "--strategy", "transaction", "--clients", "1", "--rounds", "1", "--round", "300ms", "--json")
		var r sweep.Result
		if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
			t.Fatalf("exit %d, %v: %s", code, err, stderr)
		}
		if len(r.Unsafe) != want {
			t.Errorf("%s: unsafe are %q", database, r.Unsafe)
		}
	}
}
