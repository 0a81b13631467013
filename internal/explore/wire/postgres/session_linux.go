// Package postgres has PostgreSQL's frontend/backend protocol 3.0 at the gate (PostgreSQL 15
// manual, chapter 55), so that the statements of a program in any language wait there.
//
// A command is what makes the server answer as a whole: a Query, or an extended batch up to
// its Sync or Flush. Bytes are passed on as they came, but for three things: a request for
// TLS or GSSAPI encryption is refused, the settings that end waits are switched off before
// the program's first command, and an interrupted wait can be given another error.
//
//	Query                        gated      answered up to ReadyForQuery, or to CopyInResponse
//	Parse ... Execute Sync       gated      the same
//	Parse ... Execute Flush      gated      answered when each of them is
//	Sync after that              gated      it commits
//	Parse, Describe, Close Sync  passes
//	CopyData ... CopyDone        passes     COPY, which came before, was gated
//	FunctionCall                 gated
//	Terminate                    passes     not answered
//	CancelRequest                passes     on a connection of its own; see Login
//
// What it does not see: a program that sets statement_timeout, lock_timeout or
// deadlock_timeout itself, or resets them by RESET ALL or DISCARD ALL where its role or its
// database has them, has them from then on, and real time decides.
package postgres

import (
	"sync"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Protocol is PostgreSQL's.
func Protocol() wire.Protocol {
	return wire.Protocol{Name: "postgres", Open: func(program, server *wire.Socket) wire.Session {
		return &Session{program: program, server: server, state: state{statements: map[string]*prepared{}, portals: map[string]*portal{}}}
	}}
}

// A Session is a program's connection to PostgreSQL.
type Session struct {
	program, server *wire.Socket

	mu    sync.Mutex // of state
	state            // which both directions know of
}

// A state is what a connection is in, as far as it follows from the messages of both sides:
// which statements are prepared, which commands wait for an answer, whether a transaction is
// open. It says what a command does, and where its answer ends.
type state struct {
	statements map[string]*prepared // by the names that the program gave them
	portals    map[string]*portal
	calls      []*call // sent by the program, and not answered
	status     byte    // of the transaction, in the last ReadyForQuery: I, T or E
	copying    copying // what COPY FROM STDIN the server is in
	skips      bool    // the server throws away what comes up to a Sync
	implicit   bool    // a batch without a Sync has written: the next Sync commits it
	snapshots  bool    // the transaction may be above READ COMMITTED: its first statement says what it sees
	isolated   bool    // each transaction may be
	serial     bool    // the transaction is SERIALIZABLE
	serialized bool    // each new transaction is
}

// A copying is in what protocol the server waits for the data of a COPY.
type copying byte

const (
	noCopy copying = iota
	simpleCopy
	extendedCopy
)

// A prepared is a statement that the program has prepared.
type prepared struct {
	sql    string
	says   said
	types  []uint32 // of its parameters, by OID; 0: unknown
	fields []field  // of its rows, once the server has described it
}

// A portal is a prepared statement with its values.
type portal struct {
	statement *prepared
	line      string  // the statement with the values in it
	formats   []int16 // of the columns: none, one for all, or one each
	fields    []field // once the server has described it
}

// A call is a command of which the session expects an answer.
type call struct {
	command  *wire.Command
	expects  []expected // of the extended protocol, in order
	extended bool
	synced   bool // it ends with a Sync, or is a Query or a FunctionCall: with ReadyForQuery
	awaits   bool // it is data for a COPY that was not answered
	onlyData bool // and nothing else
	opened   bool // a transaction was open when it was answered first
	begun    bool // opened is known

	result  result
	answer  answer
	refused bool // an error has come
}

// An expected is a message of the extended protocol that the server answers.
type expected struct {
	kind      byte // P, B, D, E, C, S as the program sends them; c: CopyDone or CopyFail
	name      string
	statement *prepared // P, D of a statement, E
	portal    *portal   // D of a portal, E
	before    *prepared // P: what had the name
}

// inTransaction reports whether a transaction may be open once all that was sent is
// answered. With mu held.
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

// gate says what a command does, from its statements in their order. With mu held.
func (s *state) gate(c *wire.Command, all []said) {
	c.Effect = schedule.Local
	has := map[schedule.Effect]bool{}
	steps, begun := 0, s.status != 'I'
	for _, one := range all {
		if one.Effect != schedule.Local {
			steps++
		}
		c.Compound = c.Compound || one.Compound || steps > 1
		if one.serializes || one.relaxes {
			s.serial = one.serializes
			if one.lasting {
				s.serialized = one.serializes
			}
		}
		// Of two statements that read what they write, a SERIALIZABLE server refuses one. Other
		// schedules show that refusal if the statement is in an explicit transaction.
		begun = begun || one.Verb == "BEGIN" || one.Verb == "START"
		c.Divided = c.Divided || one.Inside == effect.Divided && !(s.serial && begun) || one.Inside == effect.Lockable && !s.serial
		c.Alters = c.Alters || one.Alters
		has[one.Effect] = true
		c.Named = c.Named || one.NamedLock
		c.Ends = c.Ends || one.Ends
		c.Gated = c.Gated || one.Waits(s.inTransaction(), s.snapshots || one.isolates)
		s.snapshots = s.snapshots || one.isolates
		s.isolated = s.isolated || one.isolates && one.lasting
	}
	switch {
	case has[schedule.Writes]:
		c.Effect = schedule.Writes
	case has[schedule.Reads]:
		c.Effect = schedule.Reads
	}
}
