package localserver_test

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/localserver"
	"github.com/oversell/oversell/internal/localserver/localservertest"
)

// TestGalera: three nodes are one cluster, each can be killed and comes back, and after
// all were killed the cluster is bootstrapped anew.
func TestGalera(t *testing.T) {
	start := time.Now()
	c, err := localserver.StartGalera(localservertest.Group(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started in %s", time.Since(start))
	size := func(want int) {
		t.Helper()
		for _, n := range c.Nodes() {
			s, err := n.Status(t.Context())
			t.Logf("%+v %v", s, err)
			if err != nil || s.Size != want || !s.Ready {
				t.Errorf("%+v, %v, want %d nodes", s, err, want)
			}
		}
	}
	size(3)
	if err := c.Nodes()[1].Kill(); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if err := c.Nodes()[1].Start(); err != nil {
		t.Fatal(err)
	}
	t.Logf("node 1 back in %s", time.Since(start))
	size(3)
	for _, n := range c.Nodes() {
		if err := n.Kill(); err != nil {
			t.Fatal(err)
		}
	}
	start = time.Now()
	if err := c.Bootstrap(); err != nil {
		t.Fatal(err)
	}
	t.Logf("bootstrapped in %s", time.Since(start))
	size(3)
	if err := c.Nodes()[2].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes()[2].Empty(); err != nil {
		t.Fatal(err)
	}
	start = time.Now()
	if err := c.Nodes()[2].Start(); err != nil {
		t.Fatal(err)
	}
	t.Logf("node 2 back with all in %s", time.Since(start))
	size(3)
}
