// Package mysql implements wire.Protocol for MySQL and MariaDB (MySQL Source Code Documentation,
// "Client/Server Protocol"; MariaDB Knowledge Base, "Clients & Utilities, Client/Server Protocol").
//
//	login_linux.go    greeting and authentication; removes capabilities
//	command_linux.go  the name and effect of a command, and whether it waits at the gate
//	execute_linux.go  the values of prepared statements
//	answer_linux.go   the end and the meaning of an answer
//	row_linux.go      rows for people, in both encodings
//	split_linux.go    executes and commits a command in two steps
//	timeout_linux.go  answers an interrupted statement as the server answers a lock wait time-out
//
// The session removes these capabilities, so the client works without them: compression, TLS, LOAD DATA
// LOCAL, query attributes, and the newer ways to end or shorten a result (CLIENT_DEPRECATE_EOF,
// CLIENT_OPTIONAL_RESULTSET_METADATA, MariaDB's extended capabilities). Everything else reaches the
// other side byte for byte.
//
// Only the schedule may end a lock wait, not a clock. So each connection gets an innodb_lock_wait_timeout and a
// lock_wait_timeout of an hour after its login, and again after each command that may have changed them. A program
// that reads these variables sees 3600. Three time-outs stay in force: FOR UPDATE WAIT n, MariaDB's SET STATEMENT,
// and the time-out of GET_LOCK (Command.Limit).
//
// The tests use MariaDB 10.11. The code for MySQL 8 and its caching_sha2_password follows the
// documentation and was never run.
package mysql

import (
	"errors"
	"io"
	"sync"
	"syscall"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Protocol is the protocol of MySQL and MariaDB. The function `catalog` returns the database's tables
// and routines; nil while they are unknown.
func Protocol(catalog func() *effect.Catalog) wire.Protocol {
	return wire.Protocol{Name: "mysql", Open: func(program, server *wire.Socket) wire.Session {
		return &session{
			program: program, server: server, requests: map[*wire.Command]*request{},
			state: state{catalog: catalog, prepared: map[uint32]*prepared{}, long: map[uint32]map[int][]byte{}},
		}
	}}
}

// A session implements wire.Session.
type session struct {
	program, server *wire.Socket

	// Used only by the goroutine that calls Receive.
	from assembler
	own  *answer // the answer to a command that the session itself has sent; the program does not get it
	does *request

	mu         sync.Mutex                 // guards all fields below
	requests   map[*wire.Command]*request // commands that were read and not answered
	binaryLock bool                       // the last answer to a GET_LOCK had binary rows
	state
}

// A state is the state of a connection, as its packets show it. Together with a command's text, it
// determines the command's effect.
type state struct {
	catalog func() *effect.Catalog // nil: the catalog is never known

	long map[uint32]map[int][]byte // values from STMT_SEND_LONG_DATA, by statement and position

	prepared       map[uint32]*prepared
	last           *prepared     // the newest prepared statement; MariaDB also knows it as number -1
	open           bool          // a transaction is open, according to the server
	holds          bool          // the connection may hold named locks or table locks
	unsettled      int           // number of commands without an answer that may open a transaction
	serializable   bool          // a SELECT may take locks
	weak           bool          // a write possibly does not lock the rows that it reads
	unlocks        bool          // every transaction is at READ COMMITTED or below, so a write locks no row that it only reads
	autocommit     bool          // the server commits each statement outside a transaction
	tables         bool          // the connection may have locked tables, which a BEGIN would unlock
	split          *wire.Command // the last command that ran in two steps (split_linux.go), until the next command comes
	authenticating bool          // a CHANGE_USER logs in again
}

// A prepared is a prepared statement. Its text comes from the program, and its number from the server's
// answer.
type prepared struct {
	sql     string
	said    said
	by      *effect.Catalog // the catalog that was known when the field said was determined
	params  int
	types   []byte   // two bytes per parameter, as last sent; used only by the goroutine that calls Next
	columns []column // columns of the statement's cursor; used only by the goroutine that calls Receive
}

// A request is the part of a command that Receive needs to read the answer.
type request struct {
	answer   answer
	settles  bool // state.unsettled, the number of commands that may open a transaction, counts the command
	setsWait bool // the command may have changed the time-out of lock waits
	resets   bool // the command resets the connection: CHANGE_USER, RESET_CONNECTION
	prepares *prepared
	executes *prepared // the statement that an EXECUTE runs; it keeps the columns for a cursor
	fetches  *prepared
	verb     string
}

// Next implements wire.Session.
//
// For QUIT, Next relays the packet and returns io.EOF, as if the program had hung up. The server hangs
// up at once after QUIT, so otherwise chance would decide which side seems to hang up first.
func (s *session) Next() (*wire.Command, error) {
	raw, payload, err := readPacket(s.program.R)
	if err != nil {
		return nil, hungUp(err)
	}
	if len(payload) == 1 && payload[0] == comQuit {
		_, _ = s.server.Write(raw) // the server may have closed the connection already
		return nil, io.EOF
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c, q, err := s.command(raw, payload)
	if err == nil {
		err = s.afterSplit(c)
	}
	if err != nil {
		return nil, err
	}
	if !c.Silent {
		s.requests[c] = q
		if q.settles {
			s.unsettled++
		}
	}
	return c, nil
}

// hungUp returns io.EOF for each error that the death of the program can cause.
func hungUp(err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return io.EOF
	}
	return err
}

// Receive implements wire.Session. It uses the bytes that are there and never waits for the rest of a
// packet. A server may stop in the middle of a row to wait for a lock.
func (s *session) Receive(current *wire.Command) (m wire.Message, err error) {
	if current == nil {
		return s.lastWords()
	}
	if m, own, err := s.step(current); own || err != nil {
		return m, err
	}
	if s.does == nil {
		s.mu.Lock()
		s.does = s.requests[current]
		s.mu.Unlock()
		if s.does == nil {
			return m, errors.New("an answer to a command that this session has not read")
		}
		if s.does.fetches != nil {
			s.does.answer.columns = s.does.fetches.columns
		}
	}
	there, err := s.server.R.Peek(s.server.R.Buffered())
	if err != nil {
		return m, err
	}
	used := 0
	for used < len(there) && !m.Ends {
		n, whole := s.from.take(there[used:])
		if s.own == nil {
			m.Raw = append(m.Raw, there[used:used+n]...)
		}
		used += n
		if !whole {
			continue
		}
		if m.Ends, err = s.packet(current); err != nil {
			return m, err
		}
	}
	_, err = s.server.R.Discard(used)
	return m, err
}

func (s *session) packet(current *wire.Command) (ends bool, err error) {
	if s.own != nil {
		if ends, err = s.own.feed(s.from.payload, s.from.size); ends {
			err = errors.Join(err, s.own.refusal())
			s.own = nil
		}
	} else if ends, err = s.does.answer.feed(s.from.payload, s.from.size); ends && s.answered(current, s.does) && !s.program.Timed() {
		// No other goroutine writes now: the program's next command waits for the end of this one.
		s.own, ends = &answer{}, false
		_, err = s.server.Write(query(setWait))
	}
	if ends {
		s.does = nil
	}
	return ends, err
}

// lastWords reads a packet that answers no command. In it, the server gives its reason for hanging up
// (MariaDB 1927, MySQL 4031).
func (s *session) lastWords() (wire.Message, error) {
	raw, payload, err := readPacket(s.server.R)
	if err != nil {
		return wire.Message{}, err
	}
	var a answer
	if _, err := a.feed(payload, len(payload)); err != nil || !a.failed() {
		return wire.Message{}, errors.New("it has sent an answer without a command")
	}
	return wire.Message{Raw: raw, Push: true, Text: a.text("")}, nil
}

// answered fills in c.Answer. It reports whether the time-out of lock waits must be set again before
// the program receives the answer.
func (s *session) answered(c *wire.Command, q *request) (again bool) {
	a := &q.answer
	a.fill(c, q.verb)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.requests, c)
	if q.settles {
		s.unsettled--
	}
	if a.stated {
		s.open = a.status&statusInTransaction != 0 && c.Step() == wire.Whole
		s.autocommit = a.status&statusAutocommit != 0
	}
	if a.failed() && endsTransaction[a.code] {
		s.open = false
	}
	c.Answer.Open = s.open
	if c.Named {
		s.binaryLock = a.binary
	}
	if a.failed() {
		if q.answer.kind == authenticates {
			s.authenticating = false
		}
		return false
	}
	if q.prepares != nil {
		q.prepares.params = a.params
		s.prepared[a.id] = q.prepares
	}
	if q.executes != nil {
		q.executes.columns = a.columns
	}
	if q.resets && a.complete {
		s.authenticating, s.holds, s.tables, s.unlocks, s.last = false, false, false, false, nil
		clear(s.prepared)
		return true
	}
	return q.setsWait
}
