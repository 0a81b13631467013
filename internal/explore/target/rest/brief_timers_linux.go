package rest

import "time"

// BriefTimers waits for brief timers of the programs, for example the timer for a job after an answer. Such a timer
// belongs to the step that sets it. But the speed of the machine decides how soon it fires. Without the wait, its
// command would come at another step in another run. Finding a standstill includes this wait, whether or not a command
// follows. In a shared instance, the search decides about such pauses instead.
type BriefTimers struct {
	Rest  *Rest
	since time.Time // when a brief timer was first seen since the last standstill; zero: none was
}

const (
	briefTimer = 5 * time.Millisecond   // maximum time until a brief timer fires
	mostBrief  = 500 * time.Millisecond // a program that has brief timers for longer than this sets them without end
)

// IsRestful works like Rest.IsRestful, and also returns false while a program has a brief timer.
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

// pending reports whether a sleeping program has a brief timer. The timers of a restless program, which sets them
// without end, do not count.
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
