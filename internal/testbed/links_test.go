package testbed

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// TestLinks: each operation of a link has an effect and can be undone, in front of Redis and, under make
// soak, of ZooKeeper and etcd.
func TestLinks(t *testing.T) {
	g := localservertest.Group(t)
	redis, err := localserver.StartRedis(g)
	require.NoError(t, err)
	node, err := localserver.StartRedis(g)
	require.NoError(t, err)
	servers := []engine.LockServer{{Need: "redis", Restartable: redis}, {Need: "redlock", Restartable: node}}
	if tier.Soaking() {
		z, err := localserver.StartZookeeper(g)
		require.NoError(t, err)
		e, err := localserver.StartEtcd(g)
		require.NoError(t, err)
		servers = append(servers, engine.LockServer{Need: "zookeeper", Restartable: z}, engine.LockServer{Need: "etcd", Restartable: e})
	}
	links, err := NewLinks(servers)
	require.NoError(t, err)
	defer links.Cut()
	answers := func(when string, links Links, want int) {
		t.Helper()
		patience := 30 * time.Second
		if want == 0 {
			patience = 300 * time.Millisecond
		}
		expect.Equal(t, links.Answering(patience), want, when)
	}
	do := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	answers("at first", links, len(servers))
	do(links.Silence())
	answers("silenced", links, 0)
	links.Heal(context.Background())
	answers("healed", links, len(servers))
	do(links.Mute())
	answers("muted", links, 0)
	links.Heal(context.Background())
	answers("healed again", links, len(servers))
	links.Of("redis").Cut()
	answers("the link to Redis is cut", links.Of("redis"), 0)
	answers("the others are not", slices.Concat(links.Of("redlock"), links.Of("zookeeper"), links.Of("etcd")), len(servers)-1)
	do(links.Mend())
	answers("mended", links, len(servers))
	const by = 30 * time.Millisecond
	do(links.Delay(by, by/3))
	took, err := links.Quickest()
	if err != nil || took < by/2 {
		t.Errorf("an answer after %s, %v; want it held back by %s", took, err, by)
	}
	links.Heal(context.Background())
	do(links.Delay(by, 0))
	if took, err := links.Quickest(); err != nil || took < by {
		t.Errorf("an answer after %s, %v; want none before %s", took, err, by)
	}
}

// TestLead: a process reaches each lock server through its own link, and other servers directly.
func TestLead(t *testing.T) {
	tier.Test(t, "the other tests here need servers, and make quick links none of them")
	t.Parallel()
	links := Links{{Addr: "link:1", Server: "redis:1"}, {Addr: "link:2", Server: "etcd:1"}}
	given := engine.Config{Zookeeper: []string{"elsewhere:1"}, Etcd: []string{"etcd:1"}, Detours: engine.Detours{"a:1": "b:1"}}
	led := links.Lead(given)
	if led.Detours.To("redis:1") != "link:1" || led.Detours.To("a:1") != "b:1" || !slices.Equal(led.Etcd, []string{"link:2"}) || !slices.Equal(led.Zookeeper, given.Zookeeper) {
		t.Errorf("led to %+v", led)
	}
	expect.Equal(t, len(given.Detours), 1, "the given detours", given.Detours)
}
