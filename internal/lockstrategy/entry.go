package lockstrategy

import (
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
)

// An Entry is one strategy of the catalogue. `shop strategies`, the live page, `shop verify` and
// docs/reference/strategies.md show its contents.
type Entry struct {
	Name   string `json:"name"` // also the value in the URL, the name of the file, and the row of a table
	Family string `json:"family"`
	Texts

	Needs   []Need          `json:"needs"` // empty, not nil, if the strategy needs nothing
	Promise promise.Promise `json:"promise"`

	// NoPromise says why the catalogue promises no result under a condition, such as a fault, that affects
	// the strategy. A run under that condition may or may not show a break.
	NoPromise map[promise.Condition]string `json:"no_promise,omitempty"`

	// PromiseOn holds the promises that are different on some databases, by dialect and condition. "" means
	// no promise: a run there may or may not show a break.
	PromiseOn map[string]promise.Promise `json:"promise_on,omitempty"`

	// redis is the topology of Redis to which the promises apply, set by OnRedis; "" means a single server.
	redis string

	// Scripts describes the Lua scripts that the strategy and its libraries send. The explorer
	// refuses any other script.
	Scripts []redisscript.Description `json:"-"`

	// New builds the strategy. The caller must close the strategy if it is an io.Closer.
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

// A Need is a server that a strategy uses in addition to the database, or an ability that the database must
// have, such as SKIP LOCKED.
type Need string

// The needs, named as on the command line.
const (
	NeedsNamedLocks Need = dialect.NamedLocks // locks of the database server, by name
	NeedsSkipLocked Need = dialect.SkipLocked // SKIP LOCKED in the database
	NeedsRedis      Need = deps.Redis
	NeedsRedlock    Need = deps.Redlock // an odd number of independent Redis nodes

	NeedsZookeeper Need = deps.Zookeeper
	NeedsEtcd      Need = deps.Etcd
)

// Traits describe a strategy to the tools that test it, in addition to its promise. The zero value describes a
// strategy whose buyers wait for the row in the database.
type Traits struct {
	// Aliases are other values of the query parameter `lock` for this strategy. Y and N come from the
	// tutorial that this shop grew from; "" means no lock.
	Aliases []string

	// Leased: the lock expires by itself. The explorer, which searches interleavings of buyers, can then
	// make it expire.
	Leased bool

	// TimesVotes: the strategy measures with the clock Deps.Now how long it took to get the lock. It gives up a
	// lock that took longer than a lease lives. So the explorer advances Deps.Now when it makes leases expire.
	TimesVotes bool

	// Confirms: a lock counts as granted only once Settings.Replicas replicas have it.
	Confirms bool

	// WaitsFor is the thing that a buyer waits for.
	WaitsFor Turn

	// Lock is the promise of the lock itself, if WaitsFor is WaitLock.
	Lock LockPromise

	// WritesLater: a worker writes an admitted order to the database later, and its buyer cannot withdraw
	// it. A buyer that gives up gets the answer "unknown", and its order may still be sold. For the
	// explorer, such a buyer has several commands in flight.
	WritesLater bool

	// InGroups: one transaction sells to all buyers that wait, so a burst of buyers needs only a few
	// transactions.
	InGroups bool

	// MaxUnits and MaxBuyers are limits in the strategy's code: how many units it keeps in rows of their
	// own, and how many buyers one transaction serves. 0 means no limit. The conformance suite tests the
	// strategy beyond them.
	MaxUnits, MaxBuyers int

	// AdmitsFirst: a buyer takes units from a counter before its sale is certain, and returns them
	// if the sale fails. Until then the counter may be too low: receipts may show too few units left, and
	// ErrSoldOut may come too early. Another process may refuse a second request under an
	// Idempotency-Key while the first one is in progress.
	AdmitsFirst bool

	// LeftLags: the stock in a receipt does not subtract all sales in progress, so it may be too high but
	// never too low. ErrSoldOut is exact.
	LeftLags bool

	// KeyDecides: the commands of a buyer depend on its key or name. Two buyers that have not started then
	// differ in more than their names, so the explorer does not treat them as interchangeable.
	KeyDecides bool

	// Left reads, without a lock, how many units of a product can still be sold. Nil means that the column
	// product.amount has that number. Left must be one statement: the sum of several reads may be a number
	// that the stock never had.
	//
	// A strategy that admits buyers through a counter also leaves Left nil if the database decides each
	// sale. Units that only the counter shows cannot be sold.
	Left func(db *gorm.DB, product string) (units int64, _ error)

	// ExploredAs holds the verdicts of explorations that differ from the promise under the equivalent fault.
	ExploredAs promise.Promise

	// NotExplored says why `shop verify` leaves an exploration out, and how to run it.
	NotExplored map[promise.Condition]string

	// Witnesses are the searches for the witness pages. A page shows the shortest violation that its search
	// finds. Nil means that Entry.WitnessSearches derives the search from the promise.
	Witnesses []WitnessSearch

	// CaughtBy names the tests of the conformance suite that must fail for this strategy, each with a
	// regular expression for the failure's message. It is empty for a correct strategy.
	CaughtBy map[string]string
}

// A WitnessSearch is a search of `shop explore` that ends with a violation.
type WitnessSearch struct {
	Suffix string // follows the strategy's name in the page's file name, if the strategy has several pages
	Flags  string // flags that follow the strategy's name in the command
	Long   string // why only `make soak` runs the search; other tests replay its result; "" if the search is quick
}

// A Turn names the thing that a buyer waits for. It determines which lock events the buyer reports.
type Turn int

const (
	WaitRow    Turn = iota // the database's row; the buyer reports no event
	WaitWorker             // a goroutine that sells one order at a time; the buyer reports Waiting
	WaitLock               // a lock that the buyer then holds; the buyer reports Waiting, Acquired, Released
)

// Messages of the conformance suite about a broken strategy.
const (
	wantSoldTwice             = "verdict (oversold|drifted)"
	wantTwoHolders            = "drift 1"
	wantSoldTwiceOrTwoHolders = wantSoldTwice + "|2 holders at once" // for processes that each grant the lock
	wantLockedForEver         = "locked forever"
	wantFreedAnother          = "freed the second one's lock"
)
