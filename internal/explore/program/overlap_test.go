package program_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"
)

// The statements of TestAppOverlap. A program that sends countsOrders decides and writes in one statement.
const (
	countsOrders = "INSERT INTO orders SELECT 1 FROM items WHERE id = 1 AND stock > 1 + (SELECT count(*) FROM orders)"
	takesOne     = "UPDATE items SET stock = stock - 1 WHERE id = 1 AND stock > 1"
	withoutLocks = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
	oneOrder     = "SELECT 1 FROM orders HAVING count(*) > 1"
)

// overlapping are programs that race inside one statement. The servers do so with two connections, too:
// some of 400 pairs of such statements sell twice.
var overlapping = map[string]statementShop{
	"postgres": {database: "postgres", sql: []string{countsOrders}, never: oneOrder},
	"mysql":    {database: "mysql", sql: []string{withoutLocks, countsOrders}, never: oneOrder},
}

// TestAppOverlap: --overlap finds a race inside one statement and replays it. It finds none in a statement
// that is atomic, although another statement ran while that one was held. A race that it cannot show stays
// exit code 3.
func TestAppOverlap(t *testing.T) {
	tier.Soak(t, "no other test has it: statements of a program that are held inside the servers")
	t.Parallel()
	atomic := []string{takesOne, "INSERT INTO orders VALUES (1)"}
	for _, c := range []struct {
		name    string
		shop    statementShop
		code    int
		divided []string
	}{
		{"postgres, a count", overlapping["postgres"], shoptest.Broken, nil},
		{"mysql, a count", overlapping["mysql"], shoptest.Broken, nil},
		{"postgres, an atomic update", statementShop{database: "postgres", sql: atomic, never: oneOrder}, 0, nil},
		{"mysql, an atomic update", statementShop{database: "mysql", sql: atomic, never: oneOrder}, 0, nil},
		{"mysql, a count that locks", statementShop{database: "mysql", sql: []string{countsOrders}, never: oneOrder}, shoptest.Inconclusive, []string{countsOrders}},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := c.shop.file(t)
			code, r, stderr := search(t, file, "--overlap")
			if code != c.code || !slices.Equal(r.Divided, c.divided) || !r.Complete || !r.Overlap || r.Overlapped == 0 || r.Overlapped == r.Explored {
				t.Fatalf("exit %d, %q, %d of %d schedules with a held statement; want %d, %q: %s", code, r.Divided, r.Overlapped, r.Explored, c.code, c.divided, stderr)
			}
			if c.code != shoptest.Broken {
				return
			}
			held := slices.ContainsFunc(r.Witness.Steps, func(s explore.Step) bool {
				return s.Result == "1 changed, held inside the server before its commit"
			})
			if code, stdout, stderr := exploreApp(t, file, "--replay", r.Witness.Schedule); code != shoptest.Broken || !held || !strings.Contains(stdout, "(commits) INSERT INTO orders") {
				t.Errorf("%s: exit %d, held %v: %s%s", r.Witness.Schedule, code, held, stdout, stderr)
			}
		})
	}
}
