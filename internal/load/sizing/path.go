package sizing

// A Path describes the commands of one sale, and for which of them the next buyer of the same
// product has to wait. It applies to a buyer without errors on MySQL or MariaDB. TestDescribed of
// internal/lockstrategy counts it.
type Path struct {
	SQL  int // statements to the database, one round trip each, including START TRANSACTION and COMMIT
	Lock int // round trips to the servers of the lock or the stock; parallel ones count once

	// RowSQL is the number of round trips during which the product's row is locked: from the answer
	// that grants the row to the arrival of COMMIT.
	RowSQL int

	// Rows is the maximum number of rows that a product's stock is divided into. 0: one row.
	Rows int

	// Keeps says which other buyers wait during the turn of this sale.
	Keeps Scope

	// A turn lasts until the next turn begins. These are zero if there are no turns. TurnSQL also
	// counts a round that can be lost, from its read to the arrival of its COMMIT.
	TurnSQL     int // round trips to the database
	TurnLock    int // round trips to the lock's servers
	TurnCommits int // commands counted in TurnSQL that wait for the disk

	// Rounds is the number of rounds on one product that a process runs at once, if only one of
	// them can win. 0: rounds are never lost.
	Rounds int

	// Batch is the maximum number of buyers of one turn; SQL, RowSQL and the turn then apply to a
	// batch. 0: one buyer.
	Batch int

	// Nodes says how the lock's servers share the work.
	Nodes Sharing
}

// A Scope is the set of buyers that wait during one turn.
type Scope int

// The scopes.
const (
	Nobody  Scope = iota // only buyers at the row
	Process              // the buyers of the product at the same shop process
	All                  // the buyers of the product everywhere
)

// A Sharing says how the servers of a lock share the work.
type Sharing int

// The kinds of sharing.
const (
	NoServers Sharing = iota // the lock has no servers
	ByKey                    // each product's key lies on one of them: Redis
	AllAtOnce                // a lock asks all nodes at the same moment: Redlock
	AllInTurn                // a lock asks one node after the other: RedissonMultiLock
	OneLeader                // every write goes through one leader: ZooKeeper, etcd
	InSession                // the lock belongs to a session of the database: GET_LOCK
)
