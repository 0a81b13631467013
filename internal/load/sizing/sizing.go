// Package sizing predicts a strategy's sales per second and its bottleneck, from the commands of a
// sale (Path) and measured constants (Costs).
//
//	Path, Costs, Shop -> stations -> mean value analysis -> sales per second, use of each station
//
// docs/design/sizing.md explains the laws. Each is a line or two of a station:
//
//   - A row, or a lock, sells one unit per turn. A row's turn lasts from the statement that locks it
//     to COMMIT, or until COMMIT is on the disk. A lock's turn is hand-over, section and COMMIT.
//     (Utilization law: Denning and Buzen 1978.)
//   - A product that is divided into rows sells at each of them.
//   - A lock in memory has one turn at a time in each process.
//   - A batch sells to all waiting buyers of a process at once.
//   - Of several rounds on one product, one wins, and the others waste processor time. (Gunther,
//     "Guerrilla Capacity Planning", 2007, chapter 4.)
//   - Every node of a replicated database does every write, and writers conflict at a row. (Gray,
//     Helland, O'Neil, Shasha, "The Dangers of Replication and a Solution", SIGMOD 1996.)
//   - Many products are as many rows, until processors or connections are full. (Asymptotic bounds.)
//
// The package knows no strategy and no server. Times are in milliseconds. It predicts the average of
// a steady load. It predicts no longest wait and no failures.
package sizing

import (
	"fmt"
	"math"
)

// A Shop describes the shop of a prediction.
type Shop struct {
	Setting
	RTTMS     float64 `json:"rtt_ms"`      // network round trip between a shop and the database, beyond loopback
	LockRTTMS float64 `json:"lock_rtt_ms"` // network round trip to Redis, ZooKeeper or etcd
	CommitMS  float64 `json:"commit_ms"`   // time of COMMIT without its round trip: the disk, and the answer of other nodes

	// KeepsRow means that the database keeps the row locked until COMMIT ends, as PostgreSQL, Galera
	// and MySQL with a binary log do. InnoDB without one unlocks it earlier.
	KeepsRow bool `json:"row_until_disk"`

	Conns         int     `json:"db_conns"`      // database connections of one process
	DatabaseCores float64 `json:"cores"`         // processors of one node
	ShopCores     float64 `json:"shop_cores"`    // processors of one process
	LockCores     float64 `json:"lock_cores"`    // processors of each lock server; Redis uses one
	OneMachine    bool    `json:"one_machine"`   // all programs, buyers included, share DatabaseCores
	BuyersCPU     float64 `json:"buyers_cpu_ms"` // per sale, with OneMachine
}

// Costs has the measured constants of a strategy with one process.
type Costs struct {
	TurnMS float64 `json:"turn_ms"` // from one sale of a product to the next, while buyers wait
	Alone  CPU     `json:"alone"`   // per sale of one product
	Spread CPU     `json:"spread"`  // per sale of one of a hundred products
}

// A Machine has the measured constants that do not depend on the strategy.
type Machine struct {
	Cores       float64 `json:"cores"`        // processors, shared by all programs
	Buyers      int     `json:"buyers"`       // number of buyers in the measurement
	StatementMS float64 `json:"statement_ms"` // a round trip to the database within a turn
	WakeMS      float64 `json:"wake_ms"`      // from a COMMIT until the next buyer has the row
	CommitMS    float64 `json:"commit_ms"`    // COMMIT of a single client, without its round trip
	Usable      float64 `json:"usable"`       // share of the processors that a full load can use
	Crowding    float64 `json:"crowding"`     // additional share of processor time for each further process on the same cores
	Slower      float64 `json:"slower"`       // additional share of a row's turn for each further process
	SlowerLock  float64 `json:"slower_lock"`  // the same for a lock that processes poll or listen to
	BuyersCPU   float64 `json:"buyers_cpu"`   // processor time of the buyers, ms per sale
}

// An Estimate is a prediction.
type Estimate struct {
	PerSecond float64 `json:"per_second"`             // sales
	First     string  `json:"gives_way"`              // the bottleneck, as text
	Use       float64 `json:"use"`                    // use of the bottleneck, 0 to 1
	ShelfMax  float64 `json:"one_product_per_second"` // maximum of a single product without other limits
	CoresMax  float64 `json:"processors_per_second"`  // maximum of the processors without other limits
	Conflicts float64 `json:"conflicts"`              // share of writes that lose against another writer, 0 to 1
}

// Predict returns the sales per second and the bottleneck of a strategy in a shop.
func Predict(p Path, c Costs, m Machine, s Shop) Estimate {
	shelf := shelfOf(p, c, m, s)
	buyers, pool := s.Buyers, s.Conns*s.Processes
	one := s
	one.Products = 1
	alone := shelfOf(p, c, m, one)
	e := Estimate{ShelfMax: 1000 * alone.servers / alone.demand}
	var stations []station
	var use []float64
	for range 2 { // the second pass uses the conflicts of the first
		stations = append([]station{shelf}, processors(p, c, m, s, 1-e.Conflicts)...)
		if p.Keeps == Nobody {
			buyers = min(s.Buyers, pool) // a buyer that waits for a row holds a connection
		} else { // a buyer that waits for a lock holds a connection only for its statements
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

// tenths rounds to one decimal, which is more precise than any prediction.
func tenths(x float64) float64 { return math.Round(10*x) / 10 }

// conflicts returns the share of writes that lose against another writer. Of the writers that are at
// a row at once on different nodes, the first to be certified wins. A lock that excludes all other
// buyers prevents conflicts.
func conflicts(p Path, s Shop, rowUse float64) float64 {
	writers := writers(s)
	if p.Keeps == All || p.Rounds > 0 || writers < 2 { // lost rounds are counted elsewhere
		return 0
	}
	return rowUse * float64(writers-1) / float64(writers)
}

// writers returns the number of nodes that processes write to. A process writes to one node.
func writers(s Shop) int { return max(1, min(s.Writers, s.Processes)) }

// activeRounds bounds the number of rounds that run at once on one product. Losers pause longer
// after each loss, so the model assumes no more.
const activeRounds = 5

// rounds returns the number of rounds that run at once on one product.
func rounds(p Path, s Shop) float64 {
	return min(activeRounds, float64(p.Rounds*s.Processes), 1+float64(s.Buyers-1)/float64(s.Products))
}

// shelfOf returns the station at which the sales of one product wait for each other.
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
	if p.Keeps != Nobody || p.Rows > 0 { // the measured turn covers more than one row
		row = m.WakeMS + float64(p.RowSQL)*m.StatementMS
	}
	at.name, at.demand = "the row", row*crowd+float64(p.RowSQL)*s.RTTMS+commitAtRow(s)
	if p.Keeps == Nobody {
		return at
	}
	if p.Nodes == InSession {
		crowd = 1 // the database queues the buyers itself, so processes do not slow each other down
	}
	name, turn := turnOf(p, c, m, s, crowd)
	if turn > at.demand || p.Batch > 0 { // the batch includes the row
		at.name, at.demand = name, turn
	}
	return at
}

// commitAtRow returns how long the row stays locked after COMMIT has arrived.
func commitAtRow(s Shop) float64 {
	if s.KeepsRow {
		return s.CommitMS
	}
	return 0
}

// batchOf returns the size of a batch: all buyers of a process that wait for the product. Buyers of
// one batch are answered together and ask again together.
func batchOf(p Path, s Shop) float64 {
	return min(float64(p.Batch), max(1, float64(s.Buyers)/float64(s.Products*s.Processes)))
}

// splitVotes is the additional share of a turn for each further process that asks the same nodes. If
// no process has a majority of the votes, all of them pause and ask again.
const splitVotes = 0.25

// turnOf returns the time from one turn of a product to the next, over all processes.
func turnOf(p Path, c Costs, m Machine, s Shop, crowd float64) (name string, ms float64) {
	further := float64(p.TurnSQL)*s.RTTMS + float64(p.TurnLock)*s.LockRTTMS + float64(p.TurnCommits)*(s.CommitMS-m.CommitMS)
	if writers := writers(s); p.Keeps == All { // the next turn may be at another node, which must apply the last write first
		further += s.CommitMS * float64(writers-1) / float64(writers)
	}
	switch {
	case p.Batch > 0:
		// Half of the measured time is constant, and half grows with the size of the batch.
		of := batchOf(p, s)
		return "the batch", (c.TurnMS*(float64(m.Buyers)+of)/2 + further) / of
	case p.Keeps == Process:
		return "the turn in a process", (c.TurnMS*crowd + further) / float64(s.Processes)
	case p.Nodes == AllAtOnce: // the processes split the nodes' votes
		return "the lock: votes are split", c.TurnMS*(1+splitVotes*float64(s.Processes-1)) + further
	}
	return "the lock", c.TurnMS*crowd + further
}

// applies is the cost of applying a sale of another node, relative to the sale itself.
const applies = 0.8

// apart returns the factor by which a write costs more if other nodes also write. Writes of other
// nodes share no group commit with the node's own writes, and must be ordered among them.
func apart(s Shop) float64 { return 1 + 0.6*(1-1/float64(writers(s))) }

// lockNodes is the number of nodes of a lock that asks all of them. See engine.RedlockNodes.
const lockNodes = 5

// processors returns the stations of the processors of the database, the shops and the lock's
// servers. won is the share of writes that succeed.
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
	// The busiest node does its share of the sales, and applies all others.
	share := 1 / float64(writers(s))
	cpu.Database *= (share + applies*(1-share)) * apart(s)
	return []station{
		{name: "the database's processors", demand: cpu.Database, servers: s.DatabaseCores * m.Usable},
		{name: "the shops' processors", demand: cpu.Shop, servers: s.ShopCores * m.Usable * float64(s.Processes)},
		{name: "the lock server's processor", demand: cpu.Locks, servers: locks},
	}
}

// spread returns the processor time of a sale.
func spread(p Path, c Costs, s Shop) CPU {
	share := woken(p, s) // 0: as with a hundred products; 1: as with one product
	if p.Batch > 0 {
		share = 1 - 1/batchOf(p, s)
	}
	between := func(spread, alone float64) float64 { return spread + share*(alone-spread) }
	return CPU{
		Database: between(c.Spread.Database, c.Alone.Database), Shop: between(c.Spread.Shop, c.Alone.Shop),
		Locks: between(c.Spread.Locks, c.Alone.Locks), Buyers: c.Spread.Buyers,
	}
}

// woken returns where the shop is between a hundred products (0) and one product (1). A buyer that
// waits for a row, a lock or the network is put to sleep and woken, which costs processor time. A
// full load does not have this cost. The square root, and the half with a network, are not laws:
// they fit the measurements. A single leader also works while it is idle. That work is already in
// the sales of one product, so a network does not add to it.
func woken(p Path, s Shop) float64 {
	of := func(products int) float64 { return 1 / math.Sqrt(float64(products)) }
	share := max(0, (of(s.Products)-of(SpreadProducts))/(of(AloneProducts)-of(SpreadProducts)))
	if s.RTTMS > 0 && p.Nodes != OneLeader {
		share = max(share, 0.5)
	}
	return share
}

// outside returns the time of a sale outside its turn and the processors: its other round trips.
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
	if p.Rounds > 0 { // one of these rounds wins; the others are outside the turn
		trips = float64(p.SQL)*rounds(p, s) - float64(p.TurnSQL)*rounds(p, s)/float64(p.Rounds)
	}
	return trips*s.RTTMS + float64(max(locks, 0))*s.LockRTTMS + float64(commits)*(s.CommitMS-m.CommitMS)
}

// String describes the estimate.
func (e Estimate) String() string {
	return fmt.Sprintf("%.0f a second, %s at %.0f %%", e.PerSecond, e.First, 100*e.Use)
}
