package own_test

import (
	"context"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
)

// TestTimeoutShown: a buyer whose wait times out sees the error of its database.
func TestTimeoutShown(t *testing.T) {
	for _, c := range []struct {
		engine   string
		strategy string
		line     string
		command  string
		result   string
	}{
		{"embedded", "for-update", "v1:for-update:b2:s1:1.2.timeout2.1*4", "BEGIN IMMEDIATE", "database is locked"},
		{"local", "for-update", "v1:for-update:b2:s1:1*2.2*2.timeout2.2.1*3", "(timed out) SELECT", "1205"},
		{"local", "named-lock", "v1:named-lock:b2:s1:1.2.timeout2.1*6", "(timed out) SELECT GET_LOCK", "=0"},
		{"postgres", "for-update", "v1:for-update:b2:s1:1*2.2*2.timeout2.2.1*3", "(timed out) SELECT", "55P03"},
		{"postgres", "named-lock", "v1:named-lock:b2:s1:1*2.2*2.timeout2.2.1*4", "(timed out) SELECT pg_advisory_xact_lock", "55P03"},
	} {
		t.Run(c.engine+"/"+c.strategy, func(t *testing.T) {
			e := map[string]func(*testing.T) *engine.Engine{
				"embedded": enginetest.Embedded, "local": enginetest.Local, "postgres": enginetest.Postgres,
			}[c.engine]
			entry := exploretest.Entry(t, c.strategy)
			config := exploretest.Config(e(t), entry)
			config.Events = []explore.Event{explore.Timeout}
			x := exploretest.Open(t, config)
			w, err := x.Replay(context.WithoutCancel(t.Context()), c.line)
			if err != nil {
				t.Fatal(err)
			}
			if w.Broken() || w.Outcomes[0].Answer != "sold" || w.Outcomes[1].Answer != "busy" {
				t.Errorf("%s, %+v", w.Verdict, w.Outcomes)
			}
			for _, s := range w.Steps {
				if strings.HasPrefix(s.Command, c.command) && strings.Contains(s.Result, c.result) {
					exploretest.Replays(t, x, w)
					return
				}
			}
			t.Errorf("no step is %q with %q: %+v", c.command, c.result, w.Steps)
		})
	}
}
