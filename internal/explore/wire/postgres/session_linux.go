// Package postgres implements wire.Protocol for PostgreSQL's frontend/backend protocol 3.0 (PostgreSQL
// 15 manual, chapter 55).
//
// A command is one unit that the server answers as a whole: a Query, or an extended batch up to its Sync or
// Flush. The session relays bytes unchanged, with three exceptions. It refuses a request for TLS or GSSAPI
// encryption. Before the program's first command, it switches off the settings that end waits. It can replace
// the error of an interrupted wait.
//
//	Query                        gated      answered up to ReadyForQuery, or to CopyInResponse
//	Parse ... Execute Sync       gated      the same
//	Parse ... Execute Flush      gated      answered when the server has answered each message
//	Sync after that              gated      it commits
//	Parse, Describe, Close Sync  passes
//	CopyData ... CopyDone        passes     the gate held the COPY before
//	FunctionCall                 gated
//	Terminate                    passes     not answered
//	CancelRequest                passes     on a connection of its own; see Login
//
// A program can set statement_timeout, lock_timeout or deadlock_timeout itself. With RESET ALL or
// DISCARD ALL, it can also restore the settings of its role or database. The session does not notice
// this, so from then on real time can end a wait.
package postgres

import (
	"sync"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Protocol returns the protocol of PostgreSQL. The function `catalog` returns the database's tables and
// routines; nil while they are unknown.
func Protocol(catalog func() *effect.Catalog) wire.Protocol {
	return wire.Protocol{Name: "postgres", Open: func(program, server *wire.Socket) wire.Session {
		return &Session{program: program, server: server, state: state{catalog: catalog, statements: map[string]*prepared{}, portals: map[string]*portal{}}}
	}}
}

// A Session is a program's connection to PostgreSQL.
type Session struct {
	program, server *wire.Socket
	user, database  string // set by Login

	parts []*batch // the rest of a pipeline, used only by the goroutine that calls Next

	mu    sync.Mutex // guards state
	state            // shared by both directions
}

// A state is the state of a connection, as the messages of both sides show it. It has the prepared statements,
// the commands that wait for an answer, and whether a transaction is open. It determines the effect of a command
// and the end of its answer.
type state struct {
	catalog    func() *effect.Catalog // nil: the catalog is never known
	statements map[string]*prepared   // prepared statements by their names
	portals    map[string]*portal
	calls      []*call // sent by the program and not answered
	status     byte    // transaction status in the last ReadyForQuery: I, T or E
	copying    copying // the server's state in COPY FROM STDIN
	skips      bool    // the server discards everything up to a Sync
	implicit   bool    // a batch without a Sync has written, so the next Sync commits it
	snapshots  bool    // the transaction may be above READ COMMITTED, so its first statement decides what it sees
	isolated   bool    // each new transaction may be above READ COMMITTED
	serial     bool    // the transaction is SERIALIZABLE
	serialized bool    // each new transaction is SERIALIZABLE
	holds      bool    // the connection may have a named lock, or listen to a channel
}

// A copying says in which protocol the server waits for the data of a COPY.
type copying byte

const (
	noCopy copying = iota
	simpleCopy
	extendedCopy
)

// A prepared is a statement that the program has prepared.
type prepared struct {
	sql    string
	says   said            // the analysis of sql
	by     *effect.Catalog // the catalog that was known when says was determined
	types  []uint32        // types of its parameters, by OID; 0: unknown
	fields []field         // fields of its rows, after the server has described it
}

// A portal is a prepared statement with its values.
type portal struct {
	statement *prepared
	line      string        // the statement with the values in it
	whole     func() string // returns `line` without a limit; nil if `line` is complete
	formats   []int16       // formats of the columns: none, one for all, or one each
	fields    []field       // set after the server has described it
}

// A call is a command that the session expects an answer to.
type call struct {
	command  *wire.Command
	expects  []expected // messages of the extended protocol, in order
	extended bool
	synced   bool // it ends with ReadyForQuery: it has a Sync, or is a Query or a FunctionCall
	awaits   bool // it has data for a COPY that the server has not answered
	onlyData bool // it has nothing except data for a COPY
	opened   bool // a transaction was open at its first answer
	begun    bool // `opened` is known

	result  result
	answer  answer
	refused bool // the server has answered with an error
}

// An expected is a message of the extended protocol that the server has to answer.
type expected struct {
	kind      byte // P, B, D, E, C, S as the program sends them; c: CopyDone or CopyFail
	name      string
	statement *prepared // set for P and E, and for a D that describes a statement
	portal    *portal   // set for E, and for a D that describes a portal
	before    *prepared // set for P: the statement that had the name before
}

// inTransaction reports whether a transaction may be open after the server has answered all commands so
// far. mu must be held.
func (s *state) inTransaction() bool {
	if s.status != 'I' || s.implicit {
		return true
	}
	for _, c := range s.calls {
		if c.command.Gated {
			return true
		}
	}
	return false
}

// gate determines the effect of a command from its statements, in order. mu must be held.
func (s *state) gate(c *wire.Command, all []said) {
	c.Effect = schedule.Local
	has := map[schedule.Effect]bool{}
	steps, begun := 0, s.status != 'I'
	reads := false
	for _, one := range all {
		if one.Resets && !s.holds {
			c.Gated = c.Gated || s.inTransaction()
			continue // no other connection can notice it
		}
		s.holds = one.holds() || s.holds && !one.Resets
		if one.Effect != schedule.Local {
			steps++
		}
		c.Compound = c.Compound || one.Compound || one.Skews || steps > 1
		if one.level != "" {
			// A default that is set in an open transaction does not apply to that transaction, and a rollback
			// undoes it. So such a statement does not set s.serial.
			s.serial = one.level == "SERIALIZABLE" && !(one.lasting && begun)
			if one.lasting {
				s.serialized = s.serial
			}
		}
		// If another write comes between the reads and the writes of a statement, a SERIALIZABLE server refuses
		// the statement or the write. If the statement is in an explicit transaction, other schedules show that.
		begun = begun || one.Verb == "BEGIN" || one.Verb == "START"
		reads = reads || one.Reads
		c.Divided = c.Divided || one.Torn || one.Inside == effect.Divided && !(s.serial && begun) || one.Inside == effect.Lockable && !s.serial
		c.Alters, c.Hidden = c.Alters || one.Alters, c.Hidden || one.Runs
		has[one.Effect] = true
		c.Named = c.Named || one.NamedLock
		c.Ends = c.Ends || one.Ends
		c.Gated = c.Gated || one.Waits(s.inTransaction(), s.snapshots || one.isolates)
		s.snapshots = s.snapshots || one.isolates
		s.isolated = s.isolated || one.isolates && one.lasting
	}
	c.Divided = c.Divided || c.Compound && len(all) > 1 && reads && c.Alters
	switch {
	case has[schedule.Writes]:
		c.Effect = schedule.Writes
	case has[schedule.Reads]:
		c.Effect = schedule.Reads
	}
}
