package postgres

import (
	"bufio"
	"bytes"

	"github.com/oversell/oversell/internal/explore/wire"
)

// The statements of the session's own.
const (
	NoTimeouts  = noTimeouts
	NoDeadlocks = noDeadlocks
	NoGhosts    = noGhosts
)

// Show is show.
func Show(v []byte, oid uint32, format int16) (string, bool) { return show(v, oid, format) }

// Literal is literal.
func Literal(v []byte, oid uint32, format int16) string { return literal(v, oid, format) }

// Logged is a session that has logged in, and reads what the program and the server send.
func Logged(up, down []byte) *Session {
	socket := func(b []byte) *wire.Socket { return &wire.Socket{R: bufio.NewReader(bytes.NewReader(b))} }
	s := Protocol().Open(socket(up), socket(down)).(*Session)
	s.status = 'I'
	return s
}

// ReadStartup is what is read of a program before its login.
func ReadStartup(b []byte) (raw []byte, replication bool, err error) {
	raw, _, err = readStartup(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		return nil, false, err
	}
	return raw, replicates(raw), nil
}
