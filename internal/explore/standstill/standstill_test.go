package standstill_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/explore/own"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/standstill"
	"github.com/oversell/oversell/internal/require"
)

// parkTimeout limits how long a goroutine may take to reach its wait.
const parkTimeout = 30 * time.Second

// TestMarks lets goroutines wait in each function that the package searches for in stacks. It fails if such a function
// is renamed, here or in a library.
func TestMarks(t *testing.T) {
	e := enginetest.Embedded(t)
	var stacks string
	look := func() {
		buf := make([]byte, 1<<20)
		stacks += string(buf[:runtime.Stack(buf, true)])
	}
	for _, c := range []struct {
		strategy string
		events   []schedule.Event
		steps    []string // the first steps
		front    own.Front
	}{
		{"redisson", []schedule.Event{"renew"}, []string{"1", "2", "renew1"}, ""}, // buyer 2 listens while buyer 1's watchdog renews
		{"redlock", nil, nil, own.SoldOutCheck},
	} {
		spec := own.Spec{Engine: e, Strategy: exploretest.Entry(t, c.strategy), Buyers: 2, Stock: 1, Product: "marks", Events: c.events, Front: c.front}
		x, err := own.New(t.Context(), spec)
		require.NoError(t, err)
		_, err = x.Run(t.Context(), func(p *schedule.Point) (string, error) {
			look()
			if p.Depth < len(c.steps) {
				return c.steps[p.Depth], nil
			}
			return p.FirstMove(), nil
		}, false)
		require.NoError(t, errors.Join(err, x.Close()))
	}
	connecting := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		look()
		return nil, errors.New("no server")
	}})
	defer connecting.Close()
	_, _ = connecting.Subscribe(t.Context(), "channel").Receive(t.Context())
	askPostgres(t, look)
	if unseen := standstill.NewGoroutines(nil, own.Entries()...).Unseen(stacks); len(unseen) > 0 {
		t.Errorf("no stack has %q: marks.go does not know how they are called now", unseen)
	}
}

// askPostgres calls the function look while PostgreSQL's driver waits for an answer, after the driver's own read
// time-out.
func askPostgres(t *testing.T, look func()) {
	t.Helper()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	ctx, hangUp := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() {
		_, err := pgconn.Connect(ctx, "postgres://nobody@"+silent.Addr().String()+"/nothing?sslmode=disable")
		given <- err
	}()
	server, err := silent.Accept()
	require.NoError(t, err)
	defer server.Close()
	if _, err := server.Read(make([]byte, 1)); err != nil { // the driver has sent its request
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	look()
	hangUp()
	<-given
}

// wait and spin are functions that this test passes to NewGoroutines.
func wait(until chan struct{}) { <-until }

func spin(stop *atomic.Bool) {
	for !stop.Load() {
		runtime.Gosched()
	}
}

// TestAtRest: a goroutine that waits for another goroutine is at rest. A running goroutine is not.
func TestAtRest(t *testing.T) {
	g := standstill.NewGoroutines(nil, wait, spin)
	until := make(chan struct{})
	go wait(until)
	eventually(t, "the goroutine waits", g.AtRest)
	if g.Ended() {
		t.Error("ended while one waits")
	}
	var stop atomic.Bool
	go spin(&stop)
	for range 20 {
		if g.AtRest() {
			t.Fatal("at rest while one runs")
		}
	}
	stop.Store(true)
	close(until)
	eventually(t, "both have ended", g.Ended)
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(parkTimeout); !done(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s", what)
		}
	}
}

func parked(until chan struct{}) { <-until }

// TestLeftBehind: goroutines that remain from a failed exploration do not block the next exploration. The next
// exploration's own goroutines do.
func TestLeftBehind(t *testing.T) {
	before, own := make(chan struct{}), make(chan struct{})
	defer close(before)
	go parked(before)
	for deadline := time.Now().Add(parkTimeout); standstill.NewGoroutines(nil, parked).Left() == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the goroutine is not seen")
		}
	}
	g := standstill.NewGoroutines(nil, parked)
	if !g.Ended() {
		t.Error("what was there before counts")
	}
	go parked(own)
	for deadline := time.Now().Add(parkTimeout); g.Ended(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("its own goroutine does not count")
		}
	}
	close(own)
	for deadline := time.Now().Add(parkTimeout); !g.Ended(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it has ended, and still counts")
		}
	}
}

// TestAnswer: a goroutine that waits for PostgreSQL's answer to a released command is at rest. It is not at rest
// while it connects or checks a connection, even if another goroutine of the driver reads.
func TestAnswer(t *testing.T) {
	const (
		pgx  = "github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).Read"
		gate = "github.com/oversell/oversell/internal/explore/gate.(*Gates).Pass"
	)
	g := standstill.NewGoroutines(nil)
	for _, c := range []struct {
		state, functions string
		want             bool
	}{
		{"IO wait", pgx, false},
		{"sync.Cond.Wait", pgx, false}, // another goroutine reads
		{"IO wait", pgx + gate, true},
		{"sync.Cond.Wait", pgx + gate, true},
		{"sync.Cond.Wait", "", true},
	} {
		if got := g.Waits(c.state, c.functions); got != c.want {
			t.Errorf("%s in %q: %t, want %t", c.state, c.functions, got, c.want)
		}
	}
}
