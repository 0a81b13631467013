package localserver

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/tier"
)

// TestZookeeperAndEtcd: each server starts once it answers, and restarts on the same port after a kill.
// If the port is taken, another one is tried.
func TestZookeeperAndEtcd(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper and etcd")
	type server interface {
		Kill() error
		Start() error
		ping() error
	}
	for _, c := range []struct {
		name  string
		start func(g *Group) (_ server, addr func() string, _ error)
	}{
		{"zookeeper", func(g *Group) (server, func() string, error) {
			s, err := StartZookeeper(g)
			return s, func() string { return s.Addr }, err
		}},
		{"etcd", func(g *Group) (server, func() string, error) {
			s, err := StartEtcd(g)
			return s, func() string { return s.Addr }, err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t) // its clean-up checks that nothing is left
			s, addr, err := c.start(g)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := s.ping(); err == nil {
				t.Error("it answered after it was killed")
			}
			other, err := net.Listen("tcp", addr())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(); !errors.Is(err, errPortTaken) {
				t.Errorf("%v, want %v", err, errPortTaken)
			}
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			if err := s.Start(); err != nil {
				t.Fatalf("again: %v", err)
			}
		})
	}
}

// TestZookeeperLastWords: a server that cannot start says why.
func TestZookeeperLastWords(t *testing.T) {
	tier.Soak(t, "needs ZooKeeper")
	g := newGroup(t)
	z, err := StartZookeeper(g)
	if err != nil {
		t.Fatal(err)
	}
	if err := z.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(z.command[len(z.command)-1], []byte("nonsense=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := z.Start(); err == nil || !strings.Contains(err.Error(), "Invalid config") {
		t.Errorf("%v, want the server's own words", err)
	}
}
