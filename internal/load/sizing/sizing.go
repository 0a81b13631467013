// Package sizing predicts how many sales a second a strategy makes, and what gives way
// first, from what one sale does (a Path) and what was measured of it (Costs).
//
//	Path, Costs, Shop -> stations -> mean value analysis -> sales a second, use of each
//
// The laws, each a line or two of stations:
//
//   - One row sells at most one over the time for which it is locked: the round trips from
//     the statement that locks it to COMMIT, and the COMMIT where the database keeps the
//     lock until that is on the disk. So does a lock, over its turn: hand-over, section,
//     COMMIT. (The utilisation law: Denning and Buzen 1978.)
//   - A product that is divided into rows sells at each of them.
//   - A process sells no more than its turns: a lock in memory has one a process.
//   - A batch sells at once to all buyers of a process who wait.
//   - Of rounds that may lose one wins, and the others use processors: the more of them, the
//     fewer sales. (The growth beyond the maximum of Gunther's Universal Scalability Law,
//     "Guerrilla Capacity Planning", 2007, chapter 4.)
//   - Every node of a replicated database does every write, and the writers that meet at a
//     row grow with the nodes. (Gray, Helland, O'Neil, Shasha, "The Dangers of Replication
//     and a Solution", SIGMOD 1996.)
//   - Many products are as many rows, until a processor, or the connections, have no more.
//     (The asymptotic bounds.) How far each is from its bound is network.go's.
//
// It knows no strategy and no server. Times are in milliseconds. It predicts the middle of
// a steady load, not the longest wait, and no failure.
package sizing

import (
	"fmt"
	"math"
)

// A Shop is what sales are to be predicted of.
type Shop struct {
	Setting
	RTTMS     float64 `json:"rtt_ms"`      // network round trip between a shop and the database, beyond loopback
	LockRTTMS float64 `json:"lock_rtt_ms"` // the same to Redis, ZooKeeper, etcd
	CommitMS  float64 `json:"commit_ms"`   // what COMMIT takes beside its round trip: the disk, and the other nodes' answer

	// KeepsRow: the database keeps the row locked until the COMMIT is over: PostgreSQL,
	// Galera, MySQL with its binary log. InnoDB alone lets it go before.
	KeepsRow bool `json:"row_until_disk"`

	Conns         int     `json:"db_conns"`      // to the database, of one process
	DatabaseCores float64 `json:"cores"`         // of one node
	ShopCores     float64 `json:"shop_cores"`    // of one process
	LockCores     float64 `json:"lock_cores"`    // that the lock's servers use; Redis has one
	OneMachine    bool    `json:"one_machine"`   // DatabaseCores are all there is, and the buyers' are of them, too
	BuyersCPU     float64 `json:"buyers_cpu_ms"` // a sale, with OneMachine
}

// Costs are what was measured of a strategy on one process.
type Costs struct {
	TurnMS float64 `json:"turn_ms"` // from one sale of a product to the next, buyers waiting
	Alone  CPU     `json:"alone"`   // a sale, of one product
	Spread CPU     `json:"spread"`  // a sale, of a hundred
}

// A Machine is what does not depend on the strategy.
type Machine struct {
	Cores       float64 `json:"cores"`        // shared by all that was measured
	Buyers      int     `json:"buyers"`       // with which it was
	StatementMS float64 `json:"statement_ms"` // a round trip to the database within a turn
	WakeMS      float64 `json:"wake_ms"`      // from a COMMIT to when the next one has the row
	CommitMS    float64 `json:"commit_ms"`    // COMMIT beside its round trip, of one client alone
	Usable      float64 `json:"usable"`       // share of the processors that a full load got
	Crowding    float64 `json:"crowding"`     // more processor time a sale for each further process on the same cores
	Slower      float64 `json:"slower"`       // a longer turn at a row for each of them
	SlowerLock  float64 `json:"slower_lock"`  // the same at a lock that each of them polls, or is told of
	BuyersCPU   float64 `json:"buyers_cpu"`   // ms a sale of those who asked
}

// An Estimate is a prediction.
type Estimate struct {
	PerSecond float64 `json:"per_second"`             // sales
	First     string  `json:"gives_way"`              // what is used most, in words
	Use       float64 `json:"use"`                    // of it, 0 to 1
	ShelfMax  float64 `json:"one_product_per_second"` // of a single product, at most, if nothing else gave way
	CoresMax  float64 `json:"processors_per_second"`  // the same of the first processors to be full
	Conflicts float64 `json:"conflicts"`              // share of the writes that another writer's makes void, 0 to 1
}

// Predict is the sales a second.
func Predict(p Path, c Costs, m Machine, s Shop) Estimate {
	shelf := shelfOf(p, c, m, s)
	buyers, pool := s.Buyers, s.Conns*s.Processes
	one := s
	one.Products = 1
	alone := shelfOf(p, c, m, one)
	e := Estimate{ShelfMax: 1000 * alone.servers / alone.demand}
	var stations []station
	var use []float64
	for range 2 { // the second time with the conflicts of the first
		stations = append([]station{shelf}, processors(p, c, m, s, 1-e.Conflicts)...)
		if p.Keeps == Nobody {
			buyers = min(s.Buyers, pool) // who waits for a row holds a connection
		} else { // and who waits elsewhere holds one for the statements alone
			stations = append(stations, station{name: "the connections", demand: float64(p.SQL) * (m.StatementMS + s.RTTMS), servers: float64(pool), held: true})
		}
		var perMS float64
		perMS, use = throughput(buyers, outside(p, m, s), stations)
		e.PerSecond, e.Conflicts = 1000*perMS, conflicts(p, s, use[0])
	}
	e.CoresMax = math.Inf(1)
	for i, u := range use {
		if u > e.Use {
			e.Use, e.First = u, stations[i].name
		}
		if i > 0 && stations[i].demand > 0 {
			e.CoresMax = min(e.CoresMax, 1000*stations[i].servers/stations[i].demand)
		}
	}
	e.PerSecond, e.ShelfMax, e.CoresMax = tenths(e.PerSecond), tenths(e.ShelfMax), tenths(e.CoresMax)
	switch {
	case e.Use >= 0.5:
	case buyers < s.Buyers:
		e.First, e.Use = "the connections", 1
	default:
		e.First = "the buyers: too few, they wait for the network and the disk"
	}
	return e
}

// tenths of a sale are more than a prediction can tell.
func tenths(x float64) float64 { return math.Round(10*x) / 10 }

// conflicts is the share of the writes that another writer's makes void: of those who are
// at a row at once on different nodes, the first to be certified wins. A lock that is kept
// everywhere lets no two of them meet.
func conflicts(p Path, s Shop, rowUse float64) float64 {
	writers := writers(s)
	if p.Keeps == All || p.Rounds > 0 || writers < 2 { // a round that is lost is one that meets another
		return 0
	}
	return rowUse * float64(writers-1) / float64(writers)
}

// writers are the nodes that are really written to: a process is at one.
func writers(s Shop) int { return max(1, min(s.Writers, s.Processes)) }

// activeRounds is how many rounds on one product are really under way at once, however many
// may be: the losers pause, the longer the more often they lose.
const activeRounds = 5

// rounds are under way at once on one product.
func rounds(p Path, s Shop) float64 {
	return min(activeRounds, float64(p.Rounds*s.Processes), 1+float64(s.Buyers-1)/float64(s.Products))
}

// shelfOf is where the sales of one product wait for each other.
func shelfOf(p Path, c Costs, m Machine, s Shop) station {
	at := station{servers: float64(max(1, p.Rows)), copies: s.Products}
	crowd := 1.0
	if s.OneMachine && p.Keeps == All {
		crowd += m.SlowerLock * float64(s.Processes-1)
	} else if s.OneMachine {
		crowd += m.Slower * float64(s.Processes-1)
	}
	if p.Rounds > 0 {
		at.name = "the row: rounds are lost"
		at.demand = (c.TurnMS*crowd + float64(p.TurnSQL)*s.RTTMS + commitAtRow(s)) * rounds(p, s) / float64(p.Rounds)
		return at
	}
	row := c.TurnMS
	if p.Keeps != Nobody || p.Rows > 0 { // what was measured is of more than the row, or of several
		row = m.WakeMS + float64(p.RowSQL)*m.StatementMS
	}
	at.name, at.demand = "the row", row*crowd+float64(p.RowSQL)*s.RTTMS+commitAtRow(s)
	if p.Keeps == Nobody {
		return at
	}
	if p.Nodes == InSession {
		crowd = 1 // the server has them in line: no process polls, or is told and comes too late
	}
	name, turn := turnOf(p, c, m, s, crowd)
	if turn > at.demand || p.Batch > 0 { // the row is a batch's, too
		at.name, at.demand = name, turn
	}
	return at
}

// commitAtRow is what the row is kept locked for after the COMMIT has come.
func commitAtRow(s Shop) float64 {
	if s.KeepsRow {
		return s.CommitMS
	}
	return 0
}

// batchOf is how many one batch sells to: all of the process who wait for the product, since
// those who are answered at once ask again at once.
func batchOf(p Path, s Shop) float64 {
	return min(float64(p.Batch), max(1, float64(s.Buyers)/float64(s.Products*s.Processes)))
}

// splitVotes is how much longer a turn is for each further process that asks the same nodes
// at once: nobody has most of the votes, and all pause and ask again.
const splitVotes = 0.25

// turnOf is the time from one turn at a product to the next, over all processes.
func turnOf(p Path, c Costs, m Machine, s Shop, crowd float64) (name string, ms float64) {
	further := float64(p.TurnSQL)*s.RTTMS + float64(p.TurnLock)*s.LockRTTMS + float64(p.TurnCommits)*(s.CommitMS-m.CommitMS)
	if writers := writers(s); p.Keeps == All { // the next turn is at another node, which applies the last one's write first
		further += s.CommitMS * float64(writers-1) / float64(writers)
	}
	switch {
	case p.Batch > 0:
		// Half of the time of a batch of all buyers is the batch's, and half is theirs.
		of := batchOf(p, s)
		return "the batch", (c.TurnMS*(float64(m.Buyers)+of)/2 + further) / of
	case p.Keeps == Process:
		return "the turn in a process", (c.TurnMS*crowd + further) / float64(s.Processes)
	case p.Nodes == AllAtOnce: // the processes split the nodes' votes
		return "the lock: votes are split", c.TurnMS*(1+splitVotes*float64(s.Processes-1)) + further
	}
	return "the lock", c.TurnMS*crowd + further
}

// applies is what a node uses to do again what another one has done, to 1 for the sale itself.
const applies = 0.8

// apart is how much more a write costs where most come from other nodes: those share no group
// commit with the node's own, and are put in order among them.
func apart(s Shop) float64 { return 1 + 0.6*(1-1/float64(writers(s))) }

// lockNodes are those of a lock that asks all, as the private ones are: engine.RedlockNodes.
const lockNodes = 5

// processors are those of the database, the shops and the lock's servers. won is the share
// of the writes that is not done in vain.
func processors(p Path, c Costs, m Machine, s Shop, won float64) []station {
	cpu := spread(p, c, s)
	cpu.Database, cpu.Shop = cpu.Database/won, cpu.Shop/won
	if s.OneMachine {
		cpu.Database *= (1 + applies*float64(s.Nodes-1)) * apart(s)
		cpu.Buyers = s.BuyersCPU
		crowd := 1 + m.Crowding*float64(s.Processes-1)
		return []station{{name: "the processors", demand: cpu.Total() * crowd, servers: s.DatabaseCores * m.Usable}}
	}
	locks := s.LockCores
	if p.Nodes == AllAtOnce || p.Nodes == AllInTurn {
		locks *= lockNodes
	}
	// The busiest node does its share of the sales, and all of the others'.
	share := 1 / float64(writers(s))
	cpu.Database *= (share + applies*(1-share)) * apart(s)
	return []station{
		{name: "the database's processors", demand: cpu.Database, servers: s.DatabaseCores * m.Usable},
		{name: "the shops' processors", demand: cpu.Shop, servers: s.ShopCores * m.Usable * float64(s.Processes)},
		{name: "the lock server's processor", demand: cpu.Locks, servers: locks},
	}
}

// spread is the processor time of a sale with so many buyers to a product.
func spread(p Path, c Costs, s Shop) CPU {
	share := woken(p, s) // of what differs between one product alone and a hundred
	if p.Batch > 0 {
		share = 1 - 1/batchOf(p, s)
	}
	between := func(spread, alone float64) float64 { return spread + share*(alone-spread) }
	return CPU{
		Database: between(c.Spread.Database, c.Alone.Database), Shop: between(c.Spread.Shop, c.Alone.Shop),
		Locks: between(c.Spread.Locks, c.Alone.Locks), Buyers: c.Spread.Buyers,
	}
}

// woken is how much of the way from a hundred products to one it is to this shop's: who waits,
// for a row, a lock, or the network, is put to sleep and woken, which takes processor time that
// a full load does not. The square root, and the half with a network, are no law: they go
// through what was measured. A leader that writes for all has work of its own while nobody buys,
// which is counted to the few sales of one product: the network wakes no more of it.
func woken(p Path, s Shop) float64 {
	of := func(products int) float64 { return 1 / math.Sqrt(float64(products)) }
	share := max(0, (of(s.Products)-of(SpreadProducts))/(of(AloneProducts)-of(SpreadProducts)))
	if s.RTTMS > 0 && p.Nodes != OneLeader {
		share = max(share, 0.5)
	}
	return share
}

// outside is what a sale takes beside its turn and the processors: the rest of its round trips.
func outside(p Path, m Machine, s Shop) float64 {
	sql, locks := p.SQL-p.RowSQL, p.Lock
	commits := 1
	if p.Keeps != Nobody {
		sql, locks, commits = p.SQL-p.TurnSQL, p.Lock-p.TurnLock, 0
	}
	if s.KeepsRow {
		commits = 0
	}
	trips := float64(max(sql, 0))
	if p.Rounds > 0 { // of those under way one wins; the others' are beside the turn, too
		trips = float64(p.SQL)*rounds(p, s) - float64(p.TurnSQL)*rounds(p, s)/float64(p.Rounds)
	}
	return trips*s.RTTMS + float64(max(locks, 0))*s.LockRTTMS + float64(commits)*(s.CommitMS-m.CommitMS)
}

// String is for people.
func (e Estimate) String() string {
	return fmt.Sprintf("%.0f a second, %s at %.0f %%", e.PerSecond, e.First, 100*e.Use)
}
