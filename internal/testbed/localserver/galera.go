package localserver

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sync/errgroup"
)

// galeraNodes is the size of the smallest cluster that can lose a node and continue.
const galeraNodes = 3

// Galera is a running cluster of three mariadbd with an empty database "shop". Each node accepts
// writes. The methods of Database apply to the first node.
type Galera struct {
	*GaleraNode
	nodes []*GaleraNode
}

// StartGalera starts three mariadbd with Galera. It returns ErrMissing if a program or the library is
// not installed.
//
// A commit is on the disk of its node when it returns (innodb_flush_log_at_trx_commit=1, MariaDB's
// default). With 0 or 2, nodes that are killed together lose commits (Jepsen, MariaDB Galera Cluster
// 12.1.2, 2026). The time-outs are Galera's defaults: a node that is silent for 5 s is suspected, and
// until then no commit succeeds (evs.suspect_timeout).
//
// One mariadbd creates the files. Each node starts with a copy of them, and with a file which says that all
// nodes were in one cluster (gvwstate.dat, pc.recovery). So no node must join and transfer the state, and the
// start takes 3 s instead of 10.
func StartGalera(g *Group) (*Galera, error) {
	install, err := galeraPrograms()
	if err != nil {
		return nil, err
	}
	if install.user, err = notRoot("mysql", "nobody"); err != nil {
		return nil, fmt.Errorf("mariadbd: %w", err)
	}
	install.group, install.password, install.cluster = g, rand.Text(), "shop-"+rand.Text()
	nodes, err := onFreePort(g, func(int) ([]*GaleraNode, error) { return install.nodes() })
	if err != nil {
		return nil, err
	}
	return &Galera{nodes[0], nodes}, nil
}

// URL returns the value for --db, with all nodes.
func (c *Galera) URL() string {
	var hosts []string
	for _, n := range c.nodes {
		hosts = append(hosts, n.Addr)
	}
	return "mysql://shop:" + c.password + "@" + strings.Join(hosts, ",") + "/shop"
}

// Nodes returns the nodes, in the order of the URL.
func (c *Galera) Nodes() []*GaleraNode { return c.nodes }

// Bootstrap restarts the cluster after all its nodes were killed. It starts the most advanced node first, and the
// others join it (MariaDB documentation, "Getting Started with MariaDB Galera Cluster", Restarting the Cluster).
func (c *Galera) Bootstrap() error {
	first, most := 0, position{seqno: -1}
	for i, n := range c.nodes {
		at, err := n.recovered()
		if err == nil {
			err = n.forgetView()
		}
		if err != nil {
			return err
		}
		if at.seqno > most.seqno {
			first, most = i, at
		}
	}
	if err := c.nodes[first].bootstrap(most); err != nil {
		return err
	}
	var joins errgroup.Group
	for i, n := range c.nodes {
		if i != first {
			joins.Go(n.Start)
		}
	}
	return joins.Wait()
}

type galeraInstall struct {
	server, installer, provider string
	user                        *account
	group                       *Group
	password                    string
	cluster                     string // name of the cluster; nodes with another name cannot join
}

const getGalera = "apt-get install mariadb-server galera-4 rsync"

func galeraPrograms() (i galeraInstall, err error) {
	if i.server, err = findProgram(getGalera, "mariadbd"); err != nil {
		return i, err
	}
	if i.installer, err = findProgram(getGalera, "mariadb-install-db"); err != nil {
		return i, err
	}
	for _, name := range []string{"wsrep_sst_rsync", "rsync"} {
		if _, err := findProgram(getGalera, name); err != nil {
			return i, err
		}
	}
	for _, file := range []string{
		"/usr/lib/galera/libgalera_smm.so", "/usr/lib64/galera-4/libgalera_smm.so", "/usr/lib64/galera/libgalera_smm.so", "/usr/lib/libgalera_smm.so",
	} {
		if _, err := os.Stat(file); err == nil {
			i.provider = file
			return i, nil
		}
	}
	return i, fmt.Errorf("libgalera_smm.so: %w; get it with: %s", ErrMissing, getGalera)
}

func (i galeraInstall) nodes() ([]*GaleraNode, error) {
	var nodes []*GaleraNode
	var peers []string
	for range galeraNodes {
		n, err := i.node()
		if err != nil {
			return nil, err
		}
		nodes, peers = append(nodes, n), append(peers, n.peers)
	}
	for _, n := range nodes {
		n.command = i.command(n, "gcomm://"+strings.Join(peers, ","))
	}
	if err := i.initialize(nodes[0]); err != nil {
		return nil, err
	}
	if err := remember(nodes); err != nil {
		return nil, err
	}
	var starts errgroup.Group
	for _, n := range nodes {
		starts.Go(func() error { return n.Server.Start() })
	}
	if err := starts.Wait(); err != nil {
		for _, n := range nodes { // end the other nodes, since the caller may try again on other ports
			if n.Process != nil {
				err = errors.Join(err, n.Kill())
			}
		}
		return nil, err
	}
	return nodes, nil
}

// initialize creates the files of the first node. It starts and stops the node, so that the files
// contain the id and the user of the cluster.
func (i galeraInstall) initialize(first *GaleraNode) error {
	_, err := first.in.run(i.group, i.installer, "--no-defaults", "--datadir="+first.in.data(""), "--tmpdir="+first.in.file("tmp"),
		"--auth-root-authentication-method=normal", "--skip-test-db", redoLogSize)
	if err != nil {
		return err
	}
	if err := first.in.write("setup.sql", setupSQL(i.password)); err != nil {
		return err
	}
	setup := first.in.file("setup.sql")
	if err := first.startAs("--wsrep-new-cluster", "--init-file="+setup); err != nil {
		return err
	}
	return errors.Join(first.Stop(first.startTimeout), os.Remove(setup), os.Remove(first.in.data("galera.cache")))
}

// remember copies the first node's files to the others, and writes into each folder that all nodes were
// in one cluster (gcomm/src/view.cpp, ViewState).
func remember(nodes []*GaleraNode) error {
	ids := make([]string, len(nodes))
	members := ""
	for i := range nodes {
		ids[i] = fmt.Sprintf("%08x-0000-4000-8000-%012x", i+1, i+1)
		members += "member: " + ids[i] + " 0\n"
	}
	for i, n := range nodes {
		if i > 0 {
			if err := n.in.copyData(nodes[0].in); err != nil {
				return err
			}
		}
		view := "my_uuid: " + ids[i] + "\n#vwbeg\nview_id: 3 " + ids[0] + " 1\nbootstrap: 0\n" + members + "#vwend\n"
		if err := n.in.write("data/gvwstate.dat", view); err != nil {
			return err
		}
	}
	return nil
}
