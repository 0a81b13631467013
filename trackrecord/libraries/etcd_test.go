package libraries

import (
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.uber.org/zap"

	"github.com/oversell/oversell/internal/localserver"
)

// TestEtcd16221: a writer's lease ends while it waits in line, and with it its
// key. Nobody looks: when its turn would have come RWMutex.Lock returns nil, and
// so does the Lock of the next writer.
// https://github.com/etcd-io/etcd/issues/16221
func TestEtcd16221(t *testing.T) {
	client := etcd(t)
	if second, third := expiresInLine(t, client, false); second && third {
		t.Error("two writers at once, and no lease had ended")
	}
	second, third := expiresInLine(t, client, true)
	bug{recipe.NewRWMutex, ""}.judge(t, second && third, fmt.Sprintf(
		"the second writer's lease ended while it waited; it has the write lock: %t; so has the third: %t", second, third))
}

func etcd(t *testing.T) *clientv3.Client {
	t.Helper()
	server, err := localserver.StartEtcd(servers(t))
	must(t, err)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Addr}, Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// expiresInLine has three writers ask in turn, ends the lease of the second one
// with expire, and lets the first one unlock. It returns who of the other two
// had the lock then, before either had unlocked.
func expiresInLine(t *testing.T, client *clientv3.Client, expire bool) (second, third bool) {
	t.Helper()
	name := fmt.Sprintf("apple-%t", expire)
	var sessions []*concurrency.Session
	var locks []*recipe.RWMutex
	for range 3 {
		s, err := concurrency.NewSession(client)
		must(t, err)
		sessions = append(sessions, s)
		locks = append(locks, recipe.NewRWMutex(s, name))
	}
	must(t, locks[0].Lock())
	answers := []chan error{nil, make(chan error, 1), make(chan error, 1)}
	for i := 1; i <= 2; i++ {
		go func() { answers[i] <- locks[i].Lock() }()
		inLine(t, client, name, int64(i+1))
	}
	if expire {
		_, err := client.Revoke(t.Context(), sessions[1].Lease())
		must(t, err)
		inLine(t, client, name, 2)
	}
	must(t, locks[0].Unlock())
	second = <-answers[1] == nil
	if expire { // nobody is before the third
		return second, <-answers[2] == nil
	}
	select {
	case err := <-answers[2]:
		return second, err == nil
	case <-time.After(time.Second): // as long as the second one likes
	}
	must(t, locks[1].Unlock())
	must(t, <-answers[2])
	return second, false
}

// inLine waits until n keys stand in line.
func inLine(t *testing.T, client *clientv3.Client, name string, n int64) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		r, err := client.Get(t.Context(), name+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
		must(t, err)
		if r.Count == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d in line, want %d", r.Count, n)
		}
	}
}
