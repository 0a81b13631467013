// Package engine opens the servers of the shop: a SQL database, Redis, and if available ZooKeeper and
// etcd. There are three kinds of engines:
//
//	embedded  SQLite in a temporary file, and six Redis servers in this process: one, and
//	          five nodes for Redlock
//	local     the same Redis servers, mariadbd or mysqld, ZooKeeper and etcd, as private
//	          child processes
//	url       running servers
//
// The package retries nothing and hides nothing: a strategy sees each error of a server. The package does not
// know the strategies.
package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
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

// RedlockNodes is the number of independent Redis nodes that embedded and local start.
const RedlockNodes = 5

// Config selects the servers to open. If DB is set, Name has no effect.
type Config struct {
	Name    string   // Embedded or Local
	LocalDB string   // database for Local, a name in localserver.DatabaseServers; "" for MariaDB or MySQL
	DB      string   // URL of the database
	Redis   string   // URL of Redis; "" for none
	Redlock []string // redis://[:password@]host:port[/db], each once; empty for none

	LocalRedis string   // Redis for Local, a name in localserver.RedisServers; "" for a single server
	Needs      []string // the lock servers to start, names in LockServerNeeds; nil for all. Embedded starts only redis and redlock

	Zookeeper []string      // host:port of each server of one ensemble; empty for none
	Etcd      []string      // host:port or http(s)://host:port of one cluster; empty for none
	Lease     time.Duration // time by which a ZooKeeper session outlives its client; 0 means 10 s

	// Still stops the clock of an embedded Redis, so that no lease expires by itself. The caller decides when
	// a lease ends.
	Still bool

	// Process is the index of this process among those of the shop, from 0. If DB names several hosts, the
	// process first tries the host with the index Process modulo the number of hosts.
	Process int

	Wait  time.Duration // maximum wait of a buyer; the database ends a wait for a row lock shortly after it
	Conns int           // maximum number of database connections

	Detours Detours // addresses of proxies to connect to instead of the addresses that servers announce

	// WrapDB wraps the driver of the buyers' pool; may be nil.
	WrapDB func(driver.Connector) driver.Connector
}

// Flags returns the command-line flags that open the same engine, with a leading space, or "" for the default.
// `localDB` and `localRedis` are the fields of Config.
func Flags(name, localDB, localRedis string) string {
	if name == URL {
		return " --db URL" // the real URL may contain a password
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

// Restartable is a server that can be killed and restarted. Redis comes back empty, others with their data.
type Restartable interface {
	Address() string // host:port
	Kill() error
	Start() error // starts the server again
}

// A LockServer is a Redis server, a Redlock node, ZooKeeper or etcd.
type LockServer struct {
	Need string // the kind of lock server that strategies need, such as "redis"
	Restartable
}

// An Engine contains the open connections and servers. Close ends everything that Open started.
type Engine struct {
	Name    string
	DB      *gorm.DB                // the buyers' pool
	Admin   *gorm.DB                // the same database, for restocks, migrations and readiness
	Causal  *gorm.DB                // like DB, but its reads include all commits of other cluster nodes
	Redis   redis.UniversalClient   // nil when not configured
	Redlock []redis.UniversalClient // empty when not configured

	Zookeeper *zookeeper.Session // nil when not configured
	Etcd      *clientv3.Client   // nil when not configured

	URLs Config // the configuration with which another process opens the same servers

	// Database is the name of the database in the catalogue: the dialect, with the isolation level if the
	// strategies' promises depend on it.
	Database string

	// Server is the product and version that the database reports.
	Server string

	// Topology is the kind of Redis, such as a single server or a cluster; "" without Redis.
	Topology string

	// Lacks contains the capabilities, such as named locks, that the database lacks, with the reasons.
	Lacks map[string]string

	// Certifies means that the nodes of a cluster check a COMMIT for conflicts with each other's commits. They
	// may refuse it (error 1213) although its transaction waited for no lock.
	Certifies bool

	// Cluster contains the servers of the database if it is a cluster; otherwise it is nil.
	Cluster *Cluster

	// LockServers contains the lock servers that this engine started.
	LockServers []LockServer

	// Killable is the database server that this engine started; nil if it started none or several.
	Killable Restartable

	// Disposable means that only this engine uses the database, which is deleted afterwards. Then tests may
	// change its settings for crash safety and its counters of ids.
	Disposable bool

	// Warnings contains one line for each setting that works but should be changed.
	Warnings []string

	dialect  func(*sql.DB) gorm.Dialector // dialector of the database
	stepwise driver.Connector             // connector without waits, for OpenWrapped

	// pingRedis asks Redis over a connection of its own, since the buyers may be using all of e.Redis. It is
	// nil without Redis.
	pingRedis func(context.Context) error

	whyMissing map[string]string // why a server was not started, by its name
	closers    []func() error    // called in reverse order
}

// Open opens the engine and migrates its schema. If it fails, it closes everything that it opened.
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

// connectTimeout limits the wait for the first answers of the servers. If a port accepts connections but stays
// silent, the address is considered wrong.
const connectTimeout = 15 * time.Second

// reach connects to the servers and asks each one once.
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

// errReadOnly is the error for a read-only server, at the start and in the readiness check.
var errReadOnly = errors.New("the server is read-only, a replica or set so (transaction_read_only is on); use the primary")

// Close closes the connections and ends everything that Open started, in reverse order.
func (e *Engine) Close() error {
	var errs []error
	for _, closer := range slices.Backward(e.closers) {
		errs = append(errs, closer())
	}
	e.closers = nil
	return errors.Join(errs...)
}

func (e *Engine) onClose(f func() error) { e.closers = append(e.closers, f) }

// Check asks the named servers, or all of them, in parallel, whether they work. It waits for their answers
// until ctx ends, and returns the errors by server. A majority of the Redlock nodes is enough.
func (e *Engine) Check(ctx context.Context, servers ...string) map[string]error {
	questions := map[string]func(context.Context) error{"database": inTime(e.pingDatabase)}
	if e.Redis != nil {
		questions["redis"] = inTime(e.pingRedis)
	}
	if len(e.Redlock) > 0 {
		questions["redlock"] = e.pingRedlock
	}
	if e.Zookeeper != nil {
		questions["zookeeper"] = inTime(e.Zookeeper.Ping)
	}
	if e.Etcd != nil {
		questions["etcd"] = inTime(e.pingEtcd)
	}
	var (
		mu   sync.Mutex
		all  sync.WaitGroup
		down = map[string]error{}
	)
	for server, question := range questions {
		if len(servers) > 0 && !slices.Contains(servers, server) {
			continue
		}
		all.Go(func() {
			if err := question(ctx); err != nil {
				mu.Lock()
				defer mu.Unlock()
				down[server] = err
			}
		})
	}
	all.Wait()
	return down
}

// inTime makes a question to a server end with its context. Some clients ignore the end of a context: their
// call continues in the background until its own time-out.
func inTime(question func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		answer := make(chan error, 1)
		go func() { answer <- question(ctx) }()
		select {
		case err := <-answer:
			if err == nil || ctx.Err() == nil {
				return err
			}
		case <-ctx.Done():
		}
		return errors.New("it did not answer in time")
	}
}

// pingRedlock returns nil if a majority of the nodes answers. It waits for all nodes until ctx ends, even
// after a majority has answered. So no ping is under way when the caller then adds a hook to a client.
func (e *Engine) pingRedlock(ctx context.Context) error {
	answers := make(chan error, len(e.Redlock))
	for _, node := range e.Redlock {
		ping := inTime(func(ctx context.Context) error {
			for { // repeats the ping until ctx ends, since the client's own time-out is short
				err := node.Ping(ctx).Err()
				if network := net.Error(nil); !errors.As(err, &network) || !network.Timeout() || ctx.Err() != nil {
					return err
				}
			}
		})
		go func() { answers <- ping(ctx) }()
	}
	var missing []error
	for range e.Redlock {
		if err := <-answers; err != nil {
			missing = append(missing, err)
		}
	}
	if len(missing) > (len(e.Redlock)-1)/2 {
		return fmt.Errorf("%d of %d nodes: %w", len(missing), len(e.Redlock), errors.Join(missing...))
	}
	return nil
}
