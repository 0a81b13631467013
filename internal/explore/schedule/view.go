package schedule

import (
	"time"

	"github.com/oversell/oversell/internal/explore/witness"
)

// A View is a point as it is shown to a person who chooses the steps. To make one costs queries
// to the servers, and changes nothing there.
type View struct {
	Buyers  []Standing
	Stock   int64 // as another connection reads it: what a transaction has written and not committed is not in it
	Records int64
	Sold    int64    // units in the records
	Keys    []Key    // that Redis has
	Texts   []string // of the point's choices, one each: the command with its values, or what happens
	Steps   []witness.Step
}

// A Standing is where one buyer is.
type Standing struct {
	Buyer   int
	Gate    []Command // what it is about to send
	Read    string    // what its last SELECT or GET returned; "" before the first
	Waits   string    // what it waits for; "": it does not
	For     []int     // the buyers that it waits for, where known
	Open    bool      // it has a transaction open
	Memory  bool      // it holds a lock in memory
	Over    bool      // its Buy has returned
	Crashed bool
	Answer  string // what it was answered, when it is over
}

// A Command stands at a buyer's gate.
type Command struct {
	Token  string
	Text   string // with its values
	Server string
	Ready  bool // it may be let go: it is one of the choices
}

// A Key is one that a Redis server holds.
type Key struct {
	Server string
	Name   string
	Value  string
	Left   time.Duration // until it runs out, of Forever; 0: it does not run out
	Buyer  int           // its owner; 0: none, or not known
}
