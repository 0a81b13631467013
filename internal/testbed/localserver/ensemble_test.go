package localserver

import (
	"testing"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

type member interface {
	Kill() error
	Start() error
	Leads() bool
}

// TestEnsembles: one of three members leads. After its death another member leads, and the killed member
// returns as a follower. A single server calls itself a leader only in etcd.
func TestEnsembles(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper and etcd")
	t.Run("zookeeper", func(t *testing.T) {
		t.Parallel()
		g := newGroup(t)
		ensemble(t, g, StartZookeeperEnsemble)
		if alone, err := StartZookeeper(g); err != nil || alone.Leads() {
			t.Errorf("%v; a standalone server leads: %t", err, err == nil)
		}
	})
	t.Run("etcd", func(t *testing.T) {
		t.Parallel()
		g := newGroup(t)
		ensemble(t, g, StartEtcdCluster)
		if alone, err := StartEtcd(g); err != nil || !alone.Leads() {
			t.Errorf("%v; a cluster of one leads: %t", err, err != nil)
		}
	})
}

func ensemble[M member](t *testing.T, g *Group, start func(*Group) ([]M, error)) {
	members, err := start(g)
	require.NoError(t, err)
	first := onlyLeader(t, members)
	require.NoError(t, members[first].Kill())
	second := onlyLeader(t, members)
	require.NoError(t, members[first].Start())
	onlyLeader(t, members)
	if second == first {
		t.Errorf("member %d led, also after its death", first)
	}
}

func onlyLeader[M member](t *testing.T, members []M) int {
	t.Helper()
	var leaders []int
	require.Eventually(t, "exactly one member leads", func() bool {
		leaders = nil
		for i, m := range members {
			if m.Leads() {
				leaders = append(leaders, i)
			}
		}
		return len(leaders) == 1
	})
	return leaders[0]
}
