package quorum

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	redsyncredis "github.com/go-redsync/redsync/v4/redis"

	"github.com/oversell/oversell/internal/expect"
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

// TestEach: the function Each gives up a minority of silent nodes after a while, and asks a majority
// of slow nodes again. Nodes that refuse fail at once.
func TestEach(t *testing.T) {
	const second = time.Second
	refused := errors.New("refused")
	for _, c := range []struct {
		name  string
		after [3]time.Duration // time until each node answers
		err   error            // the answer of the nodes
		took  time.Duration
		fails bool
	}{
		{"at once", [3]time.Duration{0, 0, 0}, nil, 0, false},
		{"one is slow", [3]time.Duration{0, second, 0}, nil, second, false},
		{"one is silent", [3]time.Duration{0, time.Hour, 0}, nil, 2 * second, false},
		{"two are slow", [3]time.Duration{0, 5 * second, 7 * second}, nil, 5 * second, false},
		{"two are silent", [3]time.Duration{0, time.Hour, time.Hour}, nil, 10 * second, true},
		{"all refuse", [3]time.Duration{0, 0, 0}, refused, 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			err := Each(t.Context(), 3, func(ctx context.Context, node int) error {
				ctx, cancel := context.WithTimeout(ctx, 2*second) // as the Redis client of a node does
				defer cancel()
				select {
				case <-time.After(c.after[node] - time.Since(start)):
					return c.err
				case <-ctx.Done():
					return ctx.Err()
				}
			})
			if took := time.Since(start); took != c.took || (err != nil) != c.fails {
				t.Errorf("%s: %v after %s, want %s and an error %v", c.name, err, took, c.took, c.fails)
			}
		})
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
	expect.ErrorIs(t, ask(), errLeftOut, "just after the time-out")
	clock = clock.Add(2 * time.Second)
	if err := ask(); errors.Is(err, errLeftOut) || silent.Pool.(*pool).asked != 1 {
		t.Errorf("after the pause: %v, asked %d times, want once", err, silent.Pool.(*pool).asked)
	}
	expect.ErrorIs(t, ask(), errLeftOut, "a second buyer after the pause")
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
