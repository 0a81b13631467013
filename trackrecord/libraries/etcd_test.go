package libraries

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	recipe "go.etcd.io/etcd/client/v3/experimental/recipes"
	"go.uber.org/zap"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestEtcd22082: an Unlock succeeds and its answer is lost. A second call deletes the key by its name,
// although a later Lock of the same session has created the key again.
// https://github.com/etcd-io/etcd/issues/22082
func TestEtcd22082(t *testing.T) {
	t.Parallel()
	if first, second := unlockAgain(t, false); !first || second {
		t.Errorf("no second Unlock: the session has the lock %t, another one %t; want true, false", first, second)
	}
	first, second := unlockAgain(t, true)
	bug{concurrency.NewMutex, ""}.judge(t, first && second, fmt.Sprintf(
		"the Unlock before was called again; the session has the lock: %t; so has another one: %t", first, second))
}

// unlockAgain loses the answer to an Unlock and locks again in the same session. If again is true, it
// repeats the old Unlock. Then another session tries. The results say which sessions got the lock.
func unlockAgain(t *testing.T, again bool) (first, second bool) {
	t.Helper()
	ctx := t.Context()
	server, other := etcd(t)
	way := newProxy(t, server.Addr)
	client := etcdClient(t, way.addr)
	session, err := concurrency.NewSession(client)
	must(t, err)
	old := concurrency.NewMutex(session, "apple")
	must(t, old.Lock(ctx))
	way.lose(0)
	unlocking, giveUp := context.WithCancel(ctx)
	answer := make(chan error, 1)
	go func() { answer <- old.Unlock(unlocking) }()
	inLine(t, other, "apple", 0) // the Unlock has taken effect
	giveUp()
	if err := <-answer; err == nil {
		t.Fatal("the Unlock was answered: the test shows nothing")
	}
	way.cut()

	current := concurrency.NewMutex(session, "apple")
	for deadline := time.Now().Add(20 * time.Second); !first && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		first = current.Lock(ctx) == nil // the client must reconnect first
	}
	if again {
		must(t, old.Unlock(ctx))
	}
	s, err := concurrency.NewSession(other)
	must(t, err)
	switch err := concurrency.NewMutex(s, "apple").TryLock(ctx); {
	case err == nil:
		second = true
	case !errors.Is(err, concurrency.ErrLocked):
		t.Fatal(err)
	}
	return first, second
}

// TestEtcd16221: a writer's lease ends while it waits, and etcd deletes the writer's key in the queue.
// The client does not check this. So its RWMutex.Lock later returns nil, and so does the Lock of the
// next writer. https://github.com/etcd-io/etcd/issues/16221
func TestEtcd16221(t *testing.T) {
	t.Parallel()
	_, client := etcd(t)
	if second, third := expiresInLine(t, client, false); second && third {
		t.Error("two writers at once, and no lease had ended")
	}
	second, third := expiresInLine(t, client, true)
	bug{recipe.NewRWMutex, ""}.judge(t, second && third, fmt.Sprintf(
		"the second writer's lease ended while it waited; it has the write lock: %t; so has the third: %t", second, third))
}

func etcd(t *testing.T) (*localserver.Etcd, *clientv3.Client) {
	t.Helper()
	server, err := localserver.StartEtcd(localservertest.Group(t))
	must(t, err)
	return server, etcdClient(t, server.Addr)
}

func etcdClient(t *testing.T, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// expiresInLine makes three writers ask one after the other. If expire is true, it ends the second
// writer's lease. Then the first writer unlocks. The results say which of the other two get the lock
// before either unlocks.
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
	if expire { // the third writer is first now
		return second, <-answers[2] == nil
	}
	select {
	case err := <-answers[2]:
		return second, err == nil
	case <-time.After(time.Second): // it waits for the second writer
	}
	must(t, locks[1].Unlock())
	must(t, <-answers[2])
	return second, false
}

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
