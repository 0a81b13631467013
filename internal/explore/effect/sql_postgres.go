package effect

import (
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// postgresAlone returns the effect of a statement that MySQL lacks or treats differently.
func postgresAlone(t []token) (_ schedule.Effect, _ passing, known bool) {
	switch first(t) {
	case "SET":
		// SET CONSTRAINTS may check constraints at once. SET TRANSACTION SNAPSHOT decides which commits
		// the transaction sees.
		if len(t) > 1 && t[1].is("CONSTRAINTS") || slices.ContainsFunc(t, func(one token) bool { return one.is("SNAPSHOT") }) {
			return schedule.Writes, gated, true
		}
		return schedule.Local, always, true
	case "RESET", "SHOW":
		return schedule.Local, always, true
	case "DEALLOCATE":
		return schedule.Writes, outside, true
	case "LISTEN", "UNLISTEN": // its place in the schedule decides which notifications arrive
		return schedule.Writes, gated, true
	case "TABLE", "VALUES": // each is short for a SELECT
		if Postgres.reads(t) {
			return schedule.Reads, gated, true
		}
	case "SELECT", "WITH":
		switch {
		case first(t) == "SELECT" && Postgres.looks(t[1:]):
			return schedule.Reads, looking, true
		case Postgres.reads(t) && catalog(words(t)):
			return schedule.Reads, looking, true
		}
	}
	return schedule.Writes, gated, false
}

// words returns tokens with keywords and names in capitals. Quoted names, strings, numbers and signs
// stay as they were sent.
func words(t []token) (all []string) {
	for _, one := range t {
		if one.kind == word {
			all = append(all, strings.ToUpper(one.text))
		} else {
			all = append(all, one.text)
		}
	}
	return all
}

// catalogs are tables and views of the server, in which drivers look up types.
var catalogs = []string{
	"PG_AM", "PG_ATTRDEF", "PG_ATTRIBUTE", "PG_AUTHID", "PG_CAST", "PG_CLASS", "PG_COLLATION", "PG_CONSTRAINT", "PG_DATABASE",
	"PG_DEPEND", "PG_DESCRIPTION", "PG_ENUM", "PG_EXTENSION", "PG_INDEX", "PG_INDEXES", "PG_INHERITS", "PG_LANGUAGE",
	"PG_NAMESPACE", "PG_OPCLASS", "PG_OPERATOR", "PG_PROC", "PG_RANGE", "PG_ROLES", "PG_SETTINGS", "PG_SHDESCRIPTION",
	"PG_TABLES", "PG_TABLESPACE", "PG_TIMEZONE_NAMES", "PG_TRIGGER", "PG_TYPE", "PG_USER", "PG_VIEWS",
}

// catalog reports whether a SELECT reads only from the catalog. pg_stat_activity and pg_locks do not
// count, since they show other connections.
func catalog(words []string) bool {
	found := false
	from := []bool{false} // whether the position is within a FROM, for each open parenthesis
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
		case next[0] == "(" && len(next) > 1 && (next[1] == "SELECT" || next[1] == "VALUES"): // a subquery, which the loop checks, too
		case next[0] != "(" && len(next) > 1 && next[1] == "(": // a function, which Effect checks
		default:
			return false
		}
	}
	return found
}
