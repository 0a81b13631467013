package rest

import "time"

// BriefTimers waits for the programs' brief timers. Such a timer belongs to the step that sets it, for
// example the timer for a job after an answer. How soon it fires depends on the speed of the machine.
// Without the wait, the timer's command would come at another step in another run. The wait is part of
// finding a standstill, so it does not matter whether a command follows. In a shared instance such a
// pause is a choice of the search.
type BriefTimers struct {
	Rest  *Rest
	since time.Time // time of the first check with a brief timer since the last standstill; zero: none
}

const (
	briefTimer = 5 * time.Millisecond   // maximum time until a brief timer fires
	mostBrief  = 500 * time.Millisecond // a program with brief timers for longer than this sets them without end
)

// IsRestful is Rest.IsRestful, and also returns false while a program has a brief timer.
func (b *BriefTimers) IsRestful() bool {
	b.Rest.gates.Pulse.Wake()
	return b.isQuiet()
}

func (b *BriefTimers) isQuiet() bool {
	pulse := b.Rest.gates.Pulse
	if pulse.Still() {
		return true
	}
	if !b.Rest.isQuiet() {
		return false
	}
	if b.pending() {
		pulse.Wake()
		return false
	}
	b.since = time.Time{}
	return true
}

// pending reports whether a program that sleeps has a brief timer. The timers of a restless program no longer count.
func (b *BriefTimers) pending() bool {
	if b.Rest.instances.Shared() {
		return false
	}
	for n, i := range b.Rest.instances.All {
		if i.Restless || !b.Rest.mayRun(n+1) || !i.Up() || !i.Program.Wakes(briefTimer) {
			continue
		}
		if b.since.IsZero() {
			b.since = time.Now()
		}
		if i.Restless = time.Since(b.since) > mostBrief; !i.Restless {
			return true
		}
	}
	return false
}
