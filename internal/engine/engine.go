// Package engine opens the servers of the shop: a SQL database, Redis, and if available ZooKeeper and
// etcd. There are three kinds of engines:
//
//	embedded  SQLite in a temporary file, and six Redis servers in this process: one, and
//	          five nodes for Redlock
//	local     the same Redis servers, mariadbd or mysqld, ZooKeeper and etcd, as private
//	          child processes
//	url       running servers
//
// It retries nothing and hides nothing: a strategy sees each error of a server. The package knows no
// strategy.
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

// Config says what to open. If DB is set, Name is ignored.
type Config struct {
	Name    string   // Embedded or Local
	LocalDB string   // database for Local, of localserver.DatabaseServers; "" for MariaDB or MySQL
	DB      string   // a URL, see databases
	Redis   string   // a URL, see redisKinds; "" for none
	Redlock []string // redis://[:password@]host:port[/db], each once; empty for none

	LocalRedis string   // Redis for Local, of localserver.RedisServers; "" for a single server
	Needs      []string // the lock servers to start, of LockServerNeeds; nil for all. Embedded starts only redis and redlock

	Zookeeper []string      // host:port of each server of one ensemble; empty for none
	Etcd      []string      // host:port or http(s)://host:port of one cluster; empty for none
	Lease     time.Duration // time by which a ZooKeeper session outlives its client; 0 means 10 s

	// Still stops the clock of an embedded Redis, so that no lease expires by itself. The caller ends
	// leases explicitly.
	Still bool

	// Process is the index of this process, from 0. With several hosts in DB, the process begins at the
	// host with the index Process modulo the number of hosts.
	Process int

	Wait  time.Duration // maximum wait of a buyer; a row lock wait in the database ends shortly after
	Conns int           // maximum number of database connections

	Detours Detours // addresses to connect to instead of announced addresses

	// WrapDB wraps the driver of the buyers' pool; may be nil.
	WrapDB func(driver.Connector) driver.Connector
}

// Flags returns the command-line flags that open the same engine, with a leading space; "" for the
// default. localDB and localRedis are the fields of Config.
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

// Restartable is a server that can be killed and restarted. Redis comes back empty, others with their
// data.
type Restartable interface {
	Address() string // host:port
	Kill() error
	Start() error // starts the server again
}

// A LockServer is a Redis server, a Redlock node, ZooKeeper or etcd.
type LockServer struct {
	Need string // the need of strategies that it meets
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

	URLs Config // configuration with which another process can open the same servers

	// Database is the name in the promises of the catalogue: the dialect, with the isolation level if
	// the promises differ by it.
	Database string

	// Server is the product and version that the database reports.
	Server string

	// Topology is the kind of Redis, as in the promises of the catalogue; "" without Redis.
	Topology string

	// Lacks contains the capabilities that the database lacks, with the reasons.
	Lacks map[string]string

	// Certifies means that a COMMIT is compared with those of other nodes. It may be refused (1213)
	// although its transaction waited for no lock.
	Certifies bool

	// Cluster contains the servers of the database if there are several; otherwise it is nil.
	Cluster *Cluster

	// LockServers contains the lock servers that this engine started.
	LockServers []LockServer

	// Killable is the database server that this engine started; nil if it started none or several.
	Killable Restartable

	// Disposable means that only this engine uses the database, which is deleted afterwards. Then its settings
	// for crash safety and its counters of ids may be changed.
	Disposable bool

	// Warnings contains one line for each setting that works but should be changed.
	Warnings []string

	dialect  func(*sql.DB) gorm.Dialector // dialector of the database
	stepwise driver.Connector             // see OpenWrapped

	// pingRedis asks Redis over a connection of its own, since the buyers may be using all of e.Redis. It is
	// nil without Redis.
	pingRedis func(context.Context) error

	whyMissing map[string]string // see WhyMissing
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

// connectTimeout limits the first answers of the servers. An address whose port accepts connections and stays
// silent is considered wrong.
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

// errReadOnly rejects a read-only server at the start and in the readiness check.
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

// inTime makes a question end with its context. Some clients ignore the end of a context: their call continues
// in the background until its own time-out.
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

// pingRedlock returns nil if a majority of the nodes answers. It waits for all nodes until ctx ends. Afterwards
// the caller may add a hook to a client, which must not happen during a ping.
func (e *Engine) pingRedlock(ctx context.Context) error {
	answers := make(chan error, len(e.Redlock))
	for _, node := range e.Redlock {
		ping := inTime(func(ctx context.Context) error {
			for { // asks again, since the client's own time-out is short
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
