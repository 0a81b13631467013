// Package localservertest starts servers that one test has for itself, to kill
// and to stop as it likes.
package localservertest

import (
	"testing"

	"github.com/oversell/oversell/internal/localserver"
)

// Group is a group of servers that ends with the test.
func Group(t testing.TB) *localserver.Group {
	t.Helper()
	group, err := localserver.NewGroup()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.Close(); err != nil {
			t.Error(err)
		}
	})
	return group
}

// Redis starts a redis-server.
func Redis(t testing.TB) *localserver.Redis {
	t.Helper()
	return started(t, localserver.StartRedis)
}

// MySQL starts a mariadbd or mysqld.
func MySQL(t testing.TB) *localserver.MySQL {
	t.Helper()
	return started(t, localserver.StartMySQL)
}

func started[Server any](t testing.TB, start func(*localserver.Group) (Server, error)) Server {
	t.Helper()
	server, err := start(Group(t))
	if err != nil {
		t.Fatal(err)
	}
	return server
}
