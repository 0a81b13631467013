package schedule

import "strings"

// Database names the server that is not a Redis. An event that touches every Redis does not touch it.
const Database = "sql"

// An Effect is the possible effect of a command on its server, as known before it is sent.
type Effect int

// The effects.
const (
	Writes Effect = iota // or may take a lock
	Reads                // changes nothing, and never waits
	Local                // the server's state is not touched: BEGIN
)

// A Choice is one thing that can happen next: one command or a pair of commands is released, or an
// event happens. Two choices with the same fields are equal, in this run and in any other.
type Choice struct {
	Token   string // in the replay string: "1", "1a" (node a), "1r" (its watchdog), "1+2", "1~2", "expire", "crash1"
	Name    string // the command without its values
	Touches string // server; "" for every Redis
	Event   Event  // "" for commands
	Buyer   int    // 0: no buyer
	Effect  Effect

	// Footprint lists the rows that the command uses in its server; nil: not known. Equal footprints have one
	// pointer.
	Footprint *Footprint

	Judged     bool // it may change rows that a rule of the program reads, or its transaction has just taken its snapshot
	Background bool // not sent by the buyer's own code: a renewal, or the end of a transaction whose context has ended
	Pair       bool // two commands are released together
	Global     bool // it commutes with no other choice
}

// Command reports whether the choice releases one buyer's command.
func (c *Choice) Command() bool { return c.Event == "" && !c.Pair }

// Moves reports whether the choice releases a command or a pair of commands.
func (c *Choice) Moves() bool { return c.Event == "" }

// Together returns the choice that releases a's command, and b's before the first is answered. It
// returns false if the two are not a concurrent pair: commands of two buyers for one server.
func Together(a, b Choice) (Choice, bool) {
	if !a.Command() || !b.Command() || a.Buyer == b.Buyer || a.Touches != b.Touches {
		return Choice{}, false
	}
	return Choice{Token: a.Token + "+" + b.Token, Name: a.Name + " with " + b.Name, Touches: a.Touches, Buyer: b.Buyer, Pair: true}, true
}

// During returns the choice that makes a's move, then the move of another buyer while a's buyer
// pauses in the program. token names the other move.
func During(a Choice, token string) Choice {
	id := 0
	if token != "" {
		id = int(token[0] - '0')
	}
	return Choice{Token: a.Token + "~" + token, Name: a.Name + ", and buyer " + token + " moves in the pause that follows", Touches: a.Touches, Buyer: id, Global: true}
}

// Find returns the choice with that token, and false if there is none. It also finds concurrent pairs
// of the choices, and moves in pauses.
func Find(choices []Choice, token string) (Choice, bool) {
	if before, during, pause := strings.Cut(token, "~"); pause {
		a, found := Find(choices, before)
		return During(a, during), found
	}
	first, second, pair := strings.Cut(token, "+")
	for _, a := range choices {
		if a.Token != first {
			continue
		}
		if !pair {
			return a, true
		}
		b, found := Find(choices, second)
		if !found {
			return Choice{}, false
		}
		return Together(a, b)
	}
	return Choice{}, false
}

// List names choices for an error: "1 (UPDATE product), 2 (GET lock:apple) or expire".
func List(choices []Choice) string {
	var names []string
	for _, c := range choices {
		name := c.Token
		if c.Command() { // the token of an event describes it
			name += " (" + c.Name + ")"
		}
		names = append(names, name)
	}
	switch last := len(names) - 1; last {
	case -1:
		return "nothing"
	case 0:
		return names[0]
	default:
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
}
