package deps

import (
	"context"
	"time"
)

// An EventKind says what happened to a lock.
type EventKind string

// The events of one buy. Lost can also come before Released.
const (
	Waiting  EventKind = "waiting"
	Acquired EventKind = "acquired"
	Released EventKind = "released" // the lock is about to be given back; the buyer writes no more
	Lost     EventKind = "lost"     // the critical section's context ended because the lease was lost, or the release found another holder or none
)

// An Event is one step of one buyer at one lock.
type Event struct {
	Kind      EventKind
	At        time.Time
	Strategy  string
	Product   string
	Purchaser string
	Token     string // identifies the holder of the lock; "" if the lock has no tokens
}

// An Observer receives each lock event. The buyer waits until it returns, so it must return
// quickly. Several goroutines may call it at once.
type Observer func(ctx context.Context, e Event)

// Report sends the event to the observer, if there is one.
func (d Deps) Report(ctx context.Context, e Event) {
	if d.Observe == nil {
		return
	}
	e.At = d.Now()
	d.Observe(ctx, e)
}
