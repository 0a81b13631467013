package postgres

import (
	"cmp"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/oversell/oversell/internal/explore/wire"
)

// The server's errors that the gate handles (PostgreSQL 15 manual, appendix A).
const (
	errInsufficientPrivilege = "42501"
	errQueryCanceled         = "57014"
	errLockNotAvailable      = "55P03"
	errDeadlockDetected      = "40P01"
)

// TimedOut implements wire.Session. It replaces the error of pg_cancel_backend by that of lock_timeout.
// The two errors have the same effect.
func (s *Session) TimedOut(current *wire.Command, raw []byte) []byte {
	return inPlace(current, raw, errLockNotAvailable, "canceling statement due to lock timeout")
}

// Deadlocked replaces the error of pg_cancel_backend by that of a deadlock (40P01). It returns any
// other answer unchanged.
func (s *Session) Deadlocked(current *wire.Command, raw []byte) []byte {
	return inPlace(current, raw, errDeadlockDetected, "deadlock detected")
}

// inPlace replaces the error of pg_cancel_backend by the given error. It keeps the fields that say
// where in the statement the server waited, and for what.
func inPlace(current *wire.Command, raw []byte, code, message string) []byte {
	var out []byte
	found := false
	for _, f := range frames(raw) {
		if e := errorOf(f); f.kind() == 'E' && e.Code == errQueryCanceled {
			e.Code, e.Message = code, message
			renamed, err := e.Encode(nil)
			if err != nil {
				return raw
			}
			f, found = renamed, true
			current.Answer.Text, current.Answer.Failed = wire.Shorten(errorText(e)), true
		}
		out = append(out, f...)
	}
	if !found {
		return raw
	}
	current.Answer.Raw = out
	return out
}

// errorOf reads an ErrorResponse or a NoticeResponse. A field that it cannot read is empty.
func errorOf(f frame) (e pgproto3.ErrorResponse) {
	_ = e.Decode(f.body())
	return e
}

func errorText(e pgproto3.ErrorResponse) string { return "error " + e.Code + ": " + e.Message }

// fatal reports whether the server hangs up after the ErrorResponse. The server translates the field
// Severity. It does not translate SeverityUnlocalized, which exists since version 9.6.
func fatal(f frame) bool {
	severity := cmp.Or(errorOf(f).SeverityUnlocalized, errorOf(f).Severity)
	return severity == "FATAL" || severity == "PANIC"
}
