package rlock

// Kind says what happened to a lock.
type Kind string

// The kinds of Event.
const (
	Waiting  Kind = "waiting"  // another holder has the lock, and the caller waits
	Acquired Kind = "acquired" // a lease was granted, the first or a reentrant one
	Renewed  Kind = "renewed"  // the watchdog extended the lease
	Lost     Kind = "lost"     // the lock was lost, and the contexts of its leases ended with ErrLost
	Released Kind = "released" // the holder's last lease was unlocked
)

// An Event is a change of a lock, reported for metrics, logs and tests.
type Event struct {
	Kind  Kind
	Name  string // name of the lock
	Field string // "uuid:id" of the holder
}

func (c *Client) report(kind Kind, name, field string) {
	if c.observe != nil {
		c.observe(Event{kind, name, field})
	}
}
