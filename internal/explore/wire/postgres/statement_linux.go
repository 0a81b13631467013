package postgres

import (
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/wire/statement"
)

// A said is what is known of a statement from its text.
type said struct {
	verb     string
	line     string // for people, with $1 where values are
	upper    string // the text in capitals
	effect   schedule.Effect
	passing  passing
	named    bool // it asks for an advisory lock
	ends     bool
	compound bool
	isolates bool // a transaction may be above READ COMMITTED from here on
	lasting  bool // not this one alone
}

// A passing is when a statement need not wait at the gate.
type passing byte

const (
	gated   passing = iota
	always          // the connection alone is concerned: SET, SHOW
	looking         // a SELECT that finds the same at any time, unless it fixes what its transaction sees
	outside         // not within a transaction: LISTEN takes effect when it commits
)

// waits reports whether the statement waits at the gate.
func (s said) waits(inTransaction, snapshots bool) bool {
	switch s.passing {
	case always:
		return false
	case looking:
		return inTransaction && snapshots
	case outside:
		return inTransaction
	}
	return true
}

// utility reports whether the statement is prepared without a look at the tables.
func (s said) utility() bool {
	switch s.verb {
	case "SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE", "EXPLAIN", "CALL", "DECLARE", "":
		return false
	}
	return true
}

// says looks at a text. Package statement knows SQL; here is what is PostgreSQL's alone.
func says(sql string) said {
	s := said{
		verb:     statement.Verb(sql, statement.Postgres),
		line:     statement.Line(sql, statement.Postgres),
		upper:    strings.ToUpper(sql),
		effect:   statement.Effect(sql, statement.Postgres),
		named:    statement.NamedLock(sql, statement.Postgres),
		ends:     statement.Ends(sql, statement.Postgres),
		compound: statement.Compound(sql, statement.Postgres),
	}
	has := func(word string) bool { return strings.Contains(s.upper, word) }
	s.isolates = has("REPEATABLE") || has("SERIALIZABLE") || has("TRANSACTION_ISOLATION")
	s.lasting = has("CHARACTERISTICS") || has("DEFAULT_TRANSACTION_ISOLATION")
	words := statement.Words(sql, statement.Postgres)
	if len(words) == 0 {
		return s
	}
	second := ""
	if len(words) > 1 {
		second = words[1]
	}
	switch words[0] {
	case "TABLE", "VALUES":
		// Each is short for a SELECT, and stands where one can.
		s.effect = statement.Effect("WITH a AS (SELECT 1) "+sql, statement.Postgres)
	case "SET":
		if second != "CONSTRAINTS" { // IMMEDIATE checks at once
			s.passing, s.effect = always, schedule.Local
		}
	case "RESET", "SHOW":
		s.passing, s.effect = always, schedule.Local
	case "LISTEN", "UNLISTEN", "DEALLOCATE":
		s.passing = outside
	case "SELECT", "WITH":
		switch {
		case statement.Passes(sql, statement.Postgres):
			s.passing, s.effect = looking, schedule.Reads
		case s.effect == schedule.Reads && catalog(words):
			s.passing = looking
		}
	}
	return s
}

// catalogs are tables and views of the server's own, which drivers look types up in.
var catalogs = []string{
	"PG_AM", "PG_ATTRDEF", "PG_ATTRIBUTE", "PG_AUTHID", "PG_CAST", "PG_CLASS", "PG_COLLATION", "PG_CONSTRAINT", "PG_DATABASE",
	"PG_DEPEND", "PG_DESCRIPTION", "PG_ENUM", "PG_EXTENSION", "PG_INDEX", "PG_INDEXES", "PG_INHERITS", "PG_LANGUAGE",
	"PG_NAMESPACE", "PG_OPCLASS", "PG_OPERATOR", "PG_PROC", "PG_RANGE", "PG_ROLES", "PG_SETTINGS", "PG_SHDESCRIPTION",
	"PG_TABLES", "PG_TABLESPACE", "PG_TIMEZONE_NAMES", "PG_TRIGGER", "PG_TYPE", "PG_USER", "PG_VIEWS",
}

// catalog reports whether a SELECT reads from the catalog alone. pg_stat_activity and
// pg_locks are none of it here: they show what others do.
func catalog(words []string) bool {
	found := false
	from := []bool{false} // for each parenthesis that is open: within its FROM
	for i, w := range words {
		in := &from[len(from)-1]
		relation := false
		switch w {
		case "(":
			from = append(from, false)
		case ")":
			if len(from) > 1 {
				from = from[:len(from)-1]
			}
		case "FROM", "JOIN":
			*in, relation = true, true
		case "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "SELECT":
			*in = false
		case ",":
			relation = *in
		case "TABLE", "INFORMATION_SCHEMA":
			return false
		}
		if !relation {
			continue
		}
		next := words[i+1:]
		if len(next) > 0 && next[0] == "LATERAL" {
			next = next[1:]
		}
		if len(next) > 1 && next[0] == "PG_CATALOG" && next[1] == "." {
			next = next[2:]
		}
		switch {
		case len(next) == 0:
			return false
		case slices.Contains(catalogs, next[0]) && (len(next) == 1 || next[1] != "."):
			found = true
		case next[0] == "(" && len(next) > 1 && (next[1] == "SELECT" || next[1] == "VALUES"): // it is looked at, too
		case next[0] != "(" && len(next) > 1 && next[1] == "(": // a function, and Effect knows it
		default:
			return false
		}
	}
	return found
}
