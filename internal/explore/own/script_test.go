package own_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/exploretest"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
	"github.com/oversell/oversell/internal/purchase"
)

// scripted sends one script and sells nothing.
type scripted struct{ deps lockstrategy.Deps }

var increment = redis.NewScript("-- Counts.\nreturn redis.call('incr', KEYS[1])")

func (s scripted) Buy(ctx context.Context, _ purchase.Order) (purchase.Receipt, error) {
	if err := increment.Run(ctx, s.deps.Redis, []string{"test:counter"}).Err(); err != nil {
		return purchase.Receipt{}, purchase.ErrBusy // a strategy may swallow this error
	}
	return purchase.Receipt{}, purchase.ErrBusy
}

// TestScriptNotDescribed: the explorer does not guess the effect of a script from its text. It
// refuses a script without a description, and names it.
func TestScriptNotDescribed(t *testing.T) {
	e := enginetest.Embedded(t)
	entry := lockstrategy.Entry{
		Name: "scripted", Needs: []lockstrategy.Need{lockstrategy.NeedsRedis},
		New: func(d lockstrategy.Deps) purchase.Strategy { return scripted{d} },
	}
	_, err := exploretest.Open(t, exploretest.Config(e, entry)).Search(t.Context())
	if !errors.Is(err, explore.ErrHarness) || !strings.Contains(err.Error(), increment.Hash()) || !strings.Contains(err.Error(), "Entry.Scripts") {
		t.Errorf("got %v, want a harness error that names the script and says where to describe it", err)
	}
	entry.Scripts = []redisscript.Description{{SHA: increment.Hash(), Name: "count", Role: redisscript.Change}}
	result, err := exploretest.Open(t, exploretest.Config(e, entry)).Search(t.Context())
	if err != nil || !result.Complete {
		t.Errorf("described: complete %v, %v", result.Complete, err)
	}
}
