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

// A redisGroup is a Redis of several servers that fail over by themselves: with sentinels, or as a cluster.
// Its methods kill and disconnect servers, but never promote one.
type redisGroup struct {
	kind    string // a constant of package topology
	service localserver.RedisService
	nodes   []*redisNode // the nodes that have keys

	// Failovers that a fault has caused. Undisturbed uses them to find other failovers.
	asked    bool       // whether a fault caused a failover
	replaced *redisNode // the primary that the fault took away
	elected  *redisNode // the replica elected in its place; nil means that any may be elected
}

// settleTimeout is how long the servers of a group may take to agree on their roles again.
const settleTimeout = time.Minute

// primaries returns the nodes that take writes, in the order of g.nodes. It asks the sentinels or a
// node of the cluster.
func (g *redisGroup) primaries(ctx context.Context) ([]*redisNode, error) {
	servers, question := g.service.Nodes(), clusterPrimaries
	if g.kind == topology.Sentinel {
		servers, question = g.service.Watchers(), sentinelPrimary
	}
	var addresses []string
	var err error
	for _, server := range servers { // the loop ends at the first server that answers
		c := clientOf(server.Addr)
		addresses, err = question(ctx, c)
		_ = c.Close()
		if err == nil {
			break
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find the primary: %w", err)
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
	if err != nil {
		return nil, fmt.Errorf("ask a sentinel: %w", err)
	}
	if len(address) != 2 {
		return nil, fmt.Errorf("a sentinel answered %q", address)
	}
	return []string{net.JoinHostPort(address[0], address[1])}, nil
}

func clusterPrimaries(ctx context.Context, c *redis.Client) (addresses []string, _ error) {
	//lint:ignore SA1019 CLUSTER SHARDS needs Redis 7; CLUSTER SLOTS works there as well
	ranges, err := c.ClusterSlots(ctx).Result()
	for _, slots := range ranges {
		if len(slots.Nodes) > 0 && !slices.Contains(addresses, slots.Nodes[0].Addr) {
			addresses = append(addresses, slots.Nodes[0].Addr)
		}
	}
	return addresses, err
}

// keeper returns the primary that has the product's keys, and these keys. It returns ErrMissed unless
// exactly one primary has keys.
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

// part disconnects all replicas from their primaries. The method follow lets them connect again.
func (g *redisGroup) part(ctx context.Context) error {
	all, err := g.primaries(ctx)
	for _, node := range all {
		err = errors.Join(err, node.part(ctx))
	}
	return err
}

// mend restarts the killed servers, resumes replication, and waits until the servers agree on their roles. It tells
// a former primary to follow the elected one. The sentinels would do that too, but only after eight seconds.
//
// A sentinel closes all connections of a node that it reconfigures, so mend repeats a command whose connection
// was closed.
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

// follow undoes the methods part and isolate: replicas and sentinels can connect again.
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

// settle waits until every node is a primary or follows one, and all agree on the roles.
func (g *redisGroup) settle(ctx context.Context) error { return settled(ctx, g.whole) }

// settled calls try until it returns no error, at most for settleTimeout.
func settled(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	var last error
	if whole, _ := until(ctx, settleTimeout, func() (bool, error) { last = try(ctx); return last == nil, nil }); !whole {
		return fmt.Errorf("the Redis servers were not whole within %s: %w", settleTimeout, last)
	}
	return nil
}

// whole returns nil if the servers agree on their roles, and otherwise an error with the reason.
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

// watched is the variant of the method whole for servers with sentinels.
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
		if err != nil {
			return fmt.Errorf("the sentinel at %s: %w", watcher.Addr, err)
		}
		if !strings.Contains(status, "status=ok,address="+primary.Addr) {
			return fmt.Errorf("the sentinel at %s does not watch %s", watcher.Addr, primary.Addr)
		}
	}
	return nil
}
