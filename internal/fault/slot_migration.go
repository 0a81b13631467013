package fault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/fault/failpoint"
)

// slotMigration moves the slots of the product's keys to another primary while the lock holder is stopped at
// its COMMIT. It moves the keys first, so that the old primary answers ASK, and then the slots, so that it
// answers MOVED (Redis cluster specification, "Cluster live reconfiguration"). A key keeps its remaining time
// to live. The lease must not end meanwhile, since another buyer could then get in without the fault. A lock
// that is renewed every third of its lease is also renewed after the migration.
func slotMigration() Fault {
	return Fault{
		Name: "slot-migration", About: "the hash slot of a held lock moves to another node of the Redis cluster", OnRedis: topology.Cluster,
		Needs: redisAlone(), Stock: stock, HolderLives: true, Lease: 8 * time.Second,
		Inject: func(ctx context.Context, t *Testbed) (string, error) {
			if err := holdFor(ctx, t, failpoint.Commit, t.Times.Wait); err != nil {
				return "", err
			}
			held := time.Now()
			g := t.Servers.redises
			keeper, before, err := g.keeper(ctx, t.Product)
			if err != nil {
				return "", err
			}
			m, err := newMigration(ctx, g, keeper, before)
			if err != nil {
				return "", err
			}
			defer m.close()
			if err := m.keys(ctx); err != nil {
				return "", err
			}
			t.injected("the keys have moved, the slot has not")
			t.buyers.send(ctx, t.B, "next-asked")
			pauseFor(ctx, 250*time.Millisecond) // lets the buyer wait for the lock and be redirected
			if err := m.slots(ctx, g); err != nil {
				return "", err
			}
			t.injected("the slot has moved")
			left, err1 := m.from.keysOf(ctx, t.Product)
			there, err2 := m.to.keysOf(ctx, t.Product)
			if err := errors.Join(err1, err2); err != nil {
				return "", err
			}
			t.others(ctx, 0, t.Times.Lease*3/8)
			if lasted := time.Since(held); lasted > t.Times.Lease*3/4 {
				return "", missed("the holder stood for %.1f s, and its lease is %s", lasted.Seconds(), t.Times.Lease)
			}
			if err := t.release(); err != nil {
				return "", err
			}
			return movedTo(before, left, there)
		},
	}
}

// movedTo proves that no key is left on the old node and at least one is on the new node. Values may
// have changed, and some keys may have been deleted.
func movedTo(before, left, there map[string]string) (proof string, _ error) {
	moved := 0
	for key := range before {
		if _, still := left[key]; still {
			return "", missed("the old node still has %s", key)
		}
		if _, has := there[key]; has { // skip other keys on the new node: they come from other buyers
			moved++
		}
	}
	switch {
	case len(before) == 0:
		return "", missed("the product had no keys on the old node")
	case moved == 0:
		return "", missed("the new node has none of the %d keys that the old one had", len(before))
	}
	return fmt.Sprintf("the holder reported that it holds; the slot of the product's keys moved to another node, which has %d of the %d", moved, len(before)), nil
}

// A migration moves slots from one primary to another, as `redis-cli --cluster reshard` does.
type migration struct {
	from, to      *redisNode
	old, next     *redis.Client
	oldID, nextID string
	numbers       []int64 // slot numbers
}

// newMigration prepares the move of the keys' slots to the first other primary. The caller must close it.
func newMigration(ctx context.Context, g *redisGroup, from *redisNode, keys map[string]string) (*migration, error) {
	all, err := g.primaries(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(n *redisNode) bool { return n != from })
	if i < 0 {
		return nil, missed("there is no other primary")
	}
	m := &migration{from: from, to: all[i], old: from.client(), next: all[i].client()}
	if err := m.prepare(ctx, keys); err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

func (m *migration) prepare(ctx context.Context, keys map[string]string) (err error) {
	if m.oldID, err = m.old.ClusterMyID(ctx).Result(); err != nil {
		return err
	}
	if m.nextID, err = m.next.ClusterMyID(ctx).Result(); err != nil {
		return err
	}
	for key := range keys {
		slot, err := m.old.ClusterKeySlot(ctx, key).Result()
		if err != nil {
			return err
		}
		if !slices.Contains(m.numbers, slot) {
			m.numbers = append(m.numbers, slot)
		}
	}
	return nil
}

func (m *migration) close() {
	_ = m.old.Close()
	_ = m.next.Close()
}

// keys moves all keys of each slot at once, with their times to live. While the keys of a script are on two
// nodes, Redis refuses it for a moment. New keys are created on the new node.
func (m *migration) keys(ctx context.Context) error {
	host, port, err := net.SplitHostPort(m.to.Addr)
	if err != nil {
		return err
	}
	for _, slot := range m.numbers {
		err := errors.Join(
			m.next.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", m.oldID).Err(),
			m.old.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", m.nextID).Err())
		for err == nil {
			var names []string
			if names, err = m.old.ClusterGetKeysInSlot(ctx, int(slot), 1000).Result(); len(names) == 0 {
				break
			}
			command := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
			for _, name := range names {
				command = append(command, name)
			}
			err = m.old.Do(ctx, command...).Err()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// slots assigns the slots to the new node and tells all primaries. It tells the new node first. Otherwise a
// client could be redirected to that node before it accepts the slot.
func (m *migration) slots(ctx context.Context, g *redisGroup) error {
	all, err := g.primaries(ctx)
	if err != nil {
		return err
	}
	for _, slot := range m.numbers {
		for _, node := range append([]*redisNode{m.to, m.from}, all...) {
			c := node.client()
			err := errors.Join(c.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", m.nextID).Err(), c.Close())
			if err != nil {
				return err
			}
		}
	}
	return nil
}
