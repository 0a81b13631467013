package localserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// A GaleraNode is one mariadbd of a cluster. Only Status is safe for concurrent use.
type GaleraNode struct {
	Server
	password string
	peers    string // address for the other nodes, host:port
	ist, sst string // addresses for receiving missed transactions, and the full state
}

// node returns a node with a folder and ports, not started.
func (i galeraInstall) node() (*GaleraNode, error) {
	in, err := i.group.newFolder("galera", i.user)
	if err != nil {
		return nil, fmt.Errorf("mariadbd: %w", err)
	}
	var ports [4]int
	for p := range ports {
		if ports[p], err = i.group.port(); err != nil {
			return nil, err
		}
	}
	n := &GaleraNode{Server: newServer(i.group, "mariadbd", in, ports[0]), password: i.password}
	n.childrenOwnSessions, n.probe = true, n.ping
	n.peers, n.ist, n.sst = loopback(ports[1]), loopback(ports[2]), loopback(ports[3])
	return n, in.mkdir("tmp")
}

// command returns the command line of a node, with the mandatory options of Galera (MariaDB
// documentation, "Configuring MariaDB Galera Cluster", Mandatory Options).
func (i galeraInstall) command(n *GaleraNode, peers string) []string {
	_, sqlPort, _ := strings.Cut(n.Addr, ":")
	return []string{
		i.server, "--no-defaults", "--datadir=" + n.in.data(""), "--tmpdir=" + n.in.file("tmp"), "--port=" + sqlPort, "--bind-address=127.0.0.1",
		"--socket=" + n.in.file("sock"), "--pid-file=" + n.in.file("pid"), "--skip-name-resolve", "--max-connections=500", "--character-set-server=utf8mb4",
		redoLogSize, "--innodb-buffer-pool-size=64M", "--innodb-flush-log-at-trx-commit=1",
		"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--default-storage-engine=InnoDB",
		"--wsrep-on=ON", "--wsrep-provider=" + i.provider, "--wsrep-cluster-name=" + i.cluster, "--wsrep-cluster-address=" + peers,
		"--wsrep-node-name=" + filepath.Base(n.in.path), "--wsrep-node-address=127.0.0.1",
		"--wsrep-sst-method=rsync", "--wsrep-sst-receive-address=" + n.sst,
		"--wsrep-provider-options=gmcast.listen_addr=tcp://" + n.peers + ";ist.recv_addr=" + n.ist + ";gcache.size=32M",
	}
}

// Start restarts the node after a kill, with the data in its folder. The node receives only the missed
// transactions if another node still has them (Galera calls this IST).
func (n *GaleraNode) Start() error {
	at, err := n.recovered()
	if err == nil {
		err = n.forgetView()
	}
	switch {
	case err != nil:
		return err
	case at.seqno < 0: // the node has no data and requests the full state
		return n.startAs()
	}
	return n.startAs("--wsrep-start-position=" + at.String())
}

// bootstrap starts a new cluster with the most advanced node. After a kill, the node itself does not
// know that it is the most advanced one (galera/src/saved_state.cpp, safe_to_bootstrap).
func (n *GaleraNode) bootstrap(at position) error {
	state, err := os.ReadFile(n.in.data("grastate.dat"))
	if err != nil {
		return err
	}
	safe := strings.Replace(string(state), "safe_to_bootstrap: 0", "safe_to_bootstrap: 1", 1)
	if err := n.in.write("data/grastate.dat", safe); err != nil {
		return err
	}
	return n.startAs("--wsrep-new-cluster", "--wsrep-start-position="+at.String())
}

// forgetView removes the node's record of the other nodes. With this record, the node would wait for all of them.
func (n *GaleraNode) forgetView() error {
	if err := os.Remove(n.in.data("gvwstate.dat")); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (n *GaleraNode) startAs(more ...string) error {
	always := n.command
	n.command = append(slices.Clip(always), more...)
	defer func() { n.command = always }()
	return n.Server.Start()
}

// Empty removes the data of a killed node.
func (n *GaleraNode) Empty() error {
	return errors.Join(os.RemoveAll(n.in.data("")), n.in.mkdir("data"))
}

// A position is the last transaction that a node has seen.
type position struct {
	cluster string
	seqno   int64 // -1: nothing
}

func (p position) String() string { return fmt.Sprintf("%s:%d", p.cluster, p.seqno) }

var recoveredPosition = regexp.MustCompile(`Recovered position: ([0-9a-f-]{36}):(-?\d+)`)

// recovered reads the position of a stopped node from its files.
func (n *GaleraNode) recovered() (position, error) {
	if _, err := os.Stat(n.in.data("ibdata1")); errors.Is(err, os.ErrNotExist) {
		return position{seqno: -1}, nil
	}
	said, err := n.in.run(n.group, append(slices.Clip(n.command), "--wsrep-recover")...)
	found := recoveredPosition.FindAllStringSubmatch(said, -1)
	if found == nil {
		return position{}, fmt.Errorf("%s --wsrep-recover named no position: %w", n.name, err)
	}
	last := found[len(found)-1]
	seqno, err := strconv.ParseInt(last[2], 10, 64)
	return position{last[1], seqno}, err
}

// A GaleraStatus is the status that a node reports about itself and its cluster.
type GaleraStatus struct {
	Ready   bool   // whether the node accepts statements
	Size    int    // number of nodes that it sees, including itself
	State   string // "Synced", "Donor/Desynced", "Joined", "Initialized", ...
	Cluster string // "Primary", unless it is cut off
	Seqno   int64  // last applied commit
}

// Status asks the node for its status.
func (n *GaleraNode) Status(ctx context.Context) (s GaleraStatus, err error) {
	err = n.with(func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, `SHOW GLOBAL STATUS WHERE Variable_name IN
			('wsrep_ready', 'wsrep_cluster_size', 'wsrep_local_state_comment', 'wsrep_cluster_status', 'wsrep_last_committed')`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var name, value string
			if err := rows.Scan(&name, &value); err != nil {
				return err
			}
			switch name {
			case "wsrep_ready":
				s.Ready = value == "ON"
			case "wsrep_cluster_size":
				s.Size, _ = strconv.Atoi(value)
			case "wsrep_local_state_comment":
				s.State = value
			case "wsrep_cluster_status":
				s.Cluster = value
			case "wsrep_last_committed":
				s.Seqno, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		return rows.Err()
	})
	return s, err
}

// Isolate cuts the node off from the other nodes, or lets it join them again. Clients still reach it.
// It uses Galera's own switch gmcast.isolate, which closes all connections to other nodes.
func (n *GaleraNode) Isolate(ctx context.Context, cut bool) error {
	option := "gmcast.isolate=0"
	if cut {
		option = "gmcast.isolate=1"
	}
	return n.with(func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "SET GLOBAL wsrep_provider_options = '"+option+"'")
		return err
	})
}

// Lag stops the node from applying transactions until the caller calls `goOn`, as a backup does (FLUSH TABLES
// WITH READ LOCK). Clients of the node read its old state. A read that waits for the commits of other nodes
// blocks. `goOn` may be called several times.
func (n *GaleraNode) Lag(ctx context.Context) (goOn func() error, _ error) {
	db, err := sql.Open("mysql", "shop:"+n.password+"@tcp("+n.Addr+")/?timeout=1s")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // the lock belongs to its connection
	if _, err := db.ExecContext(ctx, "FLUSH TABLES WITH READ LOCK"); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db.Close, nil
}

// Refuses reports whether the node refuses a write, as a cut-off node must.
func (n *GaleraNode) Refuses(ctx context.Context) bool {
	var said *mysql.MySQLError
	err := n.with(func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "UPDATE shop.product SET version = version WHERE id = 0")
		return err
	})
	return errors.As(err, &said) && said.Number == 1047
}

func (n *GaleraNode) with(do func(db *sql.DB) error) error {
	db, err := sql.Open("mysql", "shop:"+n.password+"@tcp("+n.Addr+")/?timeout=1s&readTimeout=5s")
	if err != nil {
		return err
	}
	defer db.Close()
	return do(db)
}

// ping checks that the node accepts statements, which needs a working cluster.
func (n *GaleraNode) ping() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s, err := n.Status(ctx)
	if err == nil && (!s.Ready || s.State != "Synced") {
		err = fmt.Errorf("it is %s, of a cluster that is %s", s.State, s.Cluster)
	}
	return err
}
