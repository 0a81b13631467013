package postgres

import (
	"regexp"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
)

// A said describes a statement by its text. The zero said Writes, and is gated.
type said struct {
	effect.Statement
	upper    string // the text in capitals
	isolates bool   // from here on a transaction may be above READ COMMITTED
	lasting  bool   // not only this transaction
	level    string // the isolation level that it sets from here on, in capitals; "": none
}

// namedLevel matches the isolation level that a SET, a BEGIN or a START TRANSACTION names
// (PostgreSQL 15 manual, SET TRANSACTION).
var namedLevel = regexp.MustCompile(`^(?:SET|BEGIN|START)\b.*ISOLATION\b.*?\b(SERIALIZABLE|REPEATABLE READ|READ (?:UN)?COMMITTED)\b`)

func says(sql string) said {
	s := said{Statement: effect.SQL(sql, effect.Postgres), upper: strings.ToUpper(sql)}
	has := func(word string) bool { return strings.Contains(s.upper, word) }
	s.isolates = has("REPEATABLE") || has("SERIALIZABLE") || has("TRANSACTION_ISOLATION")
	if level := namedLevel.FindStringSubmatch(strings.Join(strings.Fields(s.upper), " ")); level != nil {
		s.level = level[1]
	}
	s.lasting = has("CHARACTERISTICS") || has("DEFAULT_TRANSACTION_ISOLATION")
	return s
}

// utility reports whether preparing the statement reads no table.
func (s said) utility() bool {
	switch s.Verb {
	case "SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "EXPLAIN", "CALL", "DECLARE", "":
		return false
	}
	return true
}
