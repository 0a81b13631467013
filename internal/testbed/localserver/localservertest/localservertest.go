// Package localservertest starts servers for one test, which may kill and stop them. make quick
// skips a test that asks for a server.
package localservertest

import (
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/tier"
)

// Group returns a group of servers that ends with the test. make quick skips the test.
func Group(t testing.TB) *localserver.Group {
	t.Helper()
	tier.Test(t, "needs servers")
	group, err := localserver.NewGroup()
	require.NoError(t, err)
	t.Cleanup(func() {
		expect.NoError(t, group.Close())
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

// Postgres starts a postgres.
func Postgres(t testing.TB) *localserver.Postgres {
	t.Helper()
	return started(t, localserver.StartPostgres)
}

// Galera starts a cluster of three mariadbd.
func Galera(t testing.TB) *localserver.Galera {
	t.Helper()
	return started(t, localserver.StartGalera)
}

func started[Server any](t testing.TB, start func(*localserver.Group) (Server, error)) Server {
	t.Helper()
	server, err := start(Group(t))
	require.NoError(t, err)
	return server
}
