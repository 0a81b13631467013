package redis

import (
	"math"
	"strconv"
	"time"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/wire"
)

// limit returns the time-out of a blocking command, as wire.Command.Limit defines it, and the same command without
// a time-out. For a command that cannot wait, or that Redis will refuse, it returns 0 and nil.
func limit(q *request) (limit time.Duration, unlimited []byte) {
	i, seconds, blocks := effect.RedisTimeout(q.args)
	if !blocks || i >= len(q.args) {
		return 0, nil
	}
	unit, text := time.Millisecond, string(q.args[i])
	if seconds {
		unit = time.Second
	} else if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return 0, nil
	}
	t, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || !(t >= 0 && t*float64(unit/time.Millisecond) < math.MaxInt64):
		return 0, nil
	case t == 0:
		return wire.Endless, nil
	case t*float64(unit) >= math.MaxInt64: // 292 years
		return math.MaxInt64, q.with(i, "0")
	}
	return max(1, time.Duration(t*float64(unit))), q.with(i, "0")
}
