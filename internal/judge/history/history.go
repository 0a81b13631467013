// Package history records what a run did, event by event: which buyer called, what
// happened at the lock, and what the buyer was answered. It has the words and a log;
// cmd/shop wires publishers and listeners together.
package history

import "time"

// A Kind is what happened.
type Kind string

// The kinds, in the order in which they occur in one buy. Waiting to Lost
// come from strategies with a lock.
const (
	Call     Kind = "call"
	Waiting  Kind = "waiting"
	Acquired Kind = "acquired"
	Released Kind = "released" // about to be given back: this buyer writes no more
	Lost     Kind = "lost"     // the lease is known to be gone: the section's context has ended, or it was found at the release
	Return   Kind = "return"
	Replay   Kind = "replay" // a return, with the answer to an earlier request under the same Idempotency-Key

	// Armed to Resumed are of a failpoint, see internal/fault/failpoint.
	Armed   Kind = "armed"
	Holding Kind = "holding" // the buyer has the lock, has not written, and is stopped
	Resumed Kind = "resumed"

	// Struck is the fault's own: Outcome says what it did, and to which process.
	Struck Kind = "struck"

	// Answered is the buyer's answer as seen from outside: the shop may be dead.
	Answered Kind = "answered"

	// Restocked is of no buyer: stock and records of the product start afresh, with
	// Amount units.
	Restocked Kind = "restocked"
)

// An Event is one step of one buyer, or a restock.
type Event struct {
	Kind      Kind      `json:"kind"`
	At        time.Time `json:"at"`
	Strategy  string    `json:"strategy"`
	Product   string    `json:"product"`
	Purchaser string    `json:"purchaser"`
	Token     string    `json:"token,omitempty"`   // what the lock knows its holder by
	Outcome   string    `json:"outcome,omitempty"` // of a return
	Amount    int64     `json:"amount,omitempty"`  // units, of a call, a sale or a restock
	Left      *int64    `json:"left,omitempty"`    // units left, as the seller saw it; of a sale
}
