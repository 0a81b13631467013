// Package history records the events of a run: when a buyer called, what happened at the lock, and how the
// shop answered the buyer. It defines the event type and a log.
package history

import "time"

// A Kind is the kind of an event.
type Kind string

// The kinds, in the order in which they occur in one purchase. Only strategies with a lock report Waiting,
// Acquired, Released and Lost.
const (
	Call     Kind = "call"
	Waiting  Kind = "waiting"
	Acquired Kind = "acquired"
	Released Kind = "released" // the lock is about to be released; this buyer writes no more
	Lost     Kind = "lost"     // the holder knows that it has lost its lease: its context has ended, or its release did not find the lock
	Return   Kind = "return"
	Replay   Kind = "replay" // a Return that repeats the answer to an earlier request with the same Idempotency-Key

	// Armed, Holding and Resumed come from a failpoint, a place at which a test stops a buyer.
	Armed   Kind = "armed"
	Holding Kind = "holding" // the buyer has the lock, has not written yet, and is stopped
	Resumed Kind = "resumed"

	// Clock belongs to no buyer: the clock of the process was set to the time in Outcome.
	Clock Kind = "clock"
	// Pool belongs to no buyer: Amount is the largest number of database connections that the process's buyers
	// have used at one time.
	Pool Kind = "pool"

	// Struck comes from an injected fault. Outcome describes its effect and names the process.
	Struck Kind = "struck"

	// Answered is the buyer's answer as the client received it. The shop may have ended before that.
	Answered Kind = "answered"

	// Restocked belongs to no buyer: stock and records of the product start again with Amount units.
	Restocked Kind = "restocked"
)

// An Event is one step of one buyer, or an event of the whole shop, such as a restock.
type Event struct {
	Kind      Kind      `json:"kind"`
	At        time.Time `json:"at"`
	Strategy  string    `json:"strategy"`
	Product   string    `json:"product"`
	Purchaser string    `json:"purchaser"`
	Token     string    `json:"token,omitempty"`   // the holder's identification at the lock
	Outcome   string    `json:"outcome,omitempty"` // the buyer's outcome, in a Return
	Amount    int64     `json:"amount,omitempty"`  // units in a Call, a sale or a restock; connections in a Pool event
	Left      *int64    `json:"left,omitempty"`    // remaining units after a sale, as the seller saw them
}
