package effect_test

import (
	"bytes"
	"testing"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// TestRedis: only real reads count as reads. An answer counts as a proof that nothing has changed
// only if it is one.
func TestRedis(t *testing.T) {
	for _, c := range []struct {
		command         string
		effect          schedule.Effect
		answer          effect.RedisAnswer
		changed, failed bool
	}{
		{"get a", schedule.Reads, effect.Nil, false, true},
		{"EXISTS a", schedule.Reads, effect.Zero, false, false},
		{"PING", schedule.Local, effect.Value, false, false},
		{"MEMORY USAGE a", schedule.Reads, effect.Nil, false, true},
		{"MEMORY STATS", schedule.Local, effect.Value, false, false},
		{"NEW.COMMAND a", schedule.Writes, effect.Nil, true, true},
		{"SET a 1 NX", schedule.Writes, effect.Nil, false, true},
		{"SET a 1 get", schedule.Writes, effect.Nil, true, false},
		{"GETSET a 1", schedule.Writes, effect.Nil, true, false},
		{"DEL a", schedule.Writes, effect.Zero, false, true},
		{"INCR a", schedule.Writes, effect.Zero, true, false},
		{"INCR a", schedule.Writes, effect.Refused, false, true},
		{"XREAD STREAMS a 0", schedule.Reads, effect.Nil, false, true},
		{"XREAD BLOCK 10 STREAMS a 0", schedule.Writes, effect.Nil, false, true},
		{"EVAL x 0", schedule.Writes, effect.Zero, true, true},
		{"EVALSHA x 0", schedule.Writes, effect.NoScript, false, true},
		{"EVAL_RO x 0", schedule.Reads, effect.Value, false, false},
	} {
		r := effect.RedisCommand(bytes.Fields([]byte(c.command)))
		changed, failed := r.Outcome(c.answer)
		if r.Effect() != c.effect || changed != c.changed || failed != c.failed {
			t.Errorf("%s: effect %d, changed %t, failed %t; want %d, %t, %t", c.command, r.Effect(), changed, failed, c.effect, c.changed, c.failed)
		}
	}
}
