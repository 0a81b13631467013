package lockstrategy

import (
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/load/sizing"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
)

// An Entry is one strategy of the catalogue. shop strategies, the live page, verify and
// docs/reference/strategies.md take from it what they show.
type Entry struct {
	Name   string `json:"name"` // = URL name = file name = table row
	Family string `json:"family"`
	Texts

	Needs   []Need          `json:"needs"` // none is an empty list
	Promise promise.Promise `json:"promise"`

	// NoPromise says why there is none under a condition that strikes the strategy:
	// a run may show a break or not.
	NoPromise map[promise.Condition]string `json:"no_promise,omitempty"`

	// PromiseOn is what differs on a database, by dialect and condition; "" where a
	// run there may show it or not.
	PromiseOn map[string]promise.Promise `json:"promise_on,omitempty"`

	// redis is the topology that the promises are asked for; "" for one server. See OnRedis.
	redis string

	// Scripts describes the Lua scripts that it sends, and those of the libraries that
	// it uses. The explorer refuses a script that is not here.
	Scripts []redisscript.Description `json:"-"`

	// New builds the strategy. A strategy that is an io.Closer must be closed.
	New func(Deps) purchase.Strategy `json:"-"`

	Traits `json:"-"`
}

// Families, in display order.
const (
	noControl    = "no control"
	inProcess    = "in-process"
	sqlOnly      = "SQL"
	redisLocks   = "Redis locks"
	redisStock   = "Redis stock"
	coordination = "coordination"
	throughput   = "throughput"
)

// A Need is a server that a strategy uses besides the database, or what the database
// itself must be able to do, see Deps.Lacks.
type Need string

// The needs, named as on the command line.
const (
	NeedsNamedLocks Need = dialect.NamedLocks // of the database server
	NeedsSkipLocked Need = dialect.SkipLocked // of the database server
	NeedsRedis      Need = deps.Redis
	NeedsRedlock    Need = deps.Redlock // an odd number of independent Redis nodes

	NeedsZookeeper Need = deps.Zookeeper
	NeedsEtcd      Need = deps.Etcd
)

// Traits are what the instruments must know of a strategy besides its promise. The
// zero value is that of a strategy whose buyers wait in the database for the row.
type Traits struct {
	// Aliases are further spellings in ?lock=. Y and N are those of the tutorial that
	// this shop grew from; "" is no lock at all.
	Aliases []string

	// Leased: what the buyer locks with runs out by itself. The explorer lets it.
	Leased bool

	// Confirms: under Settings.Replicas a grant counts when replicas have it.
	Confirms bool

	// WaitsFor is what a buyer stands in line for.
	WaitsFor Turn

	// InMemory: buyers of one process meet in its memory, in a lock, a line or a
	// subscription of the strategy's own. verify --race watches that memory.
	InMemory bool

	// Lock is what the lock promises by itself, where WaitsFor is ALock.
	Lock LockPromise

	// WritesLater: an admitted order cannot be taken back, and a worker writes it to
	// the database. A buyer who gives up is answered unknown, and may be sold to all
	// the same. To the explorer such a buyer has several commands under way.
	WritesLater bool

	// AdmitsFirst: a buyer takes units from a counter before the sale is sure, and
	// puts them back if it is not. What other buyers are answered meanwhile is the
	// counter's word: left may be too low, sold out may come too early, and a second
	// request under one Idempotency-Key may be refused by another process while the
	// first is under way.
	AdmitsFirst bool

	// LeftLags: what a receipt says is left may leave out sales that are under way at the
	// same moment: it is never less than there is. Sold out is exact.
	LeftLags bool

	// KeyDecides: what a buyer sends depends on its key or name, so two who have not begun
	// differ in more than their names. The explorer does not take them for alike.
	KeyDecides bool

	// Left reads what of a product can still be sold, without a lock, where product.amount
	// does not say so; nil where it does. See purchase.Left: one statement, or what it adds
	// up was never there at one moment.
	//
	// Of a strategy that admits buyers elsewhere product.amount says it, too, as long as the
	// database has the last word: what the counter has and the database has not is not there.
	Left func(db *gorm.DB, product string) (units int64, _ error)

	// ExploredAs is what an exploration comes to where that differs from the promise
	// that it follows from, see Entry.Explored.
	ExploredAs promise.Promise

	// NotExplored says why verify leaves an exploration out, and how to run it.
	NotExplored map[promise.Condition]string

	// Witnesses are the searches whose shortest violations docs/witnesses shows. Nil:
	// the one that the promise calls for, see Entry.WitnessSearches.
	Witnesses []Witness

	// Path is what a sale sends, and what of that keeps the next sale waiting: the input of
	// shop size. It is counted, see described.
	Path sizing.Path

	// Uncounted are the fields of Path that cannot be counted. The others are zero.
	Uncounted sizing.Path

	// CaughtBy says which tests of the conformance suite must catch the strategy, by
	// name, and what they then say, a regular expression. A sound strategy has none.
	CaughtBy map[string]string
}

// A Witness is a search of shop explore that ends at a violation.
type Witness struct {
	Suffix string // of the file docs/witnesses/NAME.md, after the strategy's name; for a second one
	Flags  string // of shop explore, after the strategy's name
	Long   string // why only make soak searches, and the other tests replay; "" where it is quick
}

// A Turn is what a buyer stands in line for, and so what lock events it reports.
type Turn int

const (
	TheRow  Turn = iota // in the database; no events
	AWorker             // that sells in turn: Waiting
	ALock               // that the buyer then holds: Waiting, Acquired, Released
)

// What the conformance suite says of a broken strategy.
const (
	soldTwice     = "verdict (oversold|drifted)"
	twoHolders    = "drift 1"
	soldOrTwoIn   = soldTwice + "|2 holders at once" // of processes that each grant the lock
	lockedForEver = "locked for ever"
	freedAnother  = "freed the second one's lock"
)
