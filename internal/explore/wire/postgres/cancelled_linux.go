package postgres

import (
	"cmp"

	"github.com/jackc/pgx/v5/pgproto3"

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

// inPlace puts another error in the place of the one of pg_cancel_backend. The fields that say
// where in the statement it waited, and for what, stay.
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

// errorOf reads an ErrorResponse or a NoticeResponse; what cannot be read is empty.
func errorOf(f frame) (e pgproto3.ErrorResponse) {
	_ = e.Decode(f.body())
	return e
}

// errorText is an ErrorResponse for people.
func errorText(e pgproto3.ErrorResponse) string { return "error " + e.Code + ": " + e.Message }

// fatal reports whether the server hangs up after the ErrorResponse. Severity is in the
// server's language, the other is not; it is there since version 9.6.
func fatal(f frame) bool {
	severity := cmp.Or(errorOf(f).SeverityUnlocalized, errorOf(f).Severity)
	return severity == "FATAL" || severity == "PANIC"
}
