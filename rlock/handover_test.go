package rlock

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// counter counts the commands that a client sends.
type counter struct {
	redis.Hook
	sent atomic.Int64
}

func (c *counter) DialHook(next redis.DialHook) redis.DialHook { return next }
func (c *counter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c.sent.Add(1)
		return next(ctx, cmd)
	}
}

func (c *counter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// rush makes that many goroutines of each client take the lock that often, and returns the longest
// wait.
func rush(t testing.TB, clients []*Client, newLock maker, name string, contenders, grants int, inside func(*Lease)) time.Duration {
	t.Helper()
	var group sync.WaitGroup
	var taken, worst atomic.Int64
	for _, c := range clients {
		lock := newLock(c, name)
		for range contenders {
			group.Go(func() {
				for taken.Add(1) <= int64(grants) {
					asked := time.Now()
					section(context.Background(), t, lock, func(lease *Lease) {
						waited := int64(time.Since(asked))
						for old := worst.Load(); waited > old && !worst.CompareAndSwap(old, waited); old = worst.Load() {
						}
						inside(lease)
					})
				}
			})
		}
	}
	group.Wait()
	return time.Duration(worst.Load())
}

// TestRush: 64 contenders of 8 clients all get the lock of each kind, one at a time. The tokens of a
// fenced lock grow. The handover of a plain lock costs few commands; BenchmarkHandOver has the
// figures: 1 to 1.5.
func TestRush(t *testing.T) {
	t.Parallel()
	const grants = 2000
	eachKind(t, func(t *testing.T, newLock maker) {
		sent := &counter{}
		var clients []*Client
		for range 8 {
			rdb := dial(t, onServer(t).addr)
			rdb.AddHook(sent)
			c := New(rdb)
			t.Cleanup(func() { _ = c.Close() })
			clients = append(clients, c)
		}
		var inside atomic.Int32
		var last int64 // the greatest token that the fenced resource has seen; also for the race detector
		rush(t, clients, newLock, name(t), 8, grants, func(lease *Lease) {
			if inside.Add(1) != 1 {
				t.Error("two are inside")
			}
			if token := lease.Token(); token != 0 && token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = lease.Token()
			inside.Add(-1)
		})
		if n := sent.sent.Load(); t.Name() == "TestRush/plain" && n > 4*grants {
			t.Errorf("%d commands for %d hand-overs, want 4 each at most", n, grants)
		}
	})
}

// BenchmarkHandOver measures 64 contenders for one lock with an empty section: the time of one
// handover, the longest wait, and the commands per handover.
func BenchmarkHandOver(b *testing.B) {
	for _, shape := range []struct {
		name                string
		clients, contenders int
		options             []ClientOption
	}{
		{"one client", 1, 64, nil},
		{"one client, offered to everybody", 1, 64, []ClientOption{HandOvers(0)}},
		{"8 clients", 8, 8, nil},
	} {
		b.Run(shape.name, func(b *testing.B) {
			sent := &counter{}
			var clients []*Client
			for range shape.clients {
				rdb := dial(b, onServer(b).addr)
				rdb.AddHook(sent)
				c := New(rdb, shape.options...)
				defer c.Close()
				clients = append(clients, c)
			}
			n := max(b.N, 20_000) // one hand-over says nothing, and -benchtime 1x asks for one
			b.ResetTimer()
			worst := rush(b, clients, (*Client).NewLock, name(b), shape.contenders, n, func(*Lease) {})
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "handovers/s")
			b.ReportMetric(worst.Seconds(), "worst-s")
			b.ReportMetric(float64(sent.sent.Load())/float64(n), "sent/handover")
		})
	}
}
