// Package effect says what a command does to its server, from its text alone: whether it
// reads, writes or locks, whether it can wait at the gate, commute with another, or pass.
// sql.go answers for the statements of databases, redis.go for the commands of Redis. The
// gates in our own process and the gates on the network both ask here.
//
// It does not parse SQL. It splits the text into tokens, so that a FOR UPDATE within a
// string does not count, and knows what cannot be a read. What it does not understand
// Writes and is gated: that costs schedules, never a verdict.
//
// It cannot know what a text does not show: a view whose columns call a function that
// writes reads like a table here.
package effect

import (
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Dialect is how a server reads the text of a statement. It knows the statements that
// change nothing for other connections.
type Dialect int

// The dialects. MySQL is MariaDB's, too, and SQLite's: its functions that MySQL also has
// are without effect, and any other Writes.
const (
	MySQL Dialect = iota
	Postgres
)

// longest is what is looked at, in bytes. A longer statement is a bulk of data, and Writes.
const longest = 1 << 20

// A Statement is what is known of a text of SQL, which may hold several statements.
type Statement struct {
	// Effect is what it can do to the server.
	//
	//	SELECT, SHOW, DESCRIBE, EXPLAIN             Reads
	//	START TRANSACTION WITH CONSISTENT SNAPSHOT  Reads (MySQL)
	//	BEGIN, START TRANSACTION                    Local: an open transaction is not known here, which MySQL would commit
	//	SET of a connection's settings              Local, although SET autocommit may commit a transaction: none is known here
	//	no statement at all                         Local
	//	all else                                    Writes
	//
	// A SELECT that locks (FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE), goes INTO something, or
	// calls a function that is not known to be without effect, Writes. So do several
	// statements in one text, executed comments (/*! */), EXPLAIN ANALYZE, and a WITH that has
	// an INSERT, UPDATE or DELETE.
	Effect schedule.Effect

	// Ends: it ends the open transaction: COMMIT, ROLLBACK, and what commits implicitly in
	// MySQL (MySQL 8.0 Reference Manual, 15.3.3), SET autocommit among it. ROLLBACK TO ends
	// none. Of several statements one is enough.
	Ends bool

	// NamedLock: it asks for a lock by its name and waits for it: GET_LOCK, or
	// pg_advisory_lock and its kin.
	NamedLock bool

	// Compound: it is more than one statement of which each can meet another connection's:
	// several of them, CALL, or a block (DO of PostgreSQL, BEGIN NOT ATOMIC of MariaDB). Local
	// ones beside a single other do not count. A user's own function in a SELECT cannot be told
	// from the server's.
	Compound bool

	// Inside says whether another connection's write can come between its reads and its writes.
	// For several statements it is the greatest.
	Inside Inside

	// Alters reports whether it may change rows. A lock, a setting or the end of a transaction does
	// not.
	Alters bool

	Verb string // the first word in capitals, such as SELECT; "" where there is none
	Line string // the statement for people, see Line

	passing passing
}

// A passing says when a statement need not wait at the gate.
type passing byte

const (
	gated   passing = iota
	always          // it concerns the connection alone: SET, SHOW, SELECT @@version
	looking         // of PostgreSQL: a SELECT that finds the same at any time, unless it fixes what its transaction sees
	outside         // PostgreSQL only: it waits only within a transaction
)

// Waits reports whether the statement waits at the gate. snapshots: the transaction may be
// above READ COMMITTED in PostgreSQL, where its first statement fixes what it sees.
//
// A statement that does not wait sets the connection up (SET NAMES, SET sql_mode, USE) or
// looks at the server itself (SELECT @@version, SHOW VARIABLES). No other connection can
// tell whether it was sent. SET autocommit always waits, alone or behind other assignments:
// it commits an open transaction.
func (s Statement) Waits(inTransaction, snapshots bool) bool {
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

// SQL looks at a text.
func SQL(text string, d Dialect) Statement {
	s := Statement{Effect: schedule.Writes, Verb: verb(text, d), Line: Line(text, d)}
	if len(text) > longest {
		s.NamedLock, s.Alters = true, true // the text is not parsed, so assume both
		return s
	}
	for i, r := range readings(text, d) {
		effect, passes := r.effect()
		switch {
		case i == 0:
			s.Effect, s.passing = effect, passes
		case effect != s.Effect || passes != s.passing:
			s.Effect, s.passing = schedule.Writes, gated
		}
		s.Ends = s.Ends || r.ends()
		s.NamedLock = s.NamedLock || r.namedLock()
		s.Compound = s.Compound || r.compound()
		if r.empty() {
			s.Line = "(empty query)"
		}
		for _, t := range r.statements() {
			s.Inside = max(s.Inside, d.inside(t))
			s.Alters = s.Alters || d.alters(t)
		}
	}
	s.Alters = s.Alters && s.Effect == schedule.Writes
	return s
}

// verb is the first word of a statement in capitals.
func verb(sql string, d Dialect) string {
	t, _ := tokens(sql[:min(len(sql), longestLine)], d, d == MySQL)
	for _, one := range t {
		if one.kind == word {
			return strings.ToUpper(one.text)
		}
		if one.text != "(" {
			break
		}
	}
	return ""
}

// A reading is a statement as the server may understand it.
type reading struct {
	tokens  []token
	odd     bool // it is not all in the tokens
	dialect Dialect
}

// readings are what the text can mean: whether a backslash in a string escapes what follows
// depends on the connection (NO_BACKSLASH_ESCAPES and ANSI_QUOTES of MySQL's sql_mode,
// standard_conforming_strings of PostgreSQL). None: it is not understood.
func readings(sql string, d Dialect) (all []reading) {
	escapes := []bool{d == MySQL}
	if strings.Contains(sql, `\`) {
		escapes = []bool{true, false}
	}
	for _, escape := range escapes {
		t, rest := tokens(sql, d, escape)
		if rest == unfinished && !slices.ContainsFunc(t, func(one token) bool { return one.text == ";" }) {
			continue // read so, the server refuses it
		}
		all = append(all, reading{t, rest != whole, d})
	}
	return all
}

// effect is what the text does, and when it passes.
func (r reading) effect() (schedule.Effect, passing) {
	t, one := r.single()
	if r.empty() {
		return schedule.Local, always // a driver tests its connection with it
	}
	if !one {
		return schedule.Writes, gated
	}
	d := r.dialect
	if d == Postgres {
		if effect, passes, known := postgresAlone(t); known {
			return effect, passes
		}
	}
	switch first(t) {
	case "USE":
		if d == MySQL && len(t) == 2 {
			return schedule.Local, always
		}
	case "SET":
		switch {
		case d == MySQL && d.setsUp(t[1:]) && setsAutocommit(t):
			return schedule.Local, gated
		case d == MySQL && d.setsUp(t[1:]):
			return schedule.Local, always
		case d == MySQL && setsTransaction(t[1:]):
			return schedule.Local, gated
		}
	case "BEGIN":
		// MariaDB's BEGIN NOT ATOMIC is a block of statements.
		if d == Postgres || len(t) == 1 || len(t) == 2 && t[1].is("WORK") {
			return schedule.Local, gated
		}
	case "START":
		return starts(t), gated
	case "SELECT", "WITH", "(":
		switch {
		case d == MySQL && first(t) == "SELECT" && d.looks(t[1:]):
			return schedule.Local, always
		case d.reads(t):
			return schedule.Reads, gated
		}
	case "SHOW", "DESC", "DESCRIBE", "EXPLAIN":
		if d == MySQL && first(t) == "SHOW" && d.showsServer(t[1:]) {
			return schedule.Local, always
		}
		return d.explains(t), gated
	}
	return schedule.Writes, gated
}

// starts is START TRANSACTION and its options.
func starts(t []token) schedule.Effect {
	if len(t) < 2 || !t[1].is("TRANSACTION") {
		return schedule.Writes
	}
	if slices.ContainsFunc(t, func(one token) bool { return one.is("SNAPSHOT") }) {
		return schedule.Reads // it sees what others have committed by now
	}
	return schedule.Local
}

// explains is SHOW, DESCRIBE and EXPLAIN. Even without ANALYZE a plan may compute what is
// constant, so what is explained must be a read.
func (d Dialect) explains(t []token) schedule.Effect {
	inner := slices.IndexFunc(t, func(one token) bool { return one.is("SELECT") || one.is("WITH") })
	if slices.ContainsFunc(t, func(one token) bool { return one.is("ANALYZE") || one.is("ANALYSE") }) || !d.reads(t) {
		return schedule.Writes
	}
	if inner < 0 && first(t) == "EXPLAIN" && (len(t) != 2 && (len(t) != 4 || t[2].text != ".")) {
		return schedule.Writes // of something else than a table or a SELECT
	}
	return schedule.Reads
}

// reads reports whether nothing in a statement that begins like a read locks, writes, or
// calls what may.
func (d Dialect) reads(t []token) bool {
	for i, one := range t {
		if one.kind != word {
			continue
		}
		var next token
		if i+1 < len(t) {
			next = t[i+1]
		}
		switch strings.ToUpper(one.text) {
		case "INTO", "INSERT", "UPDATE", "DELETE", "MERGE", "CALL", "PROCEDURE", "TRUNCATE":
			return false
		case "LOCK":
			if next.is("IN") {
				return false
			}
		case "NEXT":
			if next.is("VALUE") { // of a sequence, for
				return false
			}
		case "REPLACE": // also a function on strings
			if next.text != "(" {
				return false
			}
		case "FOR":
			if !next.is("JOIN") && !next.is("ORDER") && !next.is("GROUP") && !next.is("SYSTEM_TIME") && next.kind != number {
				return false
			}
		}
	}
	return d.callsArePure(t)
}

// callsArePure reports whether every function that is called is known.
func (d Dialect) callsArePure(t []token) bool {
	for i := 1; i < len(t); i++ {
		if t[i].text != "(" || t[i].kind != other {
			continue
		}
		name := t[i-1]
		switch {
		case name.kind == identifier:
			return false
		case name.kind != word || beforeParenthesis[strings.ToLower(name.text)],
			d == MySQL && beforeParenthesisMySQL[strings.ToLower(name.text)]:
		case i > 1 && t[i-2].text == ".":
			if d != Postgres || i < 3 || !t[i-3].is("pg_catalog") || !pure(name.text, d) {
				return false // of a schema
			}
		case d == MySQL && t[i].spaced && !types[strings.ToLower(name.text)]:
			return false // MySQL 8.0 Reference Manual, 11.2.5: with a space it may be a stored function
		case strings.EqualFold(name.text, "last_insert_id"):
			if i+1 >= len(t) || t[i+1].text != ")" {
				return false // it sets it
			}
		case !pure(name.text, d):
			return false
		}
	}
	return true
}

// single is the only statement of a text.
func (r reading) single() ([]token, bool) {
	all := r.statements()
	if len(all) != 1 || r.odd {
		return nil, false
	}
	return all[0], true
}

// empty reports whether the text contains no statement.
func (r reading) empty() bool { return len(r.statements()) == 0 && !r.odd }

// statements splits at semicolons.
func (r reading) statements() (all [][]token) {
	from := 0
	for i, one := range r.tokens {
		if one.kind == other && one.text == ";" {
			if i > from {
				all = append(all, r.tokens[from:i])
			}
			from = i + 1
		}
	}
	if from < len(r.tokens) {
		all = append(all, r.tokens[from:])
	}
	return all
}

// first is the verb of a statement, in capitals; "(" before one in parentheses.
func first(t []token) string {
	if len(t) == 0 || t[0].kind != word && t[0].text != "(" {
		return ""
	}
	return strings.ToUpper(t[0].text)
}
