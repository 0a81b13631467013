package localserver

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Times of a cluster. A node is failing if a majority of the primaries has not heard from it for a second
// (downAfter). Its replica is elected shortly after.
const (
	primaries   = 3
	slots       = 16384
	nodeTimeout = time.Second
)

type clusterRedis struct{ nodes []*Redis }

// startCluster starts the nodes and introduces them to each other. It divides the slots among the
// primaries, and gives each replica a primary.
//
// A replica can be elected even with old data (validity factor 0), and never moves to another primary (no
// migration). A primary accepts no writes for two seconds after its start (cluster.c, CLUSTER_WRITABLE_DELAY),
// so startCluster takes at least that long.
func startCluster(g *Group, env [][]string) (RedisService, error) {
	var (
		mu  sync.Mutex
		bus = map[string]int{} // bus ports by address
	)
	nodes, err := startRedisNodes(g, env, users, func(_, port int) ([]string, error) {
		second, err := g.port()
		mu.Lock()
		bus["127.0.0.1:"+strconv.Itoa(port)] = second
		mu.Unlock()
		return append(replicated(),
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(second), "--cluster-config-file", fmt.Sprintf("nodes-%d.conf", port),
			"--cluster-node-timeout", strconv.FormatInt(nodeTimeout.Milliseconds(), 10), "--cluster-announce-ip", "127.0.0.1",
			"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no"), err
	})
	if err != nil {
		return nil, err
	}
	c := &clusterRedis{nodes}
	if err := c.introduce(bus); err != nil {
		return nil, err
	}
	if err := c.follow(); err != nil {
		return nil, err
	}
	return c, await(nodes, "CLUSTER INFO", "cluster_state:ok", 20*time.Second)
}

// introduce makes each node meet all others, and assigns the slots.
func (c *clusterRedis) introduce(bus map[string]int) error {
	for i, node := range c.nodes {
		if _, err := node.do(fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1)); err != nil {
			return err
		}
		if i < primaries {
			if _, err := node.do(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/primaries, (i+1)*slots/primaries-1)); err != nil {
				return err
			}
		}
		for _, other := range c.nodes[:i] {
			_, port, err := net.SplitHostPort(other.Addr)
			if err != nil {
				return err
			}
			if _, err := node.do(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %s %d", port, bus[other.Addr])); err != nil {
				return err
			}
		}
	}
	return await(c.nodes, "CLUSTER INFO", fmt.Sprintf("cluster_known_nodes:%d\r\n", len(c.nodes)), 20*time.Second)
}

// follow gives each of the other nodes a primary, in turn, and waits until it follows that primary.
func (c *clusterRedis) follow() error {
	for i, node := range c.nodes[primaries:] {
		answer, err := c.nodes[i%primaries].do("CLUSTER MYID")
		if err != nil {
			return err
		}
		_, id, _ := strings.Cut(answer, "\r\n") // the length precedes the id
		id, _, _ = strings.Cut(id, "\r\n")
		if err := replicate(node, id); err != nil {
			return err
		}
	}
	return await(c.nodes[primaries:], "INFO replication", "master_link_status:up", 20*time.Second)
}

// replicate makes a node follow the primary `id`. It retries until the node knows that the other node is a primary.
func replicate(node *Redis, id string) error {
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		_, err := node.do("CLUSTER REPLICATE " + id)
		if err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// URL implements RedisService.
func (c *clusterRedis) URL() string {
	return "redis+cluster://" + strings.Join(addresses(c.nodes), ",")
}

// Nodes implements RedisService.
func (c *clusterRedis) Nodes() []*Redis { return c.nodes }

// Watchers implements RedisService.
func (*clusterRedis) Watchers() []*Redis { return nil }
