package fault

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestLines: a process is led to each server by a line of its own, and what is done to a line
// is felt there and undone.
func TestLines(t *testing.T) {
	redis := localservertest.Redis(t)
	server := engine.LockServer{Need: string(lockstrategy.NeedsRedis), Restartable: redis}
	lines, err := NewLines([]engine.LockServer{server, {Need: string(lockstrategy.NeedsEtcd), Restartable: redis}})
	if err != nil {
		t.Fatal(err)
	}
	defer lines.Close()
	led := lines.Lead(engine.Config{Zookeeper: []string{"elsewhere:1"}, Etcd: []string{redis.Addr}, Detours: engine.Detours{"a:1": "b:1"}})
	if led.Detours.To(redis.Addr) == redis.Addr || led.Detours.To("a:1") != "b:1" || led.Etcd[0] == redis.Addr || !slices.Equal(led.Zookeeper, []string{"elsewhere:1"}) {
		t.Errorf("led to %+v", led)
	}
	one, err := NewLines([]engine.LockServer{server})
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	ctx := context.Background()
	proof, err := Delay(one)
	proven(t, "late", proof, err, true)
	one.Heal(ctx)
	proof, err = one.Part(300 * time.Millisecond)
	proven(t, "parted", proof, err, true)
	one.Heal(ctx)
	one.Cut("elsewhere:1")
	if answering(one.links, 30*time.Second) != 1 {
		t.Error("the line to another server was cut")
	}
	one.Cut(redis.Addr)
	if answering(one.links, 300*time.Millisecond) != 0 {
		t.Error("it answers through a line that is cut")
	}
	if err := one.Mend(); err != nil || answering(one.links, 30*time.Second) != 1 {
		t.Errorf("mended: %v", err)
	}
	if err := redis.Kill(); err != nil {
		t.Fatal(err)
	}
	proof, err = one.Part(300 * time.Millisecond)
	proven(t, "nobody is there", proof, err, false)
}

// TestRevoke: the first in the product's line loses its lease, at the server that is needed.
func TestRevoke(t *testing.T) {
	etcd, err := localserver.StartEtcd(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	servers := []engine.LockServer{{Need: string(lockstrategy.NeedsEtcd), Restartable: etcd}}
	etcdLine(t, etcd.Addr, "pear", "apple")
	revoke := func(product string, need lockstrategy.Need) (string, error) {
		return Revoke(ctx, servers, []lockstrategy.Need{need}, product)
	}
	proof, err := revoke("apple", lockstrategy.NeedsEtcd)
	proven(t, "the holder's", proof, err, true)
	if _, err = revoke("apple", lockstrategy.NeedsEtcd); !errors.Is(err, ErrMissed) {
		t.Errorf("nobody holds it any more: %v", err)
	}
	if _, err = revoke("pear", lockstrategy.NeedsZookeeper); !errors.Is(err, ErrMissed) {
		t.Errorf("there is no ZooKeeper: %v", err)
	}
	proof, err = revoke("pear", lockstrategy.NeedsEtcd)
	proven(t, "another product's", proof, err, true)
}
