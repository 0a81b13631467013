package postgres

import (
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
)

// A said is what is known of a statement from its text. The zero said Writes, and is gated.
type said struct {
	effect.Statement
	upper    string // the text in capitals
	isolates bool   // a transaction may be above READ COMMITTED from here on
	lasting  bool   // not this one alone

	serializes bool // from here on a transaction is SERIALIZABLE
	relaxes    bool // from here on a transaction is READ COMMITTED
}

func says(sql string) said {
	s := said{Statement: effect.SQL(sql, effect.Postgres), upper: strings.ToUpper(sql)}
	has := func(word string) bool { return strings.Contains(s.upper, word) }
	s.isolates = has("REPEATABLE") || has("SERIALIZABLE") || has("TRANSACTION_ISOLATION")
	s.serializes = s.isolates && has("SERIALIZABLE")
	s.relaxes = has("READ COMMITTED") && (s.Verb == "SET" || s.Verb == "BEGIN" || s.Verb == "START")
	s.lasting = has("CHARACTERISTICS") || has("DEFAULT_TRANSACTION_ISOLATION")
	return s
}

// utility reports whether the statement is prepared without a look at the tables.
func (s said) utility() bool {
	switch s.Verb {
	case "SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "EXPLAIN", "CALL", "DECLARE", "":
		return false
	}
	return true
}
