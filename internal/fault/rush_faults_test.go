package fault

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/testbed"
)

// memory is a Redis inside this process that looks like one of the engine's.
type memory struct {
	*miniredis.Miniredis
	addr  string
	keeps bool // whether it keeps its data over a restart
}

func (m *memory) Address() string { return m.addr }

func (m *memory) Kill() error {
	m.Close()
	if !m.keeps {
		m.FlushAll()
	}
	return nil
}

func (m *memory) Start() error { return m.StartAddr(m.addr) }

// newHeld returns a rush whose first process stops a buyer as soon as one is requested. It has n
// servers with links in front of them.
func newHeld(t *testing.T, need lockstrategy.Need, n int) (*RunningRush, *fakeProcess, []*memory) {
	t.Helper()
	var servers []*memory
	e := &engine.Engine{}
	for range n {
		r := miniredis.RunT(t)
		servers = append(servers, &memory{r, r.Addr(), false})
		e.LockServers = append(e.LockServers, engine.LockServer{Need: string(need), Restartable: servers[len(servers)-1]})
	}
	links, err := testbed.NewLinks(e.LockServers)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(links.Cut)
	s := &fakeProcess{answers: true}
	f := NewRunningRush(e, s, "apple", failpoint.Commit, Times{Wait: 5 * time.Second, Lease: 400 * time.Millisecond}, []lockstrategy.Need{lockstrategy.NeedsEtcd})
	f.Links, s.holding = []testbed.Links{links}, f
	return f, s, servers
}

// selling records a sale to other buyers each millisecond.
func selling(t *testing.T, f *RunningRush) (stop func()) {
	t.Helper()
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
				f.Note(firstProcess+1, history.Event{Kind: history.Return, Purchaser: "bob", Amount: 1})
			}
		}
	}()
	return func() { close(done); <-stopped }
}

// TestSlowSection: the buyer goes on. A process that has ended had no slow section.
func TestSlowSection(t *testing.T) {
	f, s, _ := newHeld(t, lockstrategy.NeedsRedis, 0)
	start := time.Now()
	proof, err := f.Inject(t.Context(), slowSection())
	provenIn(t, "it answers", proof, err, "")
	if took := time.Since(start); took < f.times.Lease || !s.wentOn() || s.told[0] != "hold * read" {
		t.Errorf("after %s, told %q", took, s.told)
	}
	s.answers = false
	proof, err = f.Inject(t.Context(), slowSection())
	provenIn(t, "it does not answer", proof, err, "did not answer")
}

// TestLatency: a delay without sales proves nothing, and afterwards the links are open again.
func TestLatency(t *testing.T) {
	f, _, servers := newHeld(t, lockstrategy.NeedsRedis, 1)
	stop := selling(t, f)
	proof, err := f.Inject(t.Context(), latency())
	stop()
	provenIn(t, "they buy", proof, err, "")
	f.times.Wait = 300 * time.Millisecond
	proof, err = f.Inject(t.Context(), latency()) // there were sales before, but none now
	provenIn(t, "nobody buys", proof, err, "0 units were sold")
	servers[0].Close()
	if proof, err = f.Inject(t.Context(), latency()); err == nil {
		t.Errorf("no server is there: %q", proof)
	}
}

// TestPartition: nothing passes, and afterwards everything does. If no server answered before, the
// partition proves nothing.
func TestPartition(t *testing.T) {
	f, s, servers := newHeld(t, lockstrategy.NeedsRedis, 1)
	stop := selling(t, f)
	defer stop()
	for _, when := range []string{"once", "and again, since it was mended"} {
		proof, err := f.Inject(t.Context(), partition())
		provenIn(t, when, proof, err, "")
		if !s.wentOn() {
			t.Errorf("%s: told %q", when, s.told)
		}
	}
	servers[0].Close()
	proof, err := f.Inject(t.Context(), partition())
	provenIn(t, "nobody is there", proof, err, "0 of 1 lock servers answered before")
}

// TestNodeRestart: the lock must have been on a bare majority, or on all nodes, and be gone from
// the killed node. Other keys on the other nodes are deleted.
func TestNodeRestart(t *testing.T) {
	const key = "lock:{apple}"
	for _, c := range []struct {
		name  string
		has   string // the keys of each node: a is the held buyer's, - is none
		keeps bool
		want  string
	}{
		{"a bare majority", "aaabc", false, ""},
		{"a minority", "cab-a", false, "no majority"},
		{"not the first nodes", "b-aaa", false, ""},
		{"all of them, which it need not", "aaaaa", false, "on all 5 nodes, and not on a bare majority"},
		{"two who share them", "aabbc", false, "no majority"},
		{"more than it needs", "aaaab", false, "on 4 of 5 nodes, and not on a bare majority"},
		{"nobody's", "-----", false, "no majority"},
		{"it comes back with its file", "aaa--", true, "came back with what it had"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, s, nodes := newHeld(t, lockstrategy.NeedsRedlock, 5)
			for i, node := range nodes {
				node.keeps = c.keeps
				if value := c.has[i : i+1]; value != "-" {
					node.HSet(key, value, "1")
				}
			}
			stop := selling(t, f)
			defer stop()
			proof, err := f.Inject(t.Context(), nodeRestart())
			provenIn(t, c.name, proof, err, c.want)
			if !s.wentOn() {
				t.Errorf("told %q", s.told)
			}
			if c.want != "" {
				return
			}
			left := ""
			for _, node := range nodes {
				if all, _ := node.HKeys(key); len(all) == 1 {
					left += all[0]
				} else {
					left += "-"
				}
			}
			if want := map[string]string{"aaabc": "-aa--", "b-aaa": "---aa"}[c.has]; left != want {
				t.Errorf("the nodes have %s, want %s", left, want)
			}
		})
	}
}

// TestNodeRestartOfAll: if others buy units while the lock is not granted, the lock needs the nodes
// that are cut off, and then gets all nodes. Without sales to others this is unknown.
func TestNodeRestartOfAll(t *testing.T) {
	const key = "lock:{apple}"
	for has, want := range map[string]string{"aaaaa": "", "abcde": "", "aaaab": "on 4 of 5 nodes, and not on a bare majority"} {
		f, s, nodes := newHeld(t, lockstrategy.NeedsRedlock, 5)
		s.notBefore = 2
		for i, node := range nodes {
			node.HSet(key, has[i:i+1], "1")
		}
		stop := selling(t, f)
		proof, err := f.Inject(t.Context(), nodeRestart())
		stop()
		provenIn(t, has, proof, err, want)
		if nodes[0].Exists(key) != (want != "") || !nodes[4].Exists(key) {
			t.Errorf("%s: the nodes have %v and %v", has, nodes[0].Keys(), nodes[4].Keys())
		}
	}
	f, s, _ := newHeld(t, lockstrategy.NeedsRedlock, 5)
	s.notBefore = 2
	proof, err := f.Inject(t.Context(), nodeRestart())
	provenIn(t, "nobody is sold a unit", proof, err, "in time")
}

// TestLeaseRevoked: there is no lease without a coordinator.
func TestLeaseRevoked(t *testing.T) {
	f, s, _ := newHeld(t, lockstrategy.NeedsRedis, 1)
	proof, err := f.Inject(t.Context(), leaseRevoked())
	provenIn(t, "no etcd", proof, err, "no coordinator was there")
	if !s.wentOn() {
		t.Errorf("told %q", s.told)
	}
}

// TestWhyNot: an engine without servers of its own offers the faults of processes. For every other
// fault it says what is missing.
func TestWhyNot(t *testing.T) {
	e := &engine.Engine{}
	for _, f := range OfRush() {
		struck, why := promise.Struck(f.Name), f.WhyNot(e)
		if ofServer := struck != nil || f.Name == promise.DBKill; ofServer != (why != "") {
			t.Errorf("%s: %q", f.Name, why)
		}
		if f.Unused(nil) == "" != (struck == nil) {
			t.Errorf("%s strikes %v, and of a strategy without needs: %q", f.Name, struck, f.Unused(nil))
		}
	}
	for _, f := range OnEngine(e) {
		if f.WhyNot(e) != "" {
			t.Errorf("%s is offered", f.Name)
		}
	}
}
