package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// A redisGroup is a Redis of several servers that fail over by themselves, as its operator
// sees it. Nothing here promotes a server.
type redisGroup struct {
	kind    string // of package topology
	service localserver.RedisService
	nodes   []*redisNode // those that have keys

	// What a fault has had the group do, see Servers.Undisturbed.
	asked    bool       // to fail over
	replaced *redisNode // the primary that the fault took away, and
	elected  *redisNode // the replica that was elected for it; nil where any may be
}

// settleTimeout is how long a group may take to be whole again.
const settleTimeout = time.Minute

// primaries are the nodes that take writes, in the order of nodes, as the sentinels or a
// node of the cluster say.
func (g *redisGroup) primaries(ctx context.Context) ([]*redisNode, error) {
	servers, question := g.service.Nodes(), clusterPrimaries
	if g.kind == topology.Sentinel {
		servers, question = g.service.Watchers(), sentinelPrimary
	}
	var addresses []string
	var err error
	for _, server := range servers { // the first answer will do
		c := clientOf(server.Addr)
		addresses, err = question(ctx, c)
		_ = c.Close()
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("who is primary: %w", err)
	}
	var all []*redisNode
	for _, node := range g.nodes {
		if slices.Contains(addresses, node.Addr) {
			all = append(all, node)
		}
	}
	return all, nil
}

func sentinelPrimary(ctx context.Context, c *redis.Client) ([]string, error) {
	cmd := redis.NewStringSliceCmd(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", localserver.PrimaryName)
	_ = c.Process(ctx, cmd) // the error is in cmd
	address, err := cmd.Result()
	if err != nil || len(address) != 2 {
		return nil, fmt.Errorf("a sentinel answered %q: %w", address, err)
	}
	return []string{net.JoinHostPort(address[0], address[1])}, nil
}

func clusterPrimaries(ctx context.Context, c *redis.Client) (addresses []string, _ error) {
	//lint:ignore SA1019 CLUSTER SHARDS takes Redis 7; this is there as well
	ranges, err := c.ClusterSlots(ctx).Result()
	for _, slots := range ranges {
		if len(slots.Nodes) > 0 && !slices.Contains(addresses, slots.Nodes[0].Addr) {
			addresses = append(addresses, slots.Nodes[0].Addr)
		}
	}
	return addresses, err
}

// keeper is the primary that has the product's keys, and the keys. It misses when none has
// any, or not one alone.
func (g *redisGroup) keeper(ctx context.Context, product string) (keeper *redisNode, keys map[string]string, _ error) {
	all, err := g.primaries(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, node := range all {
		there, err := node.keysOf(ctx, product)
		switch {
		case err != nil:
			return nil, nil, err
		case len(there) > 0 && keeper != nil:
			return nil, nil, missed("the product's keys are on %s and on %s", keeper.Addr, node.Addr)
		case len(there) > 0:
			keeper, keys = node, there
		}
	}
	if keeper == nil {
		return nil, nil, missed("no primary has keys of the product")
	}
	return keeper, keys, nil
}

// part keeps the replicas from what is written to their primaries from now on.
func (g *redisGroup) part(ctx context.Context) error {
	all, err := g.primaries(ctx)
	for _, node := range all {
		err = errors.Join(err, node.part(ctx))
	}
	return err
}

// mend starts what was killed, lets the replicas follow, and waits until the group is
// whole. A node that was a primary and came back is told to follow the one that was
// elected: the sentinels would leave it alone for eight seconds.
//
// A sentinel closes all connections of a node that it has told to follow or to lead, so
// whatever was cut off is done again.
func (g *redisGroup) mend(ctx context.Context) error {
	if err := startAgain(g.nodes); err != nil {
		return err
	}
	return settled(ctx, func(ctx context.Context) error {
		if err := g.follow(ctx); err != nil {
			return err
		}
		return g.whole(ctx)
	})
}

// follow lets the replicas and the sentinels in, which part and isolate have shut out.
func (g *redisGroup) follow(ctx context.Context) error {
	for _, node := range g.nodes {
		c := node.client()
		err := errors.Join(c.ACLSetUser(ctx, localserver.ReplicaUser, "on").Err(), c.ACLSetUser(ctx, localserver.SentinelUser, "on").Err())
		_ = c.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// settle waits until every node follows or is followed, and all agree on who is who.
func (g *redisGroup) settle(ctx context.Context) error { return settled(ctx, g.whole) }

// settled tries until there is no error, for settleTimeout at most.
func settled(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	var last error
	if whole, _ := until(ctx, settleTimeout, func() (bool, error) { last = try(ctx); return last == nil, nil }); !whole {
		return fmt.Errorf("the Redis servers were not whole within %s: %w", settleTimeout, last)
	}
	return nil
}

// whole says what is missing.
func (g *redisGroup) whole(ctx context.Context) error {
	if g.kind == topology.Sentinel {
		return g.watched(ctx)
	}
	for _, node := range g.nodes {
		state, err1 := node.clusterInfo(ctx)
		replication, err2 := node.replication(ctx)
		switch {
		case err1 != nil || err2 != nil:
			return errors.Join(err1, err2)
		case !strings.Contains(state, "cluster_state:ok"):
			return fmt.Errorf("%s: CLUSTERDOWN", node.Addr)
		case !strings.Contains(replication, "master_link_status:up") && !strings.Contains(replication, "state=online"):
			return fmt.Errorf("%s neither follows nor is followed", node.Addr)
		}
	}
	return nil
}

// watched is whole of a primary behind sentinels.
func (g *redisGroup) watched(ctx context.Context) error {
	primaries, err := g.primaries(ctx)
	if err != nil {
		return err
	}
	if len(primaries) != 1 {
		return errors.New("the sentinels name no primary")
	}
	primary := primaries[0]
	for _, node := range g.nodes {
		replication, err := node.replication(ctx)
		switch {
		case err != nil:
			return err
		case node != primary && strings.Contains(replication, "role:master"):
			return errors.Join(node.replicaOf(ctx, primary.Addr), node.rewrite(ctx), fmt.Errorf("%s does not follow yet", node.Addr))
		case node == primary && strings.Count(replication, "state=online") < len(g.nodes)-1:
			return fmt.Errorf("not every replica follows %s", node.Addr)
		}
	}
	for _, watcher := range g.service.Watchers() {
		status, err := info(ctx, watcher.Addr, "sentinel")
		if err != nil || !strings.Contains(status, "status=ok,address="+primary.Addr) {
			return fmt.Errorf("the sentinel at %s does not watch %s: %w", watcher.Addr, primary.Addr, err)
		}
	}
	return nil
}
