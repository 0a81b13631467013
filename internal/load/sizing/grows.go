package sizing

import (
	"fmt"
	"strings"
)

// Growth describes what happens to a strategy's throughput as the shop grows.
type Growth struct {
	Products  string // with more products
	Processes string // with more shop processes
	Nodes     string // with more writers of one Galera cluster
}

// GrowthOf returns the growth that follows from the path of a sale.
func GrowthOf(p Path) Growth {
	return Growth{productsOf(p), processesOf(p), nodesOf(p)}
}

func productsOf(p Path) string {
	switch {
	case p.Batch > 0:
		return "smaller batches"
	case p.Nodes == AllAtOnce, p.Nodes == AllInTurn:
		return "parallel, up to the lock's nodes"
	case p.Nodes == OneLeader:
		return "parallel, up to the leader's disk"
	}
	return "parallel"
}

func processesOf(p Path) string {
	switch {
	case p.Batch > 0:
		return "slower: smaller batches"
	case p.Rounds > 0:
		return "slower: more lost rounds"
	case p.Rows > 0:
		return "faster, up to its rows"
	case p.Nodes == AllAtOnce:
		return "slower: split votes"
	case p.Keeps == Process:
		return "faster, up to its row"
	case p.Keeps == All:
		return "the same: one lock"
	}
	return "the same: one row"
}

func nodesOf(p Path) string {
	switch {
	case p.Nodes == InSession:
		return "unavailable"
	case p.Keeps == All:
		return "no conflicts while the lock holds"
	case p.Batch > 0:
		return "conflicts between batches"
	case p.Rows > 0:
		return "fewer conflicts with more rows"
	}
	return "conflicts at the row"
}

// Law returns the maximum sales per second of one product as a formula. R is the round trip to the
// database, L the round trip to the lock's servers, and C the time of COMMIT without its round trip.
func Law(p Path) string {
	sum := func(sql, locks, commits int) string {
		var terms []string
		for _, t := range []struct {
			n    int
			unit string
		}{{sql, "R"}, {locks, "L"}, {commits, "C"}} {
			if t.n > 0 {
				terms = append(terms, strings.TrimPrefix(fmt.Sprintf("%d %s", t.n, t.unit), "1 "))
			}
		}
		return strings.Join(terms, " + ")
	}
	row := "1/(" + sum(p.RowSQL, 0, 0) + ")"
	turn := sum(p.TurnSQL, p.TurnLock, p.TurnCommits)
	switch {
	case p.Batch > 0:
		return "buyers/(" + turn + ")"
	case p.Rows > 0:
		return fmt.Sprintf("%d/(%s)", p.Rows, sum(p.RowSQL, 0, 0))
	case p.Rounds > 0:
		return fmt.Sprintf("%d/(k (%s)) with k rounds at once", p.Rounds, turn)
	case p.Nodes == AllAtOnce:
		return "1/(" + turn + "), less with more processes"
	case p.Keeps == All:
		return "1/(" + turn + ")"
	case p.Keeps == Process && turn != "":
		return "1/(" + turn + ") per process, " + row + " in all"
	}
	return row
}
