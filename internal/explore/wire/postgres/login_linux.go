package postgres

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Codes of the messages before a login, and the first byte of TLS without a request.
const (
	codeCancel   = 1234<<16 | 5678
	codeTLS      = 1234<<16 | 5679
	codeGSS      = 1234<<16 | 5680
	tlsHandshake = 0x16 // RFC 8446, 5.1; PostgreSQL 17 manual, sslnegotiation=direct
)

var errTLS = &wire.Refused{Why: "the program asks for TLS at postgres (sslmode=require); use sslmode=disable or prefer for the test"}

// Login implements wire.Session.
//
// If the program hangs up after TLS was refused, Login fails with a *wire.Refused. With the default
// sslmode=prefer, some clients (pgx) then reconnect without TLS, and others (libpq, JDBC) continue on
// the same connection.
//
// Login relays a CancelRequest at once, and fails with io.EOF after the server has received it.
func (s *Session) Login() (id int64, err error) {
	l := login{s.program, s.server}
	startup, err := l.startup()
	if err != nil {
		return 0, err
	}
	asked := parameters(startup)
	s.user, s.database = asked["user"], cmp.Or(asked["database"], asked["user"])
	id, ready, err := l.relay(startup)
	if err != nil {
		return 0, err
	}
	isolation, err := l.setUp(id)
	if err != nil {
		return 0, err
	}
	s.serialized = isolation == "serializable"
	s.isolated = s.serialized || isolation == "repeatable read"
	s.settle(ready)
	_, err = s.program.Write(ready)
	return id, err
}

// Account returns the user and the database of the login (PostgreSQL 15 manual, 55.7, StartupMessage).
func (s *Session) Account() (user, database string) { return s.user, s.database }

// A login is the exchange before the program's first command.
type login struct{ program, server *wire.Socket }

// relay relays the login, from the program's StartupMessage on. It returns the server's ReadyForQuery
// without relaying it.
func (l login) relay(startup []byte) (id int64, ready frame, err error) {
	if _, err := l.server.Write(startup); err != nil {
		return 0, nil, err
	}
	for {
		f, err := readFrame(l.server.R)
		if err != nil {
			return 0, nil, serverError(err)
		}
		switch f.kind() {
		case 'E':
			_, err := l.program.Write(f)
			return 0, nil, errors.Join(fmt.Errorf("postgres refuses the login: %s", errorText(errorOf(f))), err)
		case 'K':
			if len(f.body()) >= 4 {
				id = int64(binary.BigEndian.Uint32(f.body()))
			}
		case 'Z':
			return id, f, nil
		}
		if _, err := l.program.Write(f); err != nil {
			return 0, nil, err
		}
		if f.kind() == 'R' {
			if err := l.authenticate(f); err != nil {
				return 0, nil, err
			}
		}
	}
}

func (l login) startup() ([]byte, error) {
	asked := false
	for {
		raw, code, err := readStartup(l.program.R)
		if asked && (errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)) {
			return nil, errTLS
		}
		if err != nil {
			return nil, err
		}
		switch {
		case code == codeTLS, code == codeGSS:
			asked = asked || code == codeTLS
			if _, err := l.program.Write([]byte{'N'}); err != nil {
				return nil, err
			}
		case code == codeCancel:
			return nil, l.cancel(raw)
		case code>>16 != 3:
			return nil, l.refuse(fmt.Sprintf("the program speaks protocol %d.%d with postgres; only 3.0 can be explored", code>>16, code&0xffff))
		case replicates(raw):
			return nil, l.refuse("the program asks postgres for replication, which cannot be explored; leave it out of the test")
		default:
			return raw, nil
		}
	}
}

// cancel relays a CancelRequest. Then it waits until the server hangs up, since the program may wait
// for that, too.
func (l login) cancel(raw []byte) error {
	if _, err := l.server.Write(raw); err != nil {
		return err
	}
	_, _ = l.server.R.Discard(1)
	return io.EOF
}

func (l login) refuse(why string) error {
	raw, err := (&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "0A000", Message: why}).Encode(nil)
	if err == nil {
		_, err = l.program.Write(raw)
	}
	return errors.Join(&wire.Refused{Why: why}, err)
}

// parameters returns the parameters of a StartupMessage. If the message is unreadable, the server
// itself refuses it.
func parameters(raw []byte) map[string]string {
	var m pgproto3.StartupMessage
	_ = m.Decode(append(binary.BigEndian.AppendUint32(nil, pgproto3.ProtocolVersion30), raw[8:]...))
	return m.Parameters
}

// replicates reports whether a StartupMessage asks for replication (PostgreSQL 15 manual, 55.4).
func replicates(raw []byte) bool {
	value, asked := parameters(raw)["replication"]
	if !asked {
		return false
	}
	switch strings.ToLower(value) {
	case "", "0", "f", "false", "n", "no", "off", "of":
		return false
	}
	return true
}

// authenticate relays the program's answer to a request of the server, if the request needs an answer.
func (l login) authenticate(request frame) error {
	if len(request.body()) < 4 {
		return errFrame
	}
	switch binary.BigEndian.Uint32(request.body()) {
	case pgproto3.AuthTypeOk, pgproto3.AuthTypeSASLFinal:
		return nil
	case pgproto3.AuthTypeGSS, pgproto3.AuthTypeGSSCont, pgproto3.AuthTypeSSPI:
		return l.refuse("the server asks for Kerberos at postgres; use an account with a password for the test")
	}
	f, err := readFrame(l.program.R)
	if err != nil {
		return err
	}
	_, err = l.server.Write(f)
	return err
}

// noTimeouts switches off all time-outs that this version of the server has, so only the schedule ends
// waits. It returns the process id and the default isolation level.
const noTimeouts = `SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('default_transaction_isolation'), pg_catalog.count(pg_catalog.set_config(name, '0', false)) FROM pg_catalog.pg_settings
	WHERE name IN ('lock_timeout', 'statement_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`

// timeouts returns the same columns as noTimeouts, but changes no setting.
const timeouts = `SELECT pg_catalog.pg_backend_pid(), pg_catalog.current_setting('default_transaction_isolation'), 0`

// noDeadlocks lets the explorer find deadlocks before the server does.
const noDeadlocks = `SET deadlock_timeout = '1h'`

// noGhosts makes the server notice soon that this process has died. Without it, two connections in a
// deadlock would hold their locks for an hour, since noDeadlocks leaves deadlocks to the explorer. The
// setting exists since PostgreSQL 14, and not on every system.
const noGhosts = `SET client_connection_check_interval = '1s'`

// setUp sends the settings to the server and hides the answers from the program. It relays notices and
// parameters that come in between. The result is the default isolation level.
func (l login) setUp(id int64) (isolation string, err error) {
	timed, question := l.program.Timed(), noTimeouts
	if timed {
		question = timeouts
	}
	row, err := l.ask(question)
	var refused *refusal
	if errors.As(err, &refused) {
		return "", l.refuse("postgres does not let the test switch its time-outs off: " + refused.Error())
	}
	if err != nil {
		return "", err
	}
	if len(row) != 3 {
		return "", errFrame
	}
	if pid, err := strconv.ParseInt(string(row[0]), 10, 64); err != nil || pid != id {
		return "", l.refuse("this is a connection pooler, which hides the connection that sends a command: give the database's own address in this file and to the program")
	}
	isolation = string(row[1])
	if timed {
		return isolation, nil
	}
	if _, err := l.ask(noDeadlocks); err != nil && (!errors.As(err, &refused) || refused.Code != errInsufficientPrivilege) {
		return "", err
	}
	if _, err := l.ask(noGhosts); err != nil && !errors.As(err, &refused) {
		return "", err
	}
	return isolation, nil
}

// A refusal is the server's error to a statement that the session, not the program, has sent.
type refusal struct{ pgproto3.ErrorResponse }

func (e *refusal) Error() string { return errorText(e.ErrorResponse) }

// ask sends a statement of the session itself, and returns the last row.
func (l login) ask(sql string) (row [][]byte, err error) {
	raw, err := (&pgproto3.Query{String: sql}).Encode(nil)
	if err != nil {
		return nil, err
	}
	if _, err := l.server.Write(raw); err != nil {
		return nil, err
	}
	var refused error
	for {
		f, err := readFrame(l.server.R)
		if err != nil {
			return nil, serverError(errors.Join(err, refused))
		}
		switch f.kind() {
		case 'D':
			var d pgproto3.DataRow
			if err := d.Decode(f.body()); err != nil {
				return nil, err
			}
			row = d.Values
		case 'E':
			refused = &refusal{errorOf(f)}
		case 'N', 'S', 'A':
			if _, err := l.program.Write(f); err != nil {
				return nil, err
			}
		case 'Z':
			return row, refused
		}
	}
}

func serverError(err error) error { return fmt.Errorf("the postgres server: %w", err) }
