package sizing

import (
	"fmt"
	"strings"
)

// Growth says in words what becomes of a strategy as the shop grows.
type Growth struct {
	Products  string // more of them
	Processes string // more of the shop's
	Nodes     string // more writers of one replicated database, Galera's
	Shard     string // where a product's sales go when the products are divided
	Thousand  string // what a thousand nodes of that cost
}

// GrowthOf follows from the way of a sale.
func GrowthOf(p Path) Growth {
	return Growth{productsOf(p), processesOf(p), nodesOf(p), shardOf(p), thousandOf(p)}
}

func productsOf(p Path) string {
	switch {
	case p.Batch > 0:
		return "less a sale, not more: a batch is of one product, so many products make small batches"
	case p.Nodes == AllAtOnce, p.Nodes == AllInTurn:
		return "in parallel, until the lock's nodes are full: each lock asks all of them"
	case p.Nodes == OneLeader:
		return "in parallel, until the leader is full: each lock is a few writes to its disk"
	case p.Rounds > 0:
		return "in parallel, and no round is lost where one buyer is at a product"
	}
	return "in parallel, until a processor is full"
}

func processesOf(p Path) string {
	switch {
	case p.Batch > 0:
		return "one product gets slower: each process has a batch of its own, and a smaller one"
	case p.Rounds > 0:
		return "one product gets slower: more rounds are lost"
	case p.Rows > 0:
		return "one product grows until each of its rows is one buyer's at a time"
	case p.Nodes == AllAtOnce:
		return "one product gets slower: the processes split the votes"
	case p.Keeps == Process:
		return "one product sells in as many turns at once, until its row gives way"
	case p.Keeps == All && p.Nodes == ByKey:
		return "one product does not grow: its lock is one, and each process polls it or listens to it"
	case p.Keeps == All:
		return "one product does not grow: its lock is one"
	}
	return "one product does not grow: its row is one"
}

func nodesOf(p Path) string {
	switch {
	case p.Nodes == InSession:
		return "it does not run: the lock is of one node"
	case p.Keeps == All:
		return "no conflicts while the lock holds; each node applies every write"
	case p.Batch > 0:
		return "conflicts between the processes' batches of one product; each node applies every write"
	case p.Rows > 0:
		return "conflicts, the fewer the more rows a product has; each node applies every write"
	}
	return "conflicts, the more writers there are at one row; each node applies every write"
}

func shardOf(p Path) string {
	switch {
	case p.Nodes == ByKey:
		return "to the database of its row and the Redis of its key, by one map"
	case p.Nodes == AllAtOnce, p.Nodes == AllInTurn:
		return "to the database of its row; the lock has no shards, each needs lock nodes of its own"
	case p.Nodes == OneLeader:
		return "to the database of its row and an ensemble of its own"
	case p.Batch > 0:
		return "to the database of its row, and best to few processes"
	case p.Keeps == Process:
		return "to one process, and to the database of its row"
	}
	if p.Rows > 0 {
		return "to the database of its rows"
	}
	return "to the database of its row"
}

func thousandOf(p Path) string {
	switch {
	case p.Nodes == AllAtOnce:
		return "as one lock: 1,000 questions a sale and a wait for 501 answers; as 200 groups of five: nothing crosses them"
	case p.Nodes == AllInTurn:
		return "as one lock: it does not, 2,000 round trips a sale, and one node down stops all; as 200 groups of five: nothing crosses them"
	case p.Nodes == OneLeader:
		return "as one ensemble: it does not, 501 disks for each lock; as 200 ensembles of five: nothing crosses them"
	case p.Nodes == ByKey:
		return "nothing crosses them; two systems to move when a product moves, and 1,000 keys' masters that can fail over"
	case p.Keeps == Process && p.Batch == 0:
		return "a router that never sends a product to two processes, and to know that is a lock again"
	}
	if p.Rows > 0 {
		return "nothing crosses them; a product moves with its rows, and sells no faster than on one"
	}
	return "nothing crosses them; a product moves with its row, and sells no faster than on one"
}

// Law is how many sales of one product a second there are at most, as a formula of R, the
// round trip to the database, L, that to the lock's servers, and C, what COMMIT takes beside
// its round trip.
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
		return fmt.Sprintf("1/(%s), and that over k/%d where k rounds are under way", turn, p.Rounds)
	case p.Nodes == AllAtOnce:
		return "1/(" + turn + "), and a pause a process more"
	case p.Keeps == All:
		return "1/(" + turn + ")"
	case p.Keeps == Process && turn != "":
		return "a process 1/(" + turn + "), all together " + row
	}
	return row
}
