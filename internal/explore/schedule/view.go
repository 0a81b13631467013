package schedule

import (
	"time"

	"github.com/oversell/oversell/internal/explore/witness"
)

// A View shows a point of a schedule to a user who chooses the steps. Making it queries the servers.
type View struct {
	Buyers  []Standing
	Stock   int64 // as another connection reads it, so without uncommitted writes
	Records int64
	Sold    int64    // units in the purchase records
	Keys    []Key    // keys in Redis
	Texts   []string // one per choice of the point: the command with its values, or the event
	Steps   []witness.Step
}

// A Standing describes the situation of one buyer.
type Standing struct {
	Buyer   int
	Gate    []Command // commands that the buyer is about to send
	Read    string    // result of its last SELECT or GET; "" before the first
	Waits   string    // reason for its wait; "" if it does not wait
	For     []int     // buyers for which it waits, if known
	Open    bool      // the buyer has an open transaction
	Memory  bool      // the buyer holds a lock in memory
	Over    bool      // the buyer's Buy has returned
	Crashed bool
	Answer  string // the buyer's answer, if Over
}

// A Command waits at a buyer's gate.
type Command struct {
	Token  string
	Text   string // with its values
	Server string
	Ready  bool // the command is one of the choices, so it may be released
}

// A Key is a key on a Redis server.
type Key struct {
	Server string
	Name   string
	Value  string
	Left   time.Duration // time to live, a fraction of Forever; 0: it does not expire
	Buyer  int           // its owner; 0: none or unknown
}
