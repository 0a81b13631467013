package postgres

import (
	"encoding/binary"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Errors of the server that mean something here (PostgreSQL 15 manual, appendix A).
const (
	errInsufficientPrivilege = "42501"
	errQueryCanceled         = "57014"
	errLockNotAvailable      = "55P03"
	errDeadlockDetected      = "40P01"
)

// TimedOut is wire.Session's. The statement was ended by pg_cancel_backend, which does what
// lock_timeout does but for its error.
func (s *Session) TimedOut(current *wire.Command, raw []byte) []byte {
	return inPlace(current, raw, errLockNotAvailable, "canceling statement due to lock timeout")
}

// Deadlocked is TimedOut for a wait that closed a circle of waits: the answer says so
// (40P01). It returns raw where the statement was not ended by pg_cancel_backend.
func (s *Session) Deadlocked(current *wire.Command, raw []byte) []byte {
	return inPlace(current, raw, errDeadlockDetected, "deadlock detected")
}

// inPlace puts another error in the place of the one of pg_cancel_backend.
func inPlace(current *wire.Command, raw []byte, code, message string) []byte {
	var out []byte
	found := false
	for _, f := range frames(raw) {
		if f.kind() == 'E' && errorOf(f).code == errQueryCanceled {
			f, found = renamed(f, code, message), true
			current.Answer.Text, current.Answer.Failed = shorten(errorText(f)), true
		}
		out = append(out, f...)
	}
	if !found {
		return raw
	}
	current.Answer.Raw = out
	return out
}

// renamed is an ErrorResponse with another code and message. Its other fields stay: where in
// the statement it waited, and for what.
func renamed(f frame, code, message string) frame {
	out := frame{'E', 0, 0, 0, 0}
	eachField(f, func(kind byte, value string) {
		switch kind {
		case 'C':
			value = code
		case 'M':
			value = message
		}
		out = append(append(append(out, kind), value...), 0)
	})
	out = append(out, 0)
	binary.BigEndian.PutUint32(out[1:], uint32(len(out)-1))
	return out
}

// eachField calls do with the fields of an ErrorResponse or a NoticeResponse, in order
// (PostgreSQL 15 manual, 55.8).
func eachField(f frame, do func(kind byte, value string)) {
	for b := f.body(); len(b) > 0 && b[0] != 0; {
		value, rest, ok := text(b[1:])
		if !ok {
			return
		}
		do(b[0], value)
		b = rest
	}
}

// errorOf is the code and the message of an ErrorResponse.
func errorOf(f frame) (e pgError) {
	eachField(f, func(kind byte, value string) {
		switch kind {
		case 'C':
			e.code = value
		case 'M':
			e.message = value
		}
	})
	return e
}

// errorText is an ErrorResponse for people.
func errorText(f frame) string {
	e := errorOf(f)
	return "error " + e.code + ": " + e.message
}

// fatal reports whether the server hangs up after the ErrorResponse. The field S is in the
// server's language, V is not; it is there since version 9.6.
func fatal(f frame) bool {
	severity := ""
	eachField(f, func(kind byte, value string) {
		if kind == 'V' || kind == 'S' && severity == "" {
			severity = value
		}
	})
	return severity == "FATAL" || severity == "PANIC"
}
