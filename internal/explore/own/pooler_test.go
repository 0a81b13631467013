package own_test

import (
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// TestPoolerRefused: behind a pooler, the explorer might inspect and end sessions of other users,
// so it refuses to run.
func TestPoolerRefused(t *testing.T) {
	tier.Soak(t, "needs PgBouncer")
	server := localservertest.Postgres(t)
	pooler, err := server.Pooler()
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{
		DB: strings.Replace(server.URL(), server.Address(), pooler.Address(), 1), Wait: enginetest.Wait, Conns: 4,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	x, err := explore.New(t.Context(), exploretest.Config(e, exploretest.Entry(t, "transaction")))
	if err == nil {
		defer x.Close()
		_, err = x.Search(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "this is a connection pooler, which hides the connection that sends a command: give the explorer the database's own address") {
		t.Errorf("%v", err)
	}
}
