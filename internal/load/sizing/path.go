package sizing

// A Path is the way of one sale: what it sends, and what of that the next buyer of the
// same product has to wait for. It is that of a buyer who meets no error, on MySQL or
// MariaDB. TestDescribed of internal/lockstrategy counts it.
type Path struct {
	SQL  int // statements to the database, one round trip each, START TRANSACTION and COMMIT among them
	Lock int // round trips to the servers of the lock or the stock; to several nodes at once is one

	// RowSQL are the round trips for which the product's row is locked: from the answer
	// that it is this buyer's to the arrival of the COMMIT.
	RowSQL int

	// Rows is how many such rows a product's stock may be divided into, each of which sells
	// for itself; 0 where there is one.
	Rows int

	// Keeps is who else waits while this sale has its turn, beyond those who wait for the row.
	Keeps Scope

	// Of a turn, from its begin to that of the next, unless Keeps is Nobody; TurnSQL also of a
	// round that may be lost, from its read to the arrival of its COMMIT:
	TurnSQL     int // round trips to the database
	TurnLock    int // round trips to the lock's servers
	TurnCommits int // of TurnSQL those that wait for the disk

	// Rounds is how many rounds on one product a process has under way at once where all
	// but one of them are lost; 0 where none is.
	Rounds int

	// Batch is how many one turn sells to, at most; 0 where that is one. SQL, RowSQL and the
	// turn are then those of a batch.
	Batch int

	// Nodes is how the lock's servers share the work.
	Nodes Sharing
}

// A Scope is whom one turn keeps waiting.
type Scope int

// The scopes.
const (
	Nobody  Scope = iota // but at the row
	Process              // the buyers of the product at the same shop process
	All                  // the buyers of the product everywhere
)

// A Sharing is how the servers of a lock share it.
type Sharing int

// The ways.
const (
	NoServers Sharing = iota // the lock has none
	ByKey                    // each product's key lies on one of them: Redis
	AllAtOnce                // a lock asks all nodes at the same moment: Redlock
	AllInTurn                // a lock asks one node after the other: RedissonMultiLock
	OneLeader                // every write goes through one leader: ZooKeeper, etcd
	InSession                // of the database server: GET_LOCK
)
