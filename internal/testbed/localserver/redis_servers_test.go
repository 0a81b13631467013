package localserver_test

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestRedisServers: each kind starts. The log has the time that it took.
func TestRedisServers(t *testing.T) {
	tier.Soak(t, "starts sentinels and a cluster")
	for _, server := range localserver.RedisServers() {
		t.Run(server.Name, func(t *testing.T) {
			group := localservertest.Group(t)
			start := time.Now()
			service, err := server.Start(group, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(service.Nodes()); got != server.Nodes() {
				t.Errorf("%d nodes, want %d", got, server.Nodes())
			}
			t.Logf("%s in %s: %s", server.Name, time.Since(start).Round(10*time.Millisecond), service.URL())
		})
	}
}
