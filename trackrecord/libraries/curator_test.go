package libraries

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestCurator498: a client loses the answer to a create, then its connection. It comes back with a
// new session, finds its node by the id in the name, and takes the lock by it. But the node belongs
// to the old session and disappears with it. The test sends the same requests as Curator up to
// 4.1.0: CreateBuilderImpl.findProtectedNodeInForeground, then LockInternals.
// https://github.com/apache/curator/issues/1018
func TestCurator498(t *testing.T) {
	t.Parallel()
	if first, second := newSession(t, true); !first || second {
		t.Errorf("the session is compared: the first client has the lock %t, the second %t; want true, false", first, second)
	}
	first, second := newSession(t, false)
	if !first || !second {
		t.Fatalf("the first client has the lock %t, the second %t; want that both have it", first, second)
	}
	t.Logf("as Curator 4.1.0 does it: the bug is there\n"+
		"the session has changed and the node was found; the first client has the lock: %t; so has the second: %t", first, second)
}

// newSession makes a client lose an answer and its session while it locks, then lets another client
// lock. It reports which of them has the lock. compare enables the fix: if the session has changed,
// the client deletes the node and creates a new one.
func newSession(t *testing.T, compare bool) (first, second bool) {
	t.Helper()
	const life = 4 * time.Second // of a session whose client is gone
	server, err := localserver.StartZookeeper(localservertest.Group(t))
	must(t, err)
	other := zookeeper(t, server.Addr)
	_, err = other.Create("/apple", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)

	way := newProxy(t, server.Addr)
	old, _, err := zk.Connect([]string{way.addr}, life, zk.WithLogger(quietZookeeper{}))
	must(t, err)
	id := "_c_" + rand.Text()
	_, err = old.Create("/old", nil, zk.FlagEphemeral, zk.WorldACL(zk.PermAll)) // shows when the session is gone
	must(t, err)
	way.lose(0)
	go func() {
		_, _ = old.Create("/apple/"+id+"-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	}()
	way.lost(t)
	found := sorted(t, other)
	if len(found) != 1 || !strings.HasPrefix(found[0], id) {
		t.Fatalf("in line: %v; want the node whose answer was lost", found)
	}
	way.end() // so the old session gets no more heartbeats
	t.Cleanup(old.Close)

	client := zookeeper(t, server.Addr) // the same client with a new session
	mine := sorted(t, client)[0]
	if compare {
		must(t, client.Delete("/apple/"+mine, -1))
		path, err := client.Create("/apple/"+id+"-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
		must(t, err)
		mine = strings.TrimPrefix(path, "/apple/")
	}
	first = sorted(t, client)[0] == mine

	path, err := other.Create("/apple/_c_"+rand.Text()+"-lock-", nil, zk.FlagEphemeral|zk.FlagSequence, zk.WorldACL(zk.PermAll))
	must(t, err)
	theirs := strings.TrimPrefix(path, "/apple/")
	for there := true; there; time.Sleep(20 * time.Millisecond) { // until the old session is gone
		there, _, err = other.Exists("/old")
		must(t, err)
	}
	second = sorted(t, other)[0] == theirs
	return first, second
}

// sorted returns the nodes of the queue by sequence number.
func sorted(t *testing.T, conn *zk.Conn) []string {
	t.Helper()
	nodes := line(t, conn)
	number := func(node string) string { return node[strings.LastIndex(node, "-lock-"):] }
	slices.SortFunc(nodes, func(a, b string) int { return strings.Compare(number(a), number(b)) })
	return nodes
}
