package quorum

import (
	"context"
	"errors"
	"testing"
	"time"

	redsyncredis "github.com/go-redsync/redsync/v4/redis"

	"github.com/oversell/oversell/internal/purchase"
)

func TestMajority(t *testing.T) {
	down := errors.New("down")
	for _, c := range []struct {
		nodes, failed int
		holds         bool
	}{{5, 0, true}, {5, 2, true}, {5, 3, false}, {4, 1, true}, {4, 2, false}, {1, 1, false}} {
		errs := make([]error, c.nodes)
		for i := range c.failed {
			errs[i] = down
		}
		err := Majority(c.nodes, errs)
		var unavailable *purchase.Unavailable
		if (err == nil) != c.holds || err != nil && !(errors.As(err, &unavailable) && errors.Is(err, down)) {
			t.Errorf("%d of %d failed: %v, want none %v", c.failed, c.nodes, err, c.holds)
		}
	}
}

// pool is a node that never answers. It counts the requests.
type pool struct{ asked int }

func (p *pool) Get(context.Context) (redsyncredis.Conn, error) {
	p.asked++
	return nil, errors.New("no connection")
}

// TestSilentNode: a node that timed out is skipped during the pause, then asked once. It is never
// skipped while a majority is silent.
func TestSilentNode(t *testing.T) {
	clock := time.Unix(1000, 0)
	nodes := make([]*node, 3)
	for i := range nodes {
		nodes[i] = &node{Pool: &pool{}, all: nodes, pause: time.Second, now: func() time.Time { return clock }}
	}
	silent := nodes[0]
	silent.answered(context.DeadlineExceeded)
	ask := func() error { _, err := silent.Get(t.Context()); return err }
	if err := ask(); !errors.Is(err, errLeftOut) {
		t.Errorf("just after the time-out: %v, want that it is left out", err)
	}
	clock = clock.Add(2 * time.Second)
	if err := ask(); errors.Is(err, errLeftOut) || silent.Pool.(*pool).asked != 1 {
		t.Errorf("after the pause: %v, asked %d times, want once", err, silent.Pool.(*pool).asked)
	}
	if err := ask(); !errors.Is(err, errLeftOut) {
		t.Errorf("a second buyer after the pause: %v, want that it is left out", err)
	}
	nodes[1].answered(context.DeadlineExceeded)
	if err := ask(); errors.Is(err, errLeftOut) {
		t.Error("left out, though two of three nodes are silent")
	}
	nodes[1].answered(nil)
	silent.answered(nil)
	if err := ask(); errors.Is(err, errLeftOut) {
		t.Error("left out, though it has answered again")
	}
}
