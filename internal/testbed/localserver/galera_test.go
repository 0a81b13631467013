package localserver_test

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/tier"

	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// TestGalera: three nodes form one cluster, and a killed node rejoins. With make soak: after all nodes
// were killed, the cluster restarts with its commits, and a node without files receives the full state.
func TestGalera(t *testing.T) {
	tier.Soak(t, "needs Galera")
	t.Parallel()
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
	if !tier.Soaking() {
		return
	}
	before, err := c.Nodes()[0].Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
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
	if s, err := c.Nodes()[0].Status(t.Context()); err != nil || s.Seqno <= before.Seqno {
		t.Errorf("it is at %d, %v; it was at %d, and goes on from there", s.Seqno, err, before.Seqno)
	}
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
