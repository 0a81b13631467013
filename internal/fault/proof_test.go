package fault

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/judge/history"
	"github.com/oversell/oversell/internal/load/buyers"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/testbed"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
)

// Each proof accepts a fault that took effect and rejects the nearest case that did not. A cell
// without proof is inconclusive.

// answerer is the environment variable that makes this test program answer as a shop's process does.
const answerer = "FAULT_TEST_ANSWERER"

func TestMain(m *testing.M) {
	if os.Getenv(answerer) == "" {
		os.Exit(m.Run())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(localserver.Listening + "http://" + l.Addr().String())
	panic(http.Serve(l, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
}

// proven fails the test unless err is nil for a fault that took effect (struck), and ErrMissed for any other.
func proven(t *testing.T, name, proof string, err error, struck bool) {
	t.Helper()
	want := ""
	if !struck {
		want = ErrMissed.Error()
	}
	provenIn(t, name, proof, err, want)
}

// provenIn fails the test unless the fault took effect, or missed for the reason in want.
func provenIn(t *testing.T, name, proof string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && (err != nil || proof == ""):
		t.Errorf("%s: %q, %v; want a proof", name, proof, err)
	case want != "" && (!errors.Is(err, ErrMissed) || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: %q, %v; want that it missed: %s", name, proof, err, want)
	}
}

// TestForgot: a Redis that reloads its file has forgotten nothing, and neither has a Redis without
// keys of the product.
func TestForgot(t *testing.T) {
	ctx := t.Context()
	g := localservertest.Group(t)
	for _, c := range []struct {
		name   string
		start  func(*localserver.Group) (*localserver.Redis, error)
		key    string
		struck bool
	}{
		{"empty", localserver.StartRedis, "lock:apple", true},
		{"with its file", localserver.StartDurableRedis, "lock:apple", false},
		{"it had another product's", localserver.StartRedis, "lock:pear", false},
	} {
		r, err := c.start(g)
		require.NoError(t, err)
		node := &redisNode{r, nil}
		client := node.client()
		require.NoError(t, client.Set(ctx, c.key, "token", time.Hour).Err())
		before, err1 := node.keysOf(ctx, "apple")
		err2 := restart(node)
		after, err3 := node.keysOf(ctx, "apple")
		require.NoError(t, errors.Join(err1, err2, err3, client.Close()))
		proof, err := forgot("Redis", before, after)
		proven(t, c.name, proof, err, c.struck)
	}
}

// TestLacked: a replica that was not cut off has all data of the primary.
func TestLacked(t *testing.T) {
	ctx := t.Context()
	g := localservertest.Group(t)
	s := &redisServers{redis: startNode(t, g), replica: startNode(t, g)}
	require.NoError(t, s.replicate(ctx))
	client := s.redis.client()
	defer client.Close()
	for _, c := range []struct {
		name   string
		cut    bool
		struck bool
	}{{"not cut off", false, false}, {"cut off", true, true}} {
		if c.cut {
			s.cord.Cut()
		}
		require.NoError(t, client.Incr(ctx, "stock:apple").Err())
		written, err1 := s.redis.keysOf(ctx, "apple")
		copied, err2 := s.replica.keysOf(ctx, "apple")
		for deadline := time.Now().Add(10 * time.Second); !c.cut && lacking(written, copied) > 0 && time.Now().Before(deadline); {
			copied, err2 = s.replica.keysOf(ctx, "apple")
		}
		require.NoError(t, errors.Join(err1, err2))
		proof, err := lacked(written, copied)
		proven(t, c.name, proof, err, c.struck)
	}
}

func startNode(t *testing.T, g *localserver.Group) *redisNode {
	t.Helper()
	r, err := localserver.StartRedis(g)
	require.NoError(t, err)
	return &redisNode{r, nil}
}

// TestHeldOn: the lock must be on a bare majority of the nodes, or on all nodes.
func TestHeldOn(t *testing.T) {
	for n, struck := range []bool{0: false, 1: false, 2: false, 3: true, 4: false, 5: true} {
		how, err := heldOn(grant{nodes: make([]*redisNode, n), all: 5})
		proven(t, fmt.Sprintf("on %d of 5", n), how, err, struck)
	}
	running := []*redisNode{startNode(t, localservertest.Group(t))}
	if _, err := withoutMajority(t.Context(), &Testbed{}, running); !errors.Is(err, ErrMissed) {
		t.Errorf("no node was killed: %v", err)
	}
}

// TestJumped: a clock that was not moved, or cannot be moved, is no proof.
func TestJumped(t *testing.T) {
	g := localservertest.Group(t)
	own, err := newClocks(g)
	if err != nil || own.missing != "" {
		t.Fatal(err, own.missing) // apt-get install gcc
	}
	for _, c := range []struct {
		name   string
		clocks *clocks
		offset time.Duration
		struck bool
	}{{"an hour", own, time.Hour, true}, {"not at all", own, 0, false}, {"no clock", &clocks{missing: "no compiler"}, time.Hour, false}} {
		s := &redisServers{group: g, clocks: c.clocks}
		require.NoError(t, s.startReplica())
		if s.replica.clock != nil {
			require.NoError(t, s.replica.clock.set(c.offset))
		}
		ahead, err := s.replica.ahead(t.Context())
		require.NoError(t, err)
		proof, err := jumped(ahead)
		proven(t, c.name, proof, err, c.struck)
	}
	if _, err := clockJump().Inject(t.Context(), &Testbed{Servers: &Servers{redisServers: redisServers{clocks: &clocks{missing: "no compiler"}}}}); !errors.Is(err, ErrMissed) {
		t.Errorf("no shim: %v, want that it missed", err)
	}
	t.Setenv("PATH", "")
	if _, err := buildShim(t.TempDir()); err == nil || !strings.Contains(err.Error(), "apt-get install gcc") {
		t.Errorf("no compiler: %v", err)
	}
}

// TestClockDiffers: a clock that is ahead by less than a lease is no proof.
func TestClockDiffers(t *testing.T) {
	t.Parallel()
	for ahead, struck := range map[time.Duration]bool{3 * time.Second: true, 2 * time.Second: false, 0: false} {
		proof, err := clockDiffers(ahead, 2*time.Second)
		proven(t, ahead.String(), proof, err, struck)
	}
}

// TestScarce: a pool with enough connections is no proof, and neither is an unused pool or a small number of
// buyers.
func TestScarce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		conns  int64
		called int
		struck bool
	}{{fewConns, waiters, true}, {1, waiters, true}, {fewConns + 1, waiters, false}, {0, waiters, false}, {fewConns, waiters - 1, false}} {
		proof, err := scarce(c.conns, c.called)
		proven(t, fmt.Sprint(c), proof, err, c.struck)
	}
}

// TestLeaseTooShort: if Redis was fast, or the holder was stopped for less than its lease, the fault did not
// take effect.
func TestLeaseTooShort(t *testing.T) {
	t.Parallel()
	lost := []buyers.Answer{{Answer: audit.Answer{Outcome: purchase.LockLost}}, {}}
	for _, c := range []struct {
		quickest, held time.Duration
		struck         bool
	}{{slowness, tinyLease, true}, {slowness - 1, tinyLease, false}, {slowness, tinyLease - 1, false}} {
		proof, err := leaseTooShort(c.quickest, c.held, lost)
		proven(t, fmt.Sprint(c), proof, err, c.struck)
		if c.struck && !strings.Contains(proof, "1 of 2 buyers noticed") {
			t.Errorf("%s: it does not count those that lost their lock", proof)
		}
	}
}

// TestAnotherLed: the same leader as before is no proof, and neither is a new leader without the holder's lock.
func TestAnotherLed(t *testing.T) {
	t.Parallel()
	came := time.Now()
	told := leaderless([]buyers.Answer{
		{Answer: audit.Answer{Outcome: purchase.Sold, Purchaser: "leaderless-0", Start: came, End: came.Add(time.Second)}},
		{Answer: audit.Answer{Outcome: purchase.Failed, Purchaser: "leaderless-1", Start: came, End: came.Add(7 * time.Second)}},
		{Answer: audit.Answer{Outcome: purchase.Sold, Purchaser: "late-0", Start: came, End: came.Add(9 * time.Second)}},
	})
	for _, c := range []struct {
		before, after int
		knows, struck bool
	}{{1, 3, true, true}, {1, 1, true, false}, {1, 3, false, false}} {
		proof, err := anotherLed(c.before, c.after, c.knows, time.Second, 2*time.Second, told)
		proven(t, fmt.Sprint(c), proof, err, c.struck)
		if want := "1 of the 2 buyers that came in between bought, the last was answered after 7s"; c.struck && !strings.Contains(proof, want) {
			t.Errorf("%s: it does not say %q", proof, want)
		}
	}
}

// TestUnanswered: only a stopped process leaves a question unanswered until it runs on. A killed
// process never answers.
func TestUnanswered(t *testing.T) {
	process, err := testbed.StartShop(t.Context(), localservertest.Group(t), engine.Config{}, func(string) *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{answerer + "=1"}
		return cmd
	}, nil)
	require.NoError(t, err)
	shop, times := &CellShop{ShopProcess: process}, Times{Wait: 7 * time.Second, Lease: 16 * time.Second} // a busy machine answers late
	if _, silent := unanswered(t.Context(), shop, times); silent {
		t.Error("a process that runs is taken for stopped")
	}
	require.NoError(t, shop.Freeze())
	answer, silent := unanswered(t.Context(), shop, times)
	if !silent || len(answer) > 0 {
		t.Error("a process that is stopped is taken for running")
	}
	require.NoError(t, shop.Thaw())
	if !<-answer {
		t.Error("it did not answer when it ran on")
	}
	require.NoError(t, shop.Kill())
	if shop.Answers(t.Context(), time.Second) {
		t.Error("it answers after it was killed")
	}
}

// TestUnderLoad: the database must have been killed while the shop sold. Otherwise it had nothing to lose.
func TestUnderLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		before int64
		gone   bool
		cut    int
		struck bool
	}{
		{"while it sold", enough, true, 1, true},
		{"no load", 0, true, 0, false},
		{"a load too small", enough - 1, true, 1, false},
		{"it was there", enough, false, 1, false},
		{"nobody was under way", enough, true, 0, false},
	} {
		proof, err := underLoad("database", c.before, c.gone, c.cut, 0)
		proven(t, c.name, proof, err, c.struck)
	}
	at := time.Now()
	answer := func(start, end time.Duration) buyers.Answer {
		return buyers.Answer{Answer: audit.Answer{Start: at.Add(start), End: at.Add(end)}}
	}
	if n := underWay([]buyers.Answer{answer(-2, -1), answer(-1, 1), answer(1, 2)}, at); n != 1 {
		t.Errorf("%d under way, want the one who had asked and had no answer", n)
	}
	db := localservertest.MySQL(t)
	if isDown(db.Address()) {
		t.Error("a database that answers is taken for gone")
	}
	require.NoError(t, db.Kill())
	if !isDown(db.Address()) {
		t.Error("a database that was killed is taken for there")
	}
}

// TestHeld: answers that come sooner than half the delay were not delayed.
func TestHeld(t *testing.T) {
	t.Parallel()
	for took, struck := range map[time.Duration]bool{late: true, late / 3: false} {
		proof, err := held(took)
		proven(t, took.String(), proof, err, struck)
	}
}

// TestPart: a partition proves nothing if a question gets through, or if no server answered before.
func TestPart(t *testing.T) {
	redis := localservertest.Redis(t)
	links, err := testbed.NewLinks([]engine.LockServer{{Need: string(lockstrategy.NeedsRedis), Restartable: redis}})
	require.NoError(t, err)
	defer links.Cut()
	bed := newTestBed(t, "apple")
	proof, err := part(bed, links, 300*time.Millisecond)
	proven(t, "parted", proof, err, true)
	require.NoError(t, bed.repair(t.Context()))
	if n := links.Answering(10 * time.Second); n != 1 {
		t.Errorf("%d servers answer after the repair", n)
	}
	require.NoError(t, redis.Kill())
	proof, err = part(bed, links, 300*time.Millisecond)
	proven(t, "nobody is there", proof, err, false)
	proof, err = parted(1, 1, 1)
	proven(t, "a question gets through", proof, err, false)
}

// newTestBed returns a testbed with a history and nothing else.
func newTestBed(t *testing.T, product string) *Testbed {
	t.Helper()
	log, err := history.NewLog("")
	require.NoError(t, err)
	return &Testbed{Product: product, Log: log}
}
