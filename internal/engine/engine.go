// Package engine opens what the shop stands on, a SQL database, Redis, and
// where there are any ZooKeeper and etcd, in one of three ways:
//
//	embedded  SQLite in a temporary file and Redis in this process (1 + 5)
//	local     a private mariadbd or mysqld, redis-server (1 + 5), ZooKeeper and
//	          etcd as child processes
//	url       servers that run already
//
// It retries nothing and hides nothing: an error of a server reaches the
// strategy that asked. It does not know any strategy.
package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/zookeeper"
	"github.com/oversell/oversell/internal/nearest"
)

// Engine names.
const (
	Embedded = "embedded"
	Local    = "local"
	URL      = "url"
)

// RedlockNodes is how many independent nodes embedded and local start.
const RedlockNodes = 5

// Config says what to open. With DB set, Name is not looked at.
type Config struct {
	Name    string   // Embedded or Local
	LocalDB string   // with Local: one of localserver.DatabaseServers; "" for MariaDB or MySQL
	DB      string   // a URL, see databases
	Redis   string   // a URL, see redisKinds; "" for none
	Redlock []string // redis://[:password@]host:port[/db], each once; empty for none

	LocalRedis string   // with Local: one of localserver.RedisServers; "" for a single one
	Needs      []string // with Local: the lock servers to start, of LockServerNeeds; nil for all

	Zookeeper []string      // host:port, of one ensemble; empty for none
	Etcd      []string      // host:port or http(s)://host:port, of one cluster; empty for none
	Lease     time.Duration // how long a session with ZooKeeper outlives its client; 0 is 10 s

	// Still: with Embedded, time does not pass in its Redis, and no lease there runs out by
	// itself. It is for who ends leases by hand, and takes as long over it as he likes.
	Still bool

	// Process is the number of this process, from 0: with several hosts in DB it begins at
	// host Process modulo their number.
	Process int

	Wait  time.Duration // how long a buyer waits; the database gives up a row lock just after
	Conns int           // connections to the database, at most

	Detours Detours // where to connect instead

	// WrapDB goes around the driver of the buyers' pool; nil for none.
	WrapDB func(driver.Connector) driver.Connector
}

// Flags are what a command takes, after a space, to open an engine of this name as it was
// opened; "" for the default. localDB and localRedis are those of Config.
func Flags(name, localDB, localRedis string) string {
	if name == URL {
		return " --db URL" // which may have a password
	}
	if name != Local {
		return ""
	}
	flags := " --engine local"
	if localDB != "" {
		flags += " --local-db " + localDB
	}
	if localRedis != "" {
		flags += " --local-redis " + localRedis
	}
	return flags
}

// Restartable is a server that can be killed and comes back: a Redis empty, others with
// their data.
type Restartable interface {
	Address() string // host:port
	Kill() error
	Start() error // again
}

// A LockServer is Redis (one server, or one of several), a Redlock node, ZooKeeper or etcd.
type LockServer struct {
	Need string // which of the needs of the catalogue it is
	Restartable
}

// An Engine is what is open. Close ends what Open started.
type Engine struct {
	Name    string
	DB      *gorm.DB                // the buyers' pool
	Admin   *gorm.DB                // the same database, for restocks, migrations and readiness
	Causal  *gorm.DB                // the buyers' pool, or where that may be behind other nodes of a cluster one that is not
	Redis   redis.UniversalClient   // nil when not configured
	Redlock []redis.UniversalClient // empty when not configured

	Zookeeper *zookeeper.Session // nil when not configured
	Etcd      *clientv3.Client   // nil when not configured

	URLs Config // by which another process opens the same servers

	// Database is the word in the promises of the catalogue: its dialect, and the
	// isolation level where the promises differ by it.
	Database string

	// Server is the database's product and version, as it says itself.
	Server string

	// Topology is how Redis is built, as the promises of the catalogue name it; "" without Redis.
	Topology string

	// Lacks says what the database cannot do, and why, by capability.
	Lacks map[string]string

	// Certifies: a COMMIT is compared with those of other nodes, and may be refused in
	// favour of one of them (1213) though its transaction waited for nobody.
	Certifies bool

	// Cluster is the database where it is several servers; nil where it is one.
	Cluster *Cluster

	// LockServers are those that this engine has started; empty where they run already.
	LockServers []LockServer

	// Killable is the database's server, which this engine has started; nil where it has not,
	// or where there are several.
	Killable Restartable

	// Disposable: the database is thrown away afterwards and nobody else uses it; what its server
	// promises across a crash, and how its ids count, may be changed.
	Disposable bool

	// Warnings are what works and is better otherwise, a line each.
	Warnings []string

	dialect  func(*sql.DB) gorm.Dialector // the database's
	stepwise driver.Connector             // see OpenWrapped

	pingRedis func(context.Context) error // nil without Redis

	absent  map[string]string // see Absent
	closers []func() error    // run last first
}

// Open opens the engine and brings its schema up to date. What it has opened
// is closed again when it fails.
func Open(ctx context.Context, c Config) (*Engine, error) {
	e := &Engine{Name: c.Name, URLs: c}
	var err error
	switch {
	case c.DB != "":
		e.Name = URL
	case c.Redis != "" || len(c.Redlock) > 0 || len(c.Zookeeper) > 0 || len(c.Etcd) > 0:
		err = errors.New("--redis, --redlock, --zookeeper and --etcd (or their environment variables) require --db (SHOP_DB_URL); add it, or choose an --engine")
	case c.Name == Embedded:
		err = startEmbedded(e)
	case c.Name == Local:
		err = startLocal(e)
	default:
		err = nearest.Unknown("engine", c.Name, []string{Embedded, Local}, "")
	}
	if err == nil {
		err = reach(ctx, e)
	}
	if err == nil {
		err = e.Migrate(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

// connectTimeout is how long the servers may take to answer at all: a port that accepts
// connections and says nothing is a wrong address.
const connectTimeout = 15 * time.Second

// reach connects, and asks each server once.
func reach(ctx context.Context, e *Engine) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	if err := connect(ctx, e); err != nil {
		return err
	}
	if e.Causal == nil {
		e.Causal = e.DB
	}
	return ping(ctx, e)
}

// pingDatabase asks for a sign of life, and for one of a server that can be sold from.
func (e *Engine) pingDatabase(ctx context.Context) error {
	question := dialect.Of(e.Admin).TakesWrites
	if question == "" {
		return e.Admin.WithContext(ctx).Exec("SELECT 1").Error
	}
	var takesWrites bool
	if err := e.Admin.WithContext(ctx).Raw(question).Scan(&takesWrites).Error; err != nil {
		return err
	}
	if !takesWrites {
		return errReadOnly
	}
	return nil
}

// errReadOnly is what a server is refused with, at the start and by the readiness check.
var errReadOnly = errors.New("the server is read-only, a replica or set so (transaction_read_only is on); give the primary")

// Close closes the connections and ends what Open started, last first.
func (e *Engine) Close() error {
	var errs []error
	for _, closer := range slices.Backward(e.closers) {
		errs = append(errs, closer())
	}
	e.closers = nil
	return errors.Join(errs...)
}

func (e *Engine) onClose(f func() error) { e.closers = append(e.closers, f) }

// Check asks all servers at once whether they answer before ctx ends, and
// returns what is wrong by server. Of the Redlock nodes a majority is enough.
func (e *Engine) Check(ctx context.Context) map[string]error {
	type answer struct {
		server string
		err    error
	}
	answers := make(chan answer)
	asked := 0
	// The Redis clients do not listen to a context: the question is left alone
	// when it is over, and ends with their read time-out.
	ask := func(server string, ping func(ctx context.Context) error) {
		asked++
		go func() {
			done := make(chan error, 1)
			go func() { done <- ping(ctx) }()
			select {
			case err := <-done:
				answers <- answer{server, err}
			case <-ctx.Done():
				answers <- answer{server, errors.New("it did not answer in time")}
			}
		}()
	}
	ask("database", e.pingDatabase)
	if e.Redis != nil {
		ask("redis", e.pingRedis)
	}
	for _, node := range e.Redlock {
		ask("redlock", func(ctx context.Context) error { return node.Ping(ctx).Err() })
	}
	failed := map[string][]error{}
	for range asked {
		if a := <-answers; a.err != nil {
			failed[a.server] = append(failed[a.server], a.err)
		}
	}
	down := map[string]error{}
	for server, errs := range failed {
		down[server] = errors.Join(errs...)
	}
	if missing := len(failed["redlock"]); missing > 0 {
		down["redlock"] = fmt.Errorf("%d of %d nodes: %w", missing, len(e.Redlock), down["redlock"])
		if missing <= (len(e.Redlock)-1)/2 {
			delete(down, "redlock")
		}
	}
	checkCoordination(ctx, e, down)
	return down
}
