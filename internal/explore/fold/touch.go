package fold

import (
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/witness"
)

// A Touch lists the objects that a command may touch. An object is a table or a Redis key, written with its
// server: "postgres items".
type Touch struct {
	Touches, Writes map[string]bool // objects; Touches includes Writes
	// Undecided reports that the command may touch objects that are not in Touches. Wild reports that it may write such
	// objects.
	Undecided, Wild bool
}

// TouchOf analyses the full text of a command. The server is "mysql", "postgres" or "redis". If the tables of the
// server are unknown, `tables` is nil.
func TouchOf(server, command string, tables serverstate.Tables) Touch {
	s := Run{Steps: []witness.Step{{Buyer: 1, Server: server, Command: command}}, Tables: map[string]serverstate.Tables{server: tables}}.analyse()[0]
	return Touch{s.touches, s.writes, s.undecided, s.wild}
}
