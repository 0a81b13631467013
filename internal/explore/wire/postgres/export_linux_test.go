package postgres

import (
	"bufio"
	"bytes"

	"github.com/oversell/oversell/internal/explore/wire"
)

// The session's own statements.
const (
	NoTimeouts  = noTimeouts
	NoDeadlocks = noDeadlocks
	NoGhosts    = noGhosts
)

func Show(v []byte, oid uint32, format int16) (string, bool) { return show(v, oid, format) }

func Literal(v []byte, oid uint32, format int16) string { return literal(v, oid, format) }

// Logged returns a session after its login that reads the bytes of the program and the server.
func Logged(up, down []byte) *Session {
	socket := func(b []byte) *wire.Socket { return &wire.Socket{R: bufio.NewReader(bytes.NewReader(b))} }
	s := Protocol(nil).Open(socket(up), socket(down)).(*Session)
	s.status = 'I'
	return s
}

// ReadStartup reads the bytes that a program sends before its login.
func ReadStartup(b []byte) (raw []byte, replication bool, err error) {
	raw, _, err = readStartup(bufio.NewReader(bytes.NewReader(b)))
	if err != nil {
		return nil, false, err
	}
	return raw, replicates(raw), nil
}
