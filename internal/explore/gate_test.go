package explore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore/gate"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/require"
)

// atOnce is a gate.Scheduler that releases and records every command at once.
type atOnce struct{ ops []*gate.Op }

func (s *atOnce) Free() bool    { return false }
func (s *atOnce) Dead(int) bool { return false }
func (s *atOnce) Sent()         {}

func (s *atOnce) Hear(r gate.Message) {
	if r.Kind == gate.Arrived {
		s.ops = append(s.ops, r.Op)
		r.Op.Decide(gate.Proceed)
	}
}

// TestChanged: a command reports only its own changes, not those of an earlier command on the connection. For a BEGIN,
// SQLite returns the number of rows that the last INSERT or UPDATE has changed, perhaps in an earlier
// schedule.
func TestChanged(t *testing.T) {
	ctx, e := t.Context(), enginetest.Embedded(t)
	require.NoError(t, product.Put(e.Admin.WithContext(ctx), "apple", 5))
	gates, scheduler := gate.New(nil), &atOnce{}
	connector := gates.NewConnector(serverstate.For(e.DB.Name(), nil), 1)
	pool, err := e.OpenWrapped(func(inner driver.Connector) driver.Connector {
		connector.Connector = inner
		return connector
	}, 1)
	require.NoError(t, err)
	t.Cleanup(func() {
		if db, err := pool.DB(); err == nil {
			_ = db.Close()
		}
	})
	gates.Attach(scheduler)
	defer gates.Attach(nil)
	const update = "UPDATE product SET amount = amount WHERE name = 'apple'"
	for _, statement := range []string{"BEGIN IMMEDIATE", "COMMIT", update, "BEGIN IMMEDIATE", "COMMIT", update + " AND amount < 0"} {
		require.NoError(t, pool.WithContext(ctx).Exec(statement).Error)
	}
	for i, o := range scheduler.ops {
		if want := i == 2; o.Changed != want {
			t.Errorf("command %d, %s: changed %t, want %t", i+1, o.Name, o.Changed, want)
		}
	}
	if len(scheduler.ops) != 6 {
		t.Errorf("%d commands have passed, want 6", len(scheduler.ops))
	}
}

type noNotes struct{}

func (noNotes) Note([]string)         {}
func (noNotes) Listen(string, string) {}

// TestGivenUpRedis: a command or a pipeline whose context has ended is not sent, and every command
// returns the error of the context.
func TestGivenUpRedis(t *testing.T) {
	like := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"}) // the test does not connect to it
	defer like.Close()
	gates, scheduler := gate.New(nil), &atOnce{}
	client, err := gates.Client(like, 1, "redis", noNotes{})
	require.NoError(t, err)
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
