package engine

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	mysqldriver "github.com/go-sql-driver/mysql"
	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/engine/sqlerror"
)

// A Cluster contains the servers of a Galera cluster, so that each of them can be read separately. A nil
// Cluster is a database with one server.
type Cluster struct {
	configs []*mysqldriver.Config
	open    func(c driver.Connector, conns int) (*gorm.DB, error)

	mu    sync.Mutex
	nodes []node
}

// A node is one server of a cluster. Its reads include all commits that any node had made before the read.
type node struct {
	addr string // host:port
	db   *gorm.DB
}

// causal makes a read wait until its node has applied all earlier commits of other nodes (MariaDB
// documentation, wsrep_sync_wait: 15 covers every kind of statement).
const (
	causal   = "15"
	causally = "SET SESSION wsrep_sync_wait = " + causal
)

// connect opens the database of each server. It also opens dead servers; their reads fail.
func (c *Cluster) connect() ([]node, error) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, config := range c.configs[len(c.nodes):] {
		config = config.Clone()
		config.Params["wsrep_sync_wait"] = causal
		connector, err := mysqldriver.NewConnector(config)
		if err != nil {
			return nil, err
		}
		db, err := c.open(connector, 1)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, node{config.Addr, db})
	}
	return c.nodes, nil
}

// DBs returns the database of each server, or nil if there is only one.
func (c *Cluster) DBs() (dbs []*gorm.DB, _ error) {
	nodes, err := c.connect()
	for _, n := range nodes {
		dbs = append(dbs, n.db)
	}
	return dbs, err
}

// settleTimeout limits the time in which live nodes apply commits of other nodes.
const settleTimeout = 30 * time.Second

// Settle waits until each live node shows all earlier commits. It skips nodes that are dead or outside the cluster:
// these receive the missing commits before they accept a statement. With one server Settle returns at once.
func (c *Cluster) Settle(ctx context.Context) error {
	nodes, err := c.connect()
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	late := make([]error, len(nodes))
	for i, node := range nodes {
		all.Go(func() { late[i] = node.settle(ctx) })
	}
	all.Wait()
	return errors.Join(late...)
}

func (n node) settle(ctx context.Context) error {
	pool, err := n.db.DB()
	if err != nil {
		return err
	}
	alive, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	if pool.PingContext(alive) != nil {
		return nil // the node is dead
	}
	waiting, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if _, err := pool.ExecContext(waiting, "SELECT 1"); sqlerror.KindOf(err) == sqlerror.Contended || waiting.Err() != nil { // the connection's time limit or that of `waiting` has ended
		return fmt.Errorf("%s did not apply the committed data within %s", n.addr, settleTimeout)
	}
	return nil
}

// askGalera reports whether the server belongs to a Galera cluster. If so, it records in e how a cluster
// differs from one server.
func askGalera(ctx context.Context, e *Engine) (certifies bool, _ error) {
	settings, err := variables(ctx, e.Admin, "wsrep_on", "innodb_flush_log_at_trx_commit", "group_replication_group_name")
	if err != nil {
		return false, err
	}
	if settings["group_replication_group_name"] != "" {
		e.Lacks = map[string]string{dialect.NamedLocks: "GET_LOCK is one server's own, and the members of a replication group know nothing of each other's; use another strategy"}
	}
	if settings["wsrep_on"] != "ON" {
		return false, nil
	}
	e.Database = dialect.Galera
	e.Lacks = dialect.Lacks(e.Database)
	var version struct{ Value string }
	if err := e.Admin.WithContext(ctx).Raw("SHOW STATUS LIKE 'wsrep_provider_version'").Scan(&version).Error; err != nil {
		return false, fmt.Errorf("the database does not answer; check that it runs and that its URL is right: %w", err)
	}
	version.Value, _, _ = strings.Cut(version.Value, "(") // removes the part in brackets of a version such as 26.4.23(r1a2b3c4)
	e.Server += ", Galera " + version.Value
	if at := settings["innodb_flush_log_at_trx_commit"]; at != "1" {
		e.Warnings = append(e.Warnings, "--db: innodb_flush_log_at_trx_commit is "+at+": nodes that are all lost at once take sales with them that buyers were told of; set it to 1")
	}
	e.Certifies = true
	return true, nil
}

// askReads records in e.Lacks that reads without a lock may not return exactly the committed data. The
// isolation level of the sessions is the server's default unless the URL sets one.
func askReads(ctx context.Context, e *Engine) error {
	var level struct{ Value string }
	const named = "SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')" // MariaDB uses tx_isolation until 11.1
	if err := e.Admin.WithContext(ctx).Raw(named).Scan(&level).Error; err != nil {
		return fmt.Errorf("the database does not answer; check that it runs and that its URL is right: %w", err)
	}
	if e.Lacks == nil {
		e.Lacks = map[string]string{}
	}
	if level.Value == "READ-UNCOMMITTED" {
		e.Lacks[dialect.CurrentReads] = "its sessions begin at READ UNCOMMITTED, where a read may show what is rolled back later"
	}
	members, err := variables(ctx, e.Admin, "group_replication_group_name", "group_replication_consistency")
	if err != nil {
		return err
	}
	// Source: MySQL 8.0 Reference Manual, 20.5.3, "Transaction Consistency Guarantees".
	if members["group_replication_group_name"] != "" && !strings.HasPrefix(members["group_replication_consistency"], "BEFORE") {
		e.Lacks[dialect.CurrentReads] = "a member of a replication group may be behind what another one has committed (group_replication_consistency is not BEFORE)"
	}
	return nil
}

// causalAdmin makes the reads of e.Admin wait for the commits of all nodes. A restock must see all records to
// delete.
func causalAdmin(e *Engine, configs []*mysqldriver.Config) error {
	before, err := e.Admin.DB()
	if err != nil {
		return err
	}
	all := newNodes(configs, 0)
	all.session = causally
	e.Admin, err = e.pool(all, adminConns)
	return errors.Join(err, before.Close())
}

// variables returns the values of server variables by name. It leaves out variables that the server does not know.
func variables(ctx context.Context, db *gorm.DB, names ...string) (map[string]string, error) {
	var seen []struct {
		Name  string `gorm:"column:Variable_name"`
		Value string `gorm:"column:Value"`
	}
	if err := db.WithContext(ctx).Raw("SHOW GLOBAL VARIABLES WHERE Variable_name IN ?", names).Scan(&seen).Error; err != nil {
		return nil, fmt.Errorf("the database does not answer; check that it runs and that its URL is right: %w", err)
	}
	all := map[string]string{}
	for _, s := range seen {
		all[s.Name] = s.Value
	}
	return all, nil
}
