package engine

import (
	"context"
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

// A Node is one server of a cluster, for those who read the books of each.
type Node struct {
	Addr string   // host:port
	DB   *gorm.DB // what is read there is all that was committed anywhere before
}

// cluster is the database's servers, where it is a Galera cluster of several.
type cluster struct {
	configs []*mysqldriver.Config

	mu    sync.Mutex
	nodes []Node
}

// causal makes a read wait until its node has applied what was committed anywhere before
// it came (MariaDB documentation, wsrep_sync_wait: 15 is every kind of statement).
const (
	causal   = "15"
	causally = "SET SESSION wsrep_sync_wait = " + causal
)

// Nodes are the servers of the database, each read by itself; nil where there is only one.
// One that is dead is among them, and its reads fail.
func (e *Engine) Nodes() ([]Node, error) {
	if e.cluster == nil {
		return nil, nil
	}
	c := e.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, config := range c.configs[len(c.nodes):] {
		config = config.Clone()
		config.Params["wsrep_sync_wait"] = causal
		connector, err := mysqldriver.NewConnector(config)
		if err != nil {
			return nil, err
		}
		db, err := e.pool(connector, 1)
		if err != nil {
			return nil, err
		}
		c.nodes = append(c.nodes, Node{config.Addr, db})
	}
	return c.nodes, nil
}

// NodeDBs are the databases of Nodes.
func (e *Engine) NodeDBs() (dbs []*gorm.DB, _ error) {
	nodes, err := e.Nodes()
	for _, n := range nodes {
		dbs = append(dbs, n.DB)
	}
	return dbs, err
}

// settleTimeout is how long the living nodes may take to apply what was committed.
const settleTimeout = 30 * time.Second

// Settle returns when what was committed before is seen at each node that lives. Nodes
// that are dead, or are not part of the cluster, are passed over: they are sent all they
// have missed before they take a statement. Where there is one server it returns at once.
func (e *Engine) Settle(ctx context.Context) error {
	nodes, err := e.Nodes()
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

func (n Node) settle(ctx context.Context) error {
	pool, err := n.DB.DB()
	if err != nil {
		return err
	}
	alive, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	if pool.PingContext(alive) != nil {
		return nil // dead
	}
	waiting, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	if _, err := pool.ExecContext(waiting, "SELECT 1"); sqlerror.KindOf(err) == sqlerror.Contended || waiting.Err() != nil { // its own patience, or this one's
		return fmt.Errorf("%s has not applied within %s what was committed", n.Addr, settleTimeout)
	}
	return nil
}

// askGalera notes in e what is different where the server is one of a cluster that
// certifies, and reports whether it is.
func askGalera(ctx context.Context, e *Engine, oneWriter bool) (certifies bool, _ error) {
	settings, err := e.settings(ctx, "wsrep_on", "innodb_flush_log_at_trx_commit", "group_replication_group_name")
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
	if oneWriter {
		e.Database = dialect.GaleraOneWriter
	}
	e.Lacks = dialect.Lacks(e.Database)
	var version struct{ Value string }
	if err := e.Admin.WithContext(ctx).Raw("SHOW STATUS LIKE 'wsrep_provider_version'").Scan(&version).Error; err != nil {
		return false, fmt.Errorf("the database does not answer: %w", err)
	}
	version.Value, _, _ = strings.Cut(version.Value, "(") // 26.4.23(r1a2b3c4)
	e.Server += ", Galera " + version.Value + ", " + dialect.LevelNamed(e.Database).Writers
	if at := settings["innodb_flush_log_at_trx_commit"]; at != "1" {
		e.Warnings = append(e.Warnings, "--db: innodb_flush_log_at_trx_commit is "+at+": nodes that are all lost at once take sales with them that buyers were told of; set it to 1")
	}
	e.Certifies = true
	return true, nil
}

// askReads notes in e where an unlocked read may show something else than what is
// committed. Sessions begin at the server's default isolation, unless the URL says otherwise.
func askReads(ctx context.Context, e *Engine) error {
	var level struct{ Value string }
	const named = "SHOW SESSION VARIABLES WHERE Variable_name IN ('transaction_isolation', 'tx_isolation')" // the latter until MariaDB 11.1
	if err := e.Admin.WithContext(ctx).Raw(named).Scan(&level).Error; err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	if level.Value == "READ-UNCOMMITTED" {
		e.lack(dialect.CurrentReads, "its sessions begin at READ UNCOMMITTED, where a read may show what is rolled back later")
	}
	members, err := e.settings(ctx, "group_replication_group_name", "group_replication_consistency")
	if err != nil {
		return err
	}
	// MySQL 8.0 Reference Manual, 20.5.3, "Transaction Consistency Guarantees".
	if members["group_replication_group_name"] != "" && !strings.HasPrefix(members["group_replication_consistency"], "BEFORE") {
		e.lack(dialect.CurrentReads, "a member of a replication group may be behind what another one has committed (group_replication_consistency is not BEFORE)")
	}
	return nil
}

// lack notes what the database cannot do.
func (e *Engine) lack(capability, why string) {
	if e.Lacks == nil {
		e.Lacks = map[string]string{}
	}
	e.Lacks[capability] = why
}

// causalAdmin has a restock see all the records that it is to clear.
func (e *Engine) causalAdmin(configs []*mysqldriver.Config) error {
	before, err := e.Admin.DB()
	if err != nil {
		return err
	}
	all := newNodes(configs, 0)
	all.session = causally
	e.Admin, err = e.pool(all, adminConns)
	return errors.Join(err, before.Close())
}

// settings are variables of the server, by name; one that it does not have is missing.
func (e *Engine) settings(ctx context.Context, names ...string) (map[string]string, error) {
	var seen []struct {
		Name  string `gorm:"column:Variable_name"`
		Value string `gorm:"column:Value"`
	}
	if err := e.Admin.WithContext(ctx).Raw("SHOW GLOBAL VARIABLES WHERE Variable_name IN ?", names).Scan(&seen).Error; err != nil {
		return nil, fmt.Errorf("the database does not answer: %w", err)
	}
	settings := map[string]string{}
	for _, s := range seen {
		settings[s.Name] = s.Value
	}
	return settings, nil
}
