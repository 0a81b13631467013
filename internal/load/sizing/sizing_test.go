package sizing

import (
	"math"
	"testing"
)

// theMachine and the costs of a strategy are round numbers.
var (
	theMachine = Machine{Cores: 2, Buyers: 32, StatementMS: 0.2, WakeMS: 0.2, CommitMS: 0.1, Usable: 1, Crowding: 0.2, Slower: 0.1, SlowerLock: 0.1}
	theCosts   = Costs{TurnMS: 1, Alone: CPU{Database: 0.4, Shop: 0.2}, Spread: CPU{Database: 0.4, Shop: 0.2}}
)

func aShop(change func(*Shop)) Shop {
	s := Shop{
		Setting:  Setting{Nodes: 1, Writers: 1, Processes: 1, Products: 1, Buyers: 1000},
		CommitMS: 0.1, Conns: 2000, DatabaseCores: 1000, ShopCores: 1000, LockCores: 1000,
	}
	change(&s)
	return s
}

// TestLaws: each law as the only bottleneck, computed by hand.
func TestLaws(t *testing.T) {
	t.Parallel()
	row := Path{SQL: 5, RowSQL: 3}
	process := Path{SQL: 5, RowSQL: 2, Keeps: Process, TurnSQL: 5, TurnCommits: 1}
	key := Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: ByKey}
	quorum := Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: AllAtOnce}
	lost := Path{SQL: 5, RowSQL: 2, TurnSQL: 4, Rounds: 4}
	batch := Path{SQL: 6, Lock: 3, RowSQL: 4, Keeps: Process, TurnSQL: 6, TurnLock: 2, TurnCommits: 1, Batch: 500}
	for _, tt := range []struct {
		name   string
		path   Path
		change func(*Shop)
		want   float64 // sales a second
		first  string
	}{
		{"a row", row, func(*Shop) {}, 1000, "the row"},
		{"a row, three round trips of 3 ms", row, func(s *Shop) { s.RTTMS = 3 }, 100, "the row"},
		{"a row that is free before the disk", row, func(s *Shop) { s.CommitMS = 9.1 }, 1000, "the row"},
		{"a row that is kept until the disk", row, func(s *Shop) { s.KeepsRow, s.CommitMS = true, 9 }, 100, "the row"},
		{"ten rows", row, func(s *Shop) { s.Products, s.Buyers = 10, 2000 }, 10_000, "the row"},
		{"rows without end: the database", row, func(s *Shop) { s.Products, s.DatabaseCores = 100_000, 2 }, 5000, "the database's processors"},
		{"rows without end: the shops", row, func(s *Shop) { s.Products, s.ShopCores, s.Processes = 100_000, 0.25, 2 }, 2500, "the shops' processors"},
		{"connections", row, func(s *Shop) { s.Products, s.Conns, s.RTTMS = 100_000, 8, 1 }, 8 * 1000 / 6.6, "the connections"},
		{"connections of those who wait for a lock", key, func(s *Shop) { s.Products, s.Conns, s.RTTMS = 100_000, 8, 1 }, 8 * 1000 / 6.0, "the connections"},
		{"a turn in a process", process, func(*Shop) {}, 1000, "the turn in a process"},
		{"in the second process another", process, func(s *Shop) { s.Processes, s.RTTMS = 2, 4 }, 2 * 1000.0 / 21, "the turn in a process"},
		{"in eight processes the row", process, func(s *Shop) { s.Processes, s.RTTMS = 8, 4 }, 1000 / 8.6, "the row"},
		{"a key", key, func(s *Shop) { s.RTTMS, s.LockRTTMS = 1, 2 }, 100, "the lock"},
		{"a key does not grow with processes", key, func(s *Shop) { s.RTTMS, s.LockRTTMS, s.Processes = 1, 2, 8 }, 100, "the lock"},
		{"a turn lasts until the disk", key, func(s *Shop) { s.CommitMS = 9.1 }, 100, "the lock"},
		{"votes are split", quorum, func(s *Shop) { s.Processes = 5 }, 500, "the lock: votes are split"},
		{"rounds", lost, func(*Shop) {}, 1000, "the row: rounds are lost"},
		{"as many rounds as do not pause", lost, func(s *Shop) { s.Processes = 2 }, 1000 * 4.0 / activeRounds, "the row: rounds are lost"},
		{"no more of them", lost, func(s *Shop) { s.Processes = 9 }, 1000 * 4.0 / activeRounds, "the row: rounds are lost"},
		{"a batch takes all buyers who wait", batch, func(s *Shop) { s.Buyers = 96 }, 96.0 / 64 * 1000, "the batch"},
		{"two processes have a batch each", batch, func(s *Shop) { s.Buyers, s.Processes = 64, 2 }, 1000, "the batch"},
	} {
		got := Predict(tt.path, theCosts, theMachine, aShop(tt.change))
		if math.Abs(got.PerSecond/tt.want-1) > 0.06 || got.First != tt.first {
			t.Errorf("%s: %s; want %.0f a second, %s", tt.name, got, tt.want, tt.first)
		}
	}
}

// TestWriters: only one of several writers at one row succeeds. A lock that excludes all other buyers
// prevents conflicts. Every node applies all writes.
func TestWriters(t *testing.T) {
	t.Parallel()
	row, key := Path{SQL: 5, RowSQL: 3}, Path{SQL: 5, Lock: 2, RowSQL: 2, Keeps: All, TurnSQL: 5, TurnLock: 2, TurnCommits: 1, Nodes: ByKey}
	on := func(p Path, writers, products int) Estimate {
		return Predict(p, theCosts, theMachine, aShop(func(s *Shop) { s.Nodes, s.Writers, s.Processes, s.Products = 3, writers, 3, products }))
	}
	if one, three := on(row, 1, 1).Conflicts, on(row, 3, 1).Conflicts; one != 0 || math.Abs(three-2.0/3) > 0.05 {
		t.Errorf("conflicts of one writer %.2f, of three %.2f; want 0 and two thirds", one, three)
	}
	if few, many := on(row, 3, 1).Conflicts, on(row, 3, 100_000).Conflicts; many > few/10 {
		t.Errorf("conflicts at one product %.2f, at a hundred thousand %.2f", few, many)
	}
	if got := on(key, 3, 1).Conflicts; got != 0 {
		t.Errorf("conflicts under a lock %.2f", got)
	}
	sales := func(nodes int) float64 {
		return Predict(row, theCosts, theMachine, aShop(func(s *Shop) {
			s.Nodes, s.Writers, s.Processes, s.Products, s.DatabaseCores = nodes, nodes, nodes, 1_000_000, 2
		})).PerSecond
	}
	if one, thousand := sales(1), sales(1000); thousand < one/2 || thousand > one/applies {
		t.Errorf("one node sells %.0f a second and a thousand %.0f; want half of it at least, and no more than by what applying is cheaper", one, thousand)
	}
}
