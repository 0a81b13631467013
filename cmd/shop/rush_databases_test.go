package main

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// TestRushPostgres: on a private PostgreSQL each strategy does what the catalogue promises
// for its isolation level.
func TestRushPostgres(t *testing.T) {
	t.Parallel()
	tier.Test(t, "needs servers")
	for _, c := range []struct {
		database string
		verdicts map[string]string
	}{
		{dialect.Postgres, map[string]string{"transaction": "oversold", "conditional": "holds", "named-lock": "holds", "serializable": "holds"}},
		{dialect.PostgresRepeatableRead, map[string]string{"transaction": "holds", "named-lock": "holds"}},
	} {
		t.Run(c.database, func(t *testing.T) {
			t.Parallel()
			var names []string
			for name := range c.verdicts {
				names = append(names, name)
			}
			code, stdout, stderr := shoptest.RunRaced(t, "rush", "--engine", "local", "--local-db", c.database, "--strategy", strings.Join(names, ","), "--wait", "60s", "--expect") // buyers that give up hide a lost update
			if code == exitInconclusive {
				t.Skip("the machine was too slow to show anything: " + stderr)
			}
			if code != 0 {
				t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
			}
			for name, verdict := range c.verdicts {
				if row := rowOf(stdout, name); !strings.HasSuffix(row, verdict) {
					t.Errorf("%s: %q, want %s", name, row, verdict)
				}
			}
		})
	}
}

// TestRushGalera has two processes at two nodes of a cluster. Strategies that rely on the database
// hold, and they retry orders that the other node has rejected. A plain transaction oversells.
func TestRushGalera(t *testing.T) {
	tier.Soak(t, "starts a cluster of three databases")
	t.Parallel()
	code, stdout, stderr := shoptest.RunRaced(t, "rush", "--engine", "local", "--local-db", dialect.Galera, "--processes", "2",
		"--strategy", "transaction,for-update,fenced,redis-lua", "--expect")
	if code == exitInconclusive {
		t.Skip("the machine was too slow to show anything: " + stderr)
	}
	if code != 0 {
		t.Fatalf("exit %d\n%s%s", code, stdout, stderr)
	}
	for name, verdict := range map[string]string{"transaction": "oversold", "for-update": "holds", "fenced": "holds", "redis-lua": "holds"} {
		if row := rowOf(stdout, name); !strings.HasSuffix(row, verdict) {
			t.Errorf("%s: %q, want %s", name, row, verdict)
		}
	}
}

// rowOf returns the line of a table that begins with a word.
func rowOf(table, word string) string {
	for line := range strings.Lines(table) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == word {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
