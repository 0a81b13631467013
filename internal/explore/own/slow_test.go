package own_test

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/tier"
)

// slow is longer than every time-out in a strategy: 1.5 s for one lock of a multi lock, 2 s for a
// release.
const slow = 2200 * time.Millisecond

// delayed makes a Redis answer one command late, like a machine that has stalled.
type delayed struct {
	mu    sync.Mutex
	left  int // commands until the late one
	hooks map[redis.UniversalClient]bool
}

func (d *delayed) watch(client redis.UniversalClient) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if client != nil && !d.hooks[client] {
		d.hooks[client] = true
		client.(*redis.Client).AddHook(d)
	}
}

func (d *delayed) due() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left--
	return d.left == 0
}

func (d *delayed) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (d *delayed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch strings.ToLower(cmd.Name()) {
		case "hello", "client", "select":
			return next(ctx, cmd)
		}
		if d.due() {
			time.Sleep(slow)
		}
		return next(ctx, cmd)
	}
}

func (d *delayed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// TestSlowMachine: a schedule runs in the same way however long a step takes. No time-out of a
// strategy may expire by itself. An earlier explorer let a multi lock time out while its buyer
// waited at node b; the buyer then released node a, which no schedule had decided.
func TestSlowMachine(t *testing.T) {
	e := enginetest.Embedded(t)
	for _, c := range []struct {
		strategy string
		line     string
		late     int // number of the late command, from 1
	}{
		{"multilock", "v1:multilock:b2:s1:1a.expire.2a.2b.1b.2c.2*5.2c.2b.2a.1b.1c.1.1c.1b.1a", 5},
		{"redisson", "v1:redisson:b2:s1:1*6.2.1.2*3", 2},
		{"redlock", "v1:redlock:b2:s1:1a.1b.1c.1*5.2a.2b.2c.1a.1b.1c.2a.2b.2c.2a.2b.2c.2.2a.2b.2c", 4},
	} {
		t.Run(c.strategy, func(t *testing.T) {
			if tier.Quick() && c.strategy != "multilock" {
				t.Skip("a late answer takes 2.2 s; -short has the case that was once lost")
			}
			entry := exploretest.Entry(t, c.strategy)
			late := &delayed{hooks: map[redis.UniversalClient]bool{}}
			build := entry.New
			entry.New = func(d lockstrategy.Deps) purchase.Strategy {
				late.watch(d.Redis)
				for _, node := range d.Redlock {
					late.watch(node)
				}
				return build(d)
			}
			config := exploretest.Config(e, entry)
			config.Events = []explore.Event{explore.Expire}
			x := exploretest.Open(t, config)
			quick, err := x.Replay(t.Context(), c.line)
			if err != nil {
				t.Fatal(err)
			}
			late.left = c.late
			again, err := x.Replay(t.Context(), c.line)
			if err != nil {
				t.Fatal(err)
			}
			if late.left > 0 {
				t.Errorf("no command was late: there were %d too few", late.left)
			}
			if again.Verdict != quick.Verdict || len(again.Steps) != len(quick.Steps) {
				t.Errorf("%s in %d steps, and with a late answer %s in %d", quick.Verdict, len(quick.Steps), again.Verdict, len(again.Steps))
			}
		})
	}
}
