// Package etcd34 reproduces a bug of etcd's client 3.4 with that client.
package etcd34

import (
	"testing"
	"time"

	"go.etcd.io/etcd/clientv3"
	"go.etcd.io/etcd/clientv3/concurrency"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestEtcd11456: a lease ends while its owner waits for a mutex, and etcd deletes the owner's key in
// the queue. The client does not check this. So Lock later returns nil, although another client has the
// lock. trackrecord/libraries contains the same test with a fixed client.
// https://github.com/etcd-io/etcd/issues/11456
func TestEtcd11456(t *testing.T) {
	t.Parallel()
	client := etcd(t)
	if second, third := expiresInLine(t, client, "no lease ends", false); !second || third {
		t.Errorf("no lease ended: the second has the lock %t, the third %t; want true, false", second, third)
	}
	second, third := expiresInLine(t, client, "a lease ends", true)
	saw := "the lease ended while its owner waited; it has the lock: %t; so has the next in line: %t"
	if !second || !third {
		t.Fatalf("client 3.4.3: the bug is gone; want that it is there\n"+saw, second, third)
	}
	t.Logf("client 3.4.3: the bug is there\n"+saw, second, third)
}

func etcd(t *testing.T) *clientv3.Client {
	t.Helper()
	server, err := localserver.StartEtcd(localservertest.Group(t))
	must(t, err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr}})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// expiresInLine makes three clients ask one after the other. If expire is true, it ends the second
// client's lease. Then the first client unlocks. The results say which of the other two get the lock
// before either unlocks.
func expiresInLine(t *testing.T, client *clientv3.Client, name string, expire bool) (second, third bool) {
	t.Helper()
	ctx := t.Context()
	answers := make([]chan error, 3)
	var locks []*concurrency.Mutex
	var leases []clientv3.LeaseID
	for i := range answers {
		s, err := concurrency.NewSession(client)
		must(t, err)
		leases, locks = append(leases, s.Lease()), append(locks, concurrency.NewMutex(s, name))
		answers[i] = make(chan error, 1)
		go func() { answers[i] <- locks[i].Lock(ctx) }()
		inLine(t, client, name, i+1)
	}
	must(t, <-answers[0])
	if expire {
		_, err := client.Revoke(ctx, leases[1])
		must(t, err)
	}
	must(t, locks[0].Unlock(ctx))
	second = <-answers[1] == nil
	if expire { // the third client is first now
		return second, <-answers[2] == nil
	}
	select {
	case err := <-answers[2]:
		return second, err == nil
	case <-time.After(time.Second): // it waits for the second client
	}
	must(t, locks[1].Unlock(ctx))
	must(t, <-answers[2])
	return second, false
}

func inLine(t *testing.T, client *clientv3.Client, name string, n int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		r, err := client.Get(t.Context(), name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		must(t, err)
		if r.Count == int64(n) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d in line, want %d", r.Count, n)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
