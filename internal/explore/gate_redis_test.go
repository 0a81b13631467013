package explore_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/gate"
)

type noNotes struct{}

func (noNotes) Note([]string)         {}
func (noNotes) Listen(string, string) {}

// TestGivenUpRedis: a command or a pipeline whose context has ended is not sent, and every command
// returns the error of the context.
func TestGivenUpRedis(t *testing.T) {
	like := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // not connected to
	defer like.Close()
	gates, scheduler := gate.New(nil), &atOnce{}
	client, err := gates.Client(like, 1, "redis", noNotes{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	gates.Attach(scheduler)
	defer gates.Attach(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := client.Set(ctx, "key", 1, 0).Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("a command: %v", err)
	}
	cmds, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, "key", 1, 0)
		p.Incr(ctx, "key")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a pipeline: %v", err)
	}
	for _, cmd := range cmds {
		if !errors.Is(cmd.Err(), context.Canceled) {
			t.Errorf("%s in a pipeline: %v", cmd.Name(), cmd.Err())
		}
	}
	for _, o := range scheduler.ops {
		if !o.GivenUp() || o.Changed {
			t.Errorf("%s: given up %t, changed %t", o.Name, o.GivenUp(), o.Changed)
		}
	}
	if len(scheduler.ops) != 2 {
		t.Errorf("%d commands at the gate, want 2", len(scheduler.ops))
	}
}
