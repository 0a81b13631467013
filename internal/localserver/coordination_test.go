package localserver

import (
	"os"
	"strings"
	"testing"
)

// TestZookeeperAndEtcd: each starts, which it has only when it answers, and
// again after a kill, on the same port.
func TestZookeeperAndEtcd(t *testing.T) {
	type server interface {
		Kill() error
		Start() error
		ping() error
	}
	for _, c := range []struct {
		name  string
		start func(g *Group) (server, error)
	}{
		{"zookeeper", func(g *Group) (server, error) { return StartZookeeper(g) }},
		{"etcd", func(g *Group) (server, error) { return StartEtcd(g) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t) // its clean-up checks that nothing is left
			s, err := c.start(g)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := s.ping(); err == nil {
				t.Error("it answered after it was killed")
			}
			if err := s.Start(); err != nil {
				t.Fatalf("again: %v", err)
			}
		})
	}
}

// TestZookeeperLastWords: a server that cannot start says why.
func TestZookeeperLastWords(t *testing.T) {
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
