package schedule

import "strings"

// Database names the database as a server. An event that touches every Redis server does not touch the database.
const Database = "sql"

// An Effect is the possible effect of a command on its server, as known before it is sent.
type Effect int

const (
	Writes Effect = iota // writes, or may take a lock
	Reads                // changes nothing, and never waits
	Local                // does not touch the server's data, such as BEGIN
)

// A Choice is one possible next step: the release of a command or of a pair of commands, or an
// event. Two choices with the same fields are equal, even in different runs.
type Choice struct {
	Token   string // in the replay string: "1" (buyer 1), "1a" (at node a), "1r" (its watchdog), "1+2" (at once), "1~2" (2 while 1 pauses), "expire", "crash1"
	Name    string // the command without its values
	Touches string // server; "": every Redis server
	Event   Event  // "": a command
	Buyer   int    // 0: no buyer
	Effect  Effect

	// Footprint lists the rows that the command uses in its server; nil: unknown. Equal footprints share one
	// pointer.
	Footprint *Footprint

	Judged     bool // it may change rows that a user's rule reads, or its transaction has just taken a snapshot
	Background bool // not sent by the buyer's own code: a renewal, or the end of a transaction whose context has ended
	Pair       bool // releases two commands at once
	Global     bool // commutes with no other choice
	// AnyOrder reports that the order of a buyer's answers does not matter to the program: the answer to this command,
	// and those to the buyer's other commands under way at the same time.
	AnyOrder bool
}

// Command reports whether the choice releases one buyer's command.
func (c *Choice) Command() bool { return c.Event == "" && !c.Pair }

// Moves reports whether the choice releases a command or a pair of commands.
func (c *Choice) Moves() bool { return c.Event == "" }

// Together returns the choice that releases both commands, b's before a's is answered. It returns false if the commands
// belong to one buyer, or go to different servers.
func Together(a, b Choice) (Choice, bool) {
	if !a.Command() || !b.Command() || a.Buyer == b.Buyer || a.Touches != b.Touches {
		return Choice{}, false
	}
	return Choice{Token: a.Token + "+" + b.Token, Name: a.Name + " with " + b.Name, Touches: a.Touches, Buyer: b.Buyer, Pair: true}, true
}

// During returns a choice of two moves: a's, and then another buyer's while a's buyer pauses in the program. The token
// identifies the second move.
func During(a Choice, token string) Choice {
	id := 0
	if token != "" {
		id = int(token[0] - '0')
	}
	return Choice{Token: a.Token + "~" + token, Name: a.Name + ", and buyer " + token + " moves in the pause that follows", Touches: a.Touches, Buyer: id, Global: true}
}

// Find returns the choice with the given token, and false if there is none. It also finds pairs of the
// choices, and moves in a pause.
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

// List lists choices for an error message: "1 (UPDATE product), 2 (GET lock:apple) or expire".
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
