// Package history records the events of a run: when a buyer called, what happened at the lock, and how the
// buyer was answered. It defines the event type and a log; cmd/shop connects publishers and listeners.
package history

import "time"

// A Kind is the kind of an event.
type Kind string

// The kinds, in the order in which they occur in one buy. Only strategies with a lock report Waiting, Acquired,
// Released and Lost.
const (
	Call     Kind = "call"
	Waiting  Kind = "waiting"
	Acquired Kind = "acquired"
	Released Kind = "released" // the lock is about to be released; this buyer writes no more
	Lost     Kind = "lost"     // the holder knows that its lease is lost: its context has ended, or its release found the lock gone
	Return   Kind = "return"
	Replay   Kind = "replay" // a return that repeats the answer to an earlier request with the same Idempotency-Key

	// Armed, Holding and Resumed come from a failpoint, see internal/fault/failpoint.
	Armed   Kind = "armed"
	Holding Kind = "holding" // the buyer has the lock, has not written yet, and is stopped
	Resumed Kind = "resumed"

	// Clock belongs to no buyer: the clock of the process was set to the time in Outcome.
	Clock Kind = "clock"
	// Pool belongs to no buyer: Amount is the largest number of connections that the pool of the
	// process's buyers had at one time.
	Pool Kind = "pool"

	// Struck comes from the fault. Outcome describes its effect and names the process.
	Struck Kind = "struck"

	// Answered is the buyer's answer as the client received it. The shop may have ended meanwhile.
	Answered Kind = "answered"

	// Restocked belongs to no buyer: stock and records of the product start again with Amount
	// units.
	Restocked Kind = "restocked"
)

// An Event is one step of one buyer, or concerns the whole shop, such as a restock.
type Event struct {
	Kind      Kind      `json:"kind"`
	At        time.Time `json:"at"`
	Strategy  string    `json:"strategy"`
	Product   string    `json:"product"`
	Purchaser string    `json:"purchaser"`
	Token     string    `json:"token,omitempty"`   // identifies the holder to the lock
	Outcome   string    `json:"outcome,omitempty"` // outcome of a return
	Amount    int64     `json:"amount,omitempty"`  // units of a call, a sale or a restock; connections of a pool
	Left      *int64    `json:"left,omitempty"`    // remaining units after a sale, as the seller saw them
}
