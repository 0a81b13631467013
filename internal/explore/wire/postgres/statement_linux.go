package postgres

import (
	"regexp"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
)

// A said is the analysis of one statement's text. The zero value means a write, which waits at the gate
// until the search releases it.
type said struct {
	effect.Statement
	upper    string // the text in capitals
	isolates bool   // it may raise the isolation level above READ COMMITTED
	lasting  bool   // the level also applies to later transactions
	level    string // the isolation level that it sets, in capitals; "": none
}

// namedLevel matches the isolation level that a SET, a BEGIN or a START TRANSACTION names
// (PostgreSQL 15 manual, SET TRANSACTION).
var namedLevel = regexp.MustCompile(`^(?:SET|BEGIN|START)\b.*ISOLATION\b.*?\b(SERIALIZABLE|REPEATABLE READ|READ (?:UN)?COMMITTED)\b`)

// known returns the catalog of the database's tables and routines; nil if it is unknown.
func (s *state) known() *effect.Catalog {
	if s.catalog == nil {
		return nil
	}
	return s.catalog()
}

// said returns the analysis of a prepared statement. mu must be held.
func (s *state) said(p *prepared) said {
	if c := s.known(); p.by != c && p.sql != "" {
		p.says, p.by = says(p.sql, c), c
	}
	return p.says
}

func says(sql string, c *effect.Catalog) said {
	s := said{Statement: effect.With(c, sql, effect.Postgres), upper: strings.ToUpper(sql)}
	has := func(word string) bool { return strings.Contains(s.upper, word) }
	s.isolates = has("REPEATABLE") || has("SERIALIZABLE") || has("TRANSACTION_ISOLATION")
	if level := namedLevel.FindStringSubmatch(strings.Join(strings.Fields(s.upper), " ")); level != nil {
		s.level = level[1]
	}
	s.lasting = has("CHARACTERISTICS") || has("DEFAULT_TRANSACTION_ISOLATION")
	return s
}

// holds reports whether the connection may have a named lock, or listen to a channel, after the
// statement.
func (s said) holds() bool {
	switch s.Verb {
	case "CALL", "DO", "EXECUTE", "LISTEN", "":
		return true
	}
	return s.Runs || s.Compound && strings.Contains(strings.ReplaceAll(s.upper, "UNLISTEN", ""), "LISTEN") || strings.Contains(s.upper, "ADVISORY_LOCK")
}

// utility reports whether preparing the statement reads no table.
func (s said) utility() bool {
	switch s.Verb {
	case "SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "EXPLAIN", "CALL", "DECLARE", "":
		return false
	}
	return true
}
