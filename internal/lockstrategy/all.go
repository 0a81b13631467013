package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/promise"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/verdict"
)

// A Need is a server that a strategy uses besides the database.
type Need string

// The needs, named as on the command line.
const (
	NeedsMySQL   Need = "mysql" // or MariaDB, as the database
	NeedsRedis   Need = "redis"
	NeedsRedlock Need = "redlock" // an odd number of independent Redis nodes

	NeedsZookeeper Need = "zookeeper"
	NeedsEtcd      Need = "etcd"
)

// An Entry is one strategy of the catalogue.
type Entry struct {
	Name       string          `json:"name"` // = URL name = file name = table row
	Family     string          `json:"family"`
	Summary    string          `json:"summary"`
	Guarantees string          `json:"guarantees"`
	BreaksWhen string          `json:"breaks_when"`
	Cost       string          `json:"cost"`
	Source     string          `json:"source"`
	Needs      []Need          `json:"needs"` // none is an empty list
	Promise    promise.Promise `json:"promise"`

	// NoPromise says why there is none under a fault that strikes the strategy: a
	// run may show a break or not.
	NoPromise map[promise.Condition]string `json:"no_promise,omitempty"`

	// PromiseSQLite is what differs on SQLite, fault by fault; "" where a run
	// there may show it or not.
	PromiseSQLite promise.Promise `json:"promise_sqlite,omitempty"`

	New func(Deps) purchase.Strategy `json:"-"`
}

// All returns the catalogue in display order.
func All() []Entry {
	const (
		oversold = verdict.Oversold
		leaked   = verdict.Leaked
		stalled  = verdict.Stalled
	)
	// always is a break that no fault is needed for; apart needs a second process.
	always, apart := promise.BreaksFrom(promise.Rush), promise.BreaksFrom(promise.TwoProcesses)
	// lease runs out under a holder that does not know; watched is renewed while
	// its process runs. Both forget with their Redis.
	lease := promise.Promise{
		promise.Pause: oversold, promise.SlowSection: oversold, promise.RedisRestart: oversold, promise.RedisFailover: oversold, promise.ClockJump: oversold, promise.Partition: oversold,
	}
	watched := promise.Promise{promise.Pause: oversold, promise.RedisRestart: oversold, promise.RedisFailover: oversold, promise.ClockJump: oversold}
	return []Entry{
		{
			Name: "none", Family: "no control",
			Summary:    "read, compute, write",
			Guarantees: "nothing",
			BreaksWhen: "two buyers at once",
			Cost:       "a read and one transaction, no waiting",
			Source:     "Berenson et al., A Critique of ANSI SQL Isolation Levels, SIGMOD 1995, 4.1 (P4, lost update)",
			Needs:      []Need{},
			Promise:    holdsBut([]Need{}, always),
			New:        func(d Deps) purchase.Strategy { return NewNone(d) },
		},
		{
			Name: "transaction", Family: "no control",
			Summary:       "the same inside one default-isolation transaction",
			Guarantees:    "all or nothing; not that nobody else reads the same stock",
			BreaksWhen:    "two buyers at once (MySQL repeatable read, Postgres read committed)",
			Cost:          "as none",
			Source:        "Berenson et al., SIGMOD 1995, 4.2; MySQL 8.0 Reference Manual, 17.7.2.3",
			Needs:         []Need{},
			Promise:       holdsBut([]Need{}, always),
			PromiseSQLite: holdsBut([]Need{}, nil), // it refuses the second writer
			New:           func(d Deps) purchase.Strategy { return NewTransaction(d) },
		},
		{
			Name: "early-unlock", Family: "no control",
			Summary:       "a good lock, released before the commit",
			Guarantees:    "nothing, in spite of the lock",
			BreaksWhen:    "two buyers at once; the most repeated real bug",
			Cost:          "that of the lock",
			Source:        "spring-framework issue 23549; Redisson issue 2183",
			Needs:         []Need{},
			Promise:       holdsBut([]Need{}, always),
			PromiseSQLite: promise.Promise{promise.Rush: ""}, // its gap is some 50 us there: one rush in twenty gets by
			New:           func(d Deps) purchase.Strategy { return NewEarlyUnlock(d) },
		},
		{
			Name: "mutex", Family: "in-process",
			Summary:    "one mutex a product, in memory",
			Guarantees: "one buyer at a time within one process",
			BreaksWhen: "a second process",
			Cost:       "next to nothing",
			Source:     "The Go Memory Model, Locks",
			Needs:      []Need{},
			Promise:    holdsBut([]Need{}, apart),
			New:        func(d Deps) purchase.Strategy { return NewMutex(d) },
		},
		{
			Name: "queue", Family: "in-process",
			Summary:    "one goroutine a product sells in turn (conditional update)",
			Guarantees: "the statement holds; the queue spares the database the contention",
			BreaksWhen: "never; a crash loses only unacknowledged buyers",
			Cost:       "one sale at a time a product and process",
			Source:     "Thompson, Single Writer Principle, Mechanical Sympathy, 2011",
			Needs:      []Need{},
			Promise:    holdsBut([]Need{}, nil),
			New:        func(d Deps) purchase.Strategy { return NewQueue(d) },
		},
		{
			Name: "for-update", Family: "SQL",
			Summary:    "SELECT ... FOR UPDATE, update, insert, one transaction",
			Guarantees: "one buyer at a time on one primary; a crash frees the lock",
			BreaksWhen: "never (single primary)",
			Cost:       "buyers stand in line in the database, each on a connection",
			Source:     "MySQL 8.0 Reference Manual, 17.7.2.4, Locking Reads",
			Needs:      []Need{},
			Promise:    holdsBut([]Need{}, nil),
			New:        func(d Deps) purchase.Strategy { return NewForUpdate(d) },
		},
		{
			Name: "optimistic", Family: "SQL",
			Summary:    "UPDATE ... WHERE version = ?, bounded retry with jitter",
			Guarantees: "no write rests on a stock that has changed since",
			BreaksWhen: "never; busy under contention",
			Cost:       "a lost round for each write that came first",
			Source:     "Kung and Robinson, On Optimistic Methods for Concurrency Control, ACM TODS 6(2), 1981",
			Needs:      []Need{},
			Promise:    holdsBut([]Need{}, nil),
			New:        func(d Deps) purchase.Strategy { return NewOptimistic(d) },
		},
		{
			Name: "conditional", Family: "SQL",
			Summary:    "UPDATE ... SET amount = amount - ? WHERE amount >= ?",
			Guarantees: "check and write are one statement under the row's lock",
			BreaksWhen: "never (single primary)",
			Cost:       "the row is locked from the update to the commit",
			Source:     "MySQL 8.0 Reference Manual, 17.7.3, Locks Set by Different SQL Statements in InnoDB",
			Needs:      []Need{},
			Promise:    holdsBut([]Need{}, nil),
			New:        func(d Deps) purchase.Strategy { return NewConditional(d) },
		},
		{
			Name: "check-after", Family: "SQL",
			Summary:    "decrement first, roll back when below zero",
			Guarantees: "the decrement is one statement under the row's lock",
			BreaksWhen: "never (single primary)",
			Cost:       "as conditional; late buyers write and roll back",
			Source:     "MySQL 8.0 Reference Manual, 17.7.3, Locks Set by Different SQL Statements in InnoDB",
			Needs:      []Need{},
			Promise:    holdsBut([]Need{}, nil),
			New:        func(d Deps) purchase.Strategy { return NewCheckAfter(d) },
		},
		{
			Name: "serializable", Family: "SQL",
			Summary:    "naive code at SERIALIZABLE, retried on 1213 / 40001",
			Guarantees: "the sales are as if made one after the other",
			BreaksWhen: "never; busy under contention",
			Cost:       "deadlock victims: the most rounds lost of all",
			Source:     "MySQL 8.0 Reference Manual, 17.7.2.1 and 17.7.5.3",
			Needs:      []Need{},
			Promise:    holdsBut([]Need{}, nil),
			New:        func(d Deps) purchase.Strategy { return NewSerializable(d) },
		},
		{
			Name: "named-lock", Family: "SQL",
			Summary:    "MySQL GET_LOCK, the section on the lock's own connection",
			Guarantees: "one buyer at a time on one server; lock and writes share a session",
			BreaksWhen: "never (single server): lock and writes die together",
			Cost:       "a waiting buyer keeps a connection; two round trips",
			Source:     "MySQL 8.0 Reference Manual, 14.14, Locking Functions",
			Needs:      []Need{NeedsMySQL},
			Promise:    holdsBut([]Need{NeedsMySQL}, nil),
			New:        func(d Deps) purchase.Strategy { return NewNamedLock(d) },
		},
		{
			Name: "setnx", Family: "Redis, how it grew",
			Summary:    "SETNX, DEL; no TTL",
			Guarantees: "one buyer at a time, until somebody crashes",
			BreaksWhen: "holder crashes: locked for ever",
			Cost:       "two round trips to Redis",
			Source:     "Redis documentation, SETNX, Locking with SETNX",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, promise.Promise{promise.Crash: stalled, promise.Partition: stalled, promise.RedisRestart: oversold, promise.RedisFailover: oversold}), // a partition keeps the holder from its DEL
			New:        func(d Deps) purchase.Strategy { return NewSetNX(d) },
		},
		{
			Name: "setnx-expire", Family: "Redis, how it grew",
			Summary:    "SETNX then EXPIRE, two commands",
			Guarantees: "as setnx-ttl, while nobody crashes in between",
			BreaksWhen: "crash in between; section longer than the TTL",
			Cost:       "three round trips to Redis",
			Source:     "Redis documentation, SETNX, Handling deadlocks",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, lease),
			New:        func(d Deps) purchase.Strategy { return NewSetNXExpire(d) },
		},
		{
			Name: "getset", Family: "Redis, how it grew",
			Summary:    "expiry in the value by the client's clock, taken over with GETSET",
			Guarantees: "one buyer at a time, while the clients' clocks agree",
			BreaksWhen: "clocks differ; section longer than the TTL; anybody's DEL",
			Cost:       "two to four round trips to Redis",
			Source:     "Redis documentation, SETNX, Handling deadlocks",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, promise.Promise{promise.Pause: oversold, promise.SlowSection: oversold, promise.RedisRestart: oversold, promise.RedisFailover: oversold, promise.Partition: oversold}), // the lock server's clock has no say
			New:        func(d Deps) purchase.Strategy { return NewGetSet(d) },
		},
		{
			Name: "setnx-ttl", Family: "Redis, how it grew",
			Summary:    "SET NX PX, blind DEL",
			Guarantees: "one buyer at a time while every section ends within the TTL",
			BreaksWhen: "section longer than the TTL, and then it frees others' locks",
			Cost:       "two round trips to Redis",
			Source:     "Redis documentation, SET, Patterns",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, lease),
			New:        func(d Deps) purchase.Strategy { return NewSetNXTTL(d) },
		},
		{
			Name: "token-get-del", Family: "Redis, how it grew",
			Summary:    "token, compared by the client, then DEL",
			Guarantees: "as redis, and almost never frees the lock of another",
			BreaksWhen: "the lease expires between GET and DEL; as redis",
			Cost:       "three round trips to Redis",
			Source:     "Redis documentation, Distributed Locks with Redis, single instance",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, lease),
			New:        func(d Deps) purchase.Strategy { return NewTokenGetDel(d) },
		},
		{
			Name: "redis", Family: "Redis, how it grew",
			Summary:    "token + Lua release (bsm/redislock)",
			Guarantees: "one buyer at a time while the section ends within the TTL",
			BreaksWhen: "section or pause longer than the TTL; Redis forgets",
			Cost:       "two round trips to Redis; a crash blocks for the rest of the TTL",
			Source:     "Redis documentation, Distributed Locks with Redis, single instance",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, lease),
			New:        func(d Deps) purchase.Strategy { return NewRedis(d) },
		},
		{
			Name: "watchdog", Family: "Redis, how it grew",
			Summary:    "redis renewed every TTL/3",
			Guarantees: "one buyer at a time, however long the section, while its holder can renew",
			BreaksWhen: "pause longer than the TTL; Redis forgets",
			Cost:       "as redis, and a goroutine a holder",
			Source:     "Redisson documentation, Lock, lockWatchdogTimeout",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, watched),
			New:        func(d Deps) purchase.Strategy { return NewWatchdog(d) },
		},
		{
			Name: "redisson", Family: "Redis, how it grew",
			Summary:    "Redisson's lock: reentrant hash, watchdog, pub/sub wake-up",
			Guarantees: "as watchdog; first come, first served within a process",
			BreaksWhen: "as watchdog",
			Cost:       "one to two round trips to Redis, and a connection that listens",
			Source:     "Redisson documentation, Lock; org.redisson.RedissonLock",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, watched),
			New:        func(d Deps) purchase.Strategy { return NewRedisson(d) },
		},
		{
			Name: "multilock", Family: "Redis, how it grew",
			Summary:    "redisson on all nodes",
			Guarantees: "as redisson, and it outlives the restart of all nodes but one",
			BreaksWhen: "pause longer than the TTL; any node down: busy",
			Cost:       "the nodes one after the other, twice a buy",
			Source:     "Redisson documentation, MultiLock; org.redisson.RedissonMultiLock",
			Needs:      []Need{NeedsRedlock},
			Promise:    holdsBut([]Need{NeedsRedlock}, promise.Promise{promise.Pause: oversold, promise.NodesDown: stalled}),
			New:        func(d Deps) purchase.Strategy { return NewMultilock(d) },
		},
		{
			Name: "redlock", Family: "Redis, how it grew",
			Summary:    "majority of N independent nodes (go-redsync)",
			Guarantees: "as redis, and it outlives the loss of a minority of the nodes",
			BreaksWhen: "pause longer than the TTL; a node in the majority forgets; a clock jump",
			Cost:       "two round trips to all nodes; split votes are tried again",
			Source:     "Redis documentation, Distributed Locks with Redis, The Redlock Algorithm; Kleppmann 2016; antirez 2016",
			Needs:      []Need{NeedsRedlock},
			Promise:    holdsBut([]Need{NeedsRedlock}, promise.Promise{promise.Pause: oversold, promise.NodeRestart: oversold, promise.ClockJump: oversold}),
			New:        func(d Deps) purchase.Strategy { return NewRedlock(d) },
		},
		{
			Name: "fenced", Family: "Redis, how it grew",
			Summary:    "redisson + a token from the same script, UPDATE ... WHERE fence < ?",
			Guarantees: "no write of a holder that was overtaken",
			BreaksWhen: "never; the late holder gets lock_lost",
			Cost:       "as redisson, and one more update",
			Source:     "Kleppmann, How to do distributed locking, 2016, Making the lock safe with fencing; org.redisson.RedissonFencedLock",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, nil),
			New:        func(d Deps) purchase.Strategy { return NewFenced(d) },
		},
		{
			Name: "redis-decr", Family: "Redis stock",
			Summary:    "DECR admits, then insert + unconditional update; INCR on refusal",
			Guarantees: "no more buyers are admitted than the counter had, while Redis remembers",
			BreaksWhen: "crash after DECR leaks, and so does a COMMIT cut off; Redis forgets: oversold",
			Cost:       "one round trip to Redis for who comes too late",
			Source:     "Redis documentation, INCR, Pattern: Counter; flash sale tutorials",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, promise.Promise{promise.Crash: leaked, promise.RedisRestart: oversold, promise.RedisFailover: oversold, promise.DBKill: leaked}), // what a COMMIT of unknown fate took is not put back
			New:        func(d Deps) purchase.Strategy { return NewRedisDecr(d) },
		},
		{
			Name: "redis-lua", Family: "Redis stock",
			Summary:    "Lua check-and-decrement + stream entry in one script; a worker writes to SQL in batches, idempotent by entry id, the database has the last word",
			Guarantees: "the database sells only what it has, each order once; sold is said when the record is durable",
			BreaksWhen: "never; Redis forgets: unknown",
			Cost:       "two round trips to Redis and six statements a batch",
			Source:     "Alibaba Cloud, Tair documentation, Build a business system that can handle flash sales; Kleppmann, Designing Data-Intensive Applications, 2017, chapter 11",
			Needs:      []Need{NeedsRedis},
			Promise:    holdsBut([]Need{NeedsRedis}, nil),
			New:        func(d Deps) purchase.Strategy { return NewRedisLua(d) },
		},
		{
			Name: "zookeeper", Family: "coordination",
			Summary:    "ephemeral sequential node (go-zookeeper/zk)",
			Guarantees: "one buyer at a time while the session lives, first come, first served",
			BreaksWhen: "pause longer than the session",
			Cost:       "two writes to ZooKeeper's log a buy; all leases of a process share its session",
			Source:     "ZooKeeper Recipes and Solutions, Locks; Hunt et al., USENIX ATC 2010, 2.4",
			Needs:      []Need{NeedsZookeeper},
			Promise:    holdsBut([]Need{NeedsZookeeper}, promise.Promise{promise.Pause: oversold}),
			New:        func(d Deps) purchase.Strategy { return NewZookeeper(d) },
		},
		{
			Name: "etcd", Family: "coordination",
			Summary:    "lease + concurrency.Mutex",
			Guarantees: "one buyer at a time while its lease lives, first come, first served",
			BreaksWhen: "pause longer than the lease",
			Cost:       "three writes to etcd's log a buy: lease, key, and their end",
			Source:     "etcd documentation, v3.6, Lock; go.etcd.io/etcd/client/v3/concurrency",
			Needs:      []Need{NeedsEtcd},
			Promise:    holdsBut([]Need{NeedsEtcd}, promise.Promise{promise.Pause: oversold, promise.Partition: ""}),
			NoPromise:  map[promise.Condition]string{promise.Partition: "oversold in 43 of 43 plays, and yet by a race: cut off before its first keep-alive is answered, which it sends within half a second, the client takes any lease for one of five seconds; cut off later, it looks once a second whether the lease has run out, and may do so before etcd, which looks twice"},
			New:        func(d Deps) purchase.Strategy { return NewEtcd(d) },
		},
		{
			Name: "etcd-fenced", Family: "coordination",
			Summary:    "the same, write guarded by the key's create revision as fencing token",
			Guarantees: "no write of a holder that was overtaken",
			BreaksWhen: "never; the late holder gets lock_lost",
			Cost:       "as etcd, and one more update",
			Source:     "Kleppmann, How to do distributed locking, 2016, Making the lock safe with fencing",
			Needs:      []Need{NeedsEtcd},
			Promise:    holdsBut([]Need{NeedsEtcd}, nil),
			New:        func(d Deps) purchase.Strategy { return NewEtcdFenced(d) },
		},
	}
}

// Resolve turns what stands in ?lock= into a strategy's name: Y is redis, N
// and nothing are none, as in the tutorial that this shop grew from. Any
// other text is returned as it is, known or not.
func Resolve(lock string) string {
	switch lock {
	case "Y":
		return "redis"
	case "N", "":
		return "none"
	}
	return lock
}

// Names returns the names of the catalogue in display order.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	return names
}

// ByName finds an entry.
func ByName(name string) (Entry, bool) {
	all := All()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}

// Missing says which server the entry needs and d has not, or "".
func (e Entry) Missing(d Deps) string {
	for _, need := range e.Needs {
		switch {
		case need == NeedsMySQL && d.DB.Name() != "mysql":
			return "the database is not MySQL or MariaDB; use --engine local, or set --db or SHOP_DB_URL"
		case need == NeedsRedis && d.Redis == nil:
			return "no Redis is configured; set --redis or SHOP_REDIS_URL"
		case need == NeedsRedlock && len(d.Redlock) == 0:
			return "no Redlock nodes are configured; set --redlock or SHOP_REDLOCK_URLS"
		case need == NeedsZookeeper && d.Zookeeper == nil:
			return d.absent("zookeeper", "no ZooKeeper is configured; use --engine local, or with --db set --zookeeper or SHOP_ZOOKEEPER_HOSTS")
		case need == NeedsEtcd && d.Etcd == nil:
			return d.absent("etcd", "no etcd is configured; use --engine local, or with --db set --etcd or SHOP_ETCD_HOSTS")
		}
	}
	return ""
}

// absent is why a server could not be started, or else what to configure.
func (d Deps) absent(server, configure string) string {
	if d.Absent != nil {
		if why := d.Absent(server); why != "" {
			return why
		}
	}
	return configure
}

// AllMissing says of each strategy that d lacks a server for why it cannot run.
func AllMissing(d Deps) map[string]string {
	missing := map[string]string{}
	for _, e := range All() {
		if why := e.Missing(d); why != "" {
			missing[e.Name] = why
		}
	}
	return missing
}

// Build constructs the strategies whose servers d has, by name, and says of
// the others why not. A strategy that is an io.Closer must be closed.
func Build(d Deps) (built map[string]purchase.Strategy, missing map[string]string) {
	built, missing = map[string]purchase.Strategy{}, AllMissing(d)
	for _, e := range All() {
		if missing[e.Name] == "" {
			built[e.Name] = e.New(d)
		}
	}
	return built, missing
}
