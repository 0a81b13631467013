package target

import "time"

// briefTimers waits for the programs' brief timers. Such a timer belongs to the step that sets it, for
// example the timer for a job after an answer. How soon it fires depends on the speed of the machine.
// Without the wait, its command would come one step earlier or later in another run. The wait is part of
// finding a standstill, so it does not matter whether a command follows. In a shared instance such a
// pause is a choice, see pause.
type briefTimers struct {
	*run
	since time.Time // first look that found a brief timer since the last standstill; zero: none did
}

const (
	briefTimer = 5 * time.Millisecond   // maximum time until a brief timer fires
	mostBrief  = 500 * time.Millisecond // a program with brief timers for longer than this sets them without end
)

// quiet is rest.quiet, and also returns false while a program has a brief timer.
func (b *briefTimers) quiet() bool {
	if b.rest.still() {
		return true
	}
	if !b.rest.quiet() {
		return false
	}
	if b.pending() {
		b.x.gateTable.wake()
		return false
	}
	b.since = time.Time{}
	return true
}

// restful is rest.restful, and also returns false while a program has a brief timer.
func (b *briefTimers) restful() bool {
	b.x.gateTable.wake()
	return b.quiet()
}

// pending reports whether a program that sleeps has a brief timer. Those of a restless program no longer
// count.
func (b *briefTimers) pending() bool {
	if b.x.shared {
		return false
	}
	for n, i := range b.x.instances.all {
		if i.restless || !b.rest.mayRun(n+1) || !i.up() || !i.program.Wakes(briefTimer) {
			continue
		}
		if b.since.IsZero() {
			b.since = time.Now()
		}
		if i.restless = time.Since(b.since) > mostBrief; !i.restless {
			return true
		}
	}
	return false
}
