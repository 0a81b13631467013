// Package effect determines the effect of a command on its server from its text: whether it reads, writes or locks, and
// whether it commutes with another command. A command with an effect waits at the gate until the search releases it;
// other commands pass. sql.go handles statements of databases, and redis.go commands of Redis. The gates in our own
// process and those on the network use this package.
//
// Package effect does not parse SQL. It splits the text into tokens, so that a FOR UPDATE within a string does not
// count, and recognizes statements that can only read. A statement that it does not understand counts as a write and
// waits at the gate. That adds schedules, but never makes a verdict wrong.
//
// Some effects are not visible in the text, such as those of a trigger. A Catalog holds the code that a statement runs,
// and catalog.go adds the reads and writes of this code.
package effect

import (
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Dialect is the SQL of one kind of server.
type Dialect int

// The dialects. Use MySQL for MariaDB and SQLite, too: the functions that SQLite shares with MySQL have
// no effect, and any other function counts as a write.
const (
	MySQL Dialect = iota
	Postgres
)

// DialectOf returns the dialect of a database's protocol, and false for other servers.
func DialectOf(protocol string) (_ Dialect, sql bool) {
	switch protocol {
	case "mysql":
		return MySQL, true
	case "postgres":
		return Postgres, true
	}
	return 0, false
}

// longest is the maximum length of an analysed text, in bytes. A longer text is bulk data, and counts
// as a write.
const longest = 1 << 20

// A Statement describes a text of SQL, which may contain several statements.
type Statement struct {
	// Effect is the text's possible effect on the server.
	//
	//	SELECT, SHOW, DESCRIBE, EXPLAIN             Reads
	//	START TRANSACTION WITH CONSISTENT SNAPSHOT  Reads (MySQL)
	//	BEGIN, START TRANSACTION                    Local: MySQL would commit an open transaction, which is unknown here
	//	SET of a connection's settings              Local, although SET autocommit may commit a transaction
	//	no statement at all                         Local
	//	anything else                               Writes
	//
	// A SELECT that locks (FOR UPDATE, FOR SHARE, LOCK IN SHARE MODE), has an INTO, or calls a function
	// that may have an effect, is a write. So are several statements in one text; executed comments
	// (/*! */); EXPLAIN ANALYZE; and a WITH that contains an INSERT, UPDATE or DELETE.
	Effect schedule.Effect

	// Ends reports whether one of its statements ends the open transaction: COMMIT, ROLLBACK or, in MySQL, a statement
	// with an implicit commit, such as SET autocommit (MySQL 8.0 Reference Manual, 15.3.3). ROLLBACK TO does not.
	Ends bool

	// NamedLock reports whether it asks for a named lock and waits for it: GET_LOCK, or
	// pg_advisory_lock and its variants.
	NamedLock bool

	// Compound reports whether another connection's command can come between two of its statements.
	// That applies to several statements, CALL, or a block (DO of PostgreSQL, BEGIN NOT ATOMIC of
	// MariaDB). Local statements do not count.
	Compound bool

	// Inside says whether another connection's write can come between its reads and its writes. For
	// several statements, it is the highest of their values.
	Inside Inside

	// Resets reports that it only resets a connection of PostgreSQL: settings, cursors, notifications,
	// temporary tables and named locks. A pool sends such a text when a program returns a connection.
	Resets bool

	// Alters reports whether it may change rows. A lock, a setting or the end of a transaction does
	// not.
	Alters bool

	// The function With sets the following fields, from a Catalog. Type Uses explains the others.
	Runs       bool // it runs code of the database that its text does not show
	Reads      bool // it reads rows without a lock
	Torn       bool
	TornInside bool
	Controls   bool
	Scans      int
	Skews      bool // it runs code that reads in several snapshots, and writes nothing

	Alone bool   // it is exactly one statement
	Verb  string // first word in capitals, such as SELECT; "" if there is none
	Line  string // the text on one line, for people

	passing passing
}

// A passing says when a statement passes the gate, so that it does not wait for its turn.
type passing byte

const (
	gated   passing = iota
	always          // it affects only the connection: SET, SHOW, SELECT @@version
	looking         // PostgreSQL only: a SELECT with a constant result; it waits only if it takes the transaction's snapshot
	outside         // PostgreSQL only: a statement that waits only within a transaction
)

// Waits reports whether the statement waits at the gate. The parameter `snapshots` is true if PostgreSQL may run the
// transaction above READ COMMITTED. Then its first statement takes the snapshot for all others.
//
// A statement that does not wait configures the connection (SET NAMES, SET sql_mode, USE) or reads about the server
// (SELECT @@version, SHOW VARIABLES). No other connection can notice it. SET autocommit always waits, alone or after
// other assignments, since it commits an open transaction.
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

// SQL analyses a text.
func SQL(text string, d Dialect) Statement {
	s := Statement{Effect: schedule.Writes, Verb: verb(text, d), Line: Line(text, d)}
	if len(text) > longest {
		s.NamedLock, s.Alters = true, true // the text is not parsed, so assume both
		return s
	}
	for i, r := range readings(text, d) {
		effect, passes := r.effect()
		_, alone := r.single()
		s.Alone = alone && (i == 0 || s.Alone)
		switch {
		case i == 0:
			s.Effect, s.passing = effect, passes
		case effect != s.Effect || passes != s.passing:
			s.Effect, s.passing = schedule.Writes, gated
		}
		s.Ends = s.Ends || r.ends()
		s.NamedLock = s.NamedLock || r.namedLock()
		s.Compound = s.Compound || r.compound()
		s.Resets = r.resets() && (i == 0 || s.Resets)
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

// Writes reports whether the text is exactly one statement that inserts, updates or deletes rows, and
// that the server commits as a whole.
func (s Statement) Writes() bool {
	switch s.Verb {
	case "SELECT", "CALL", "DO":
		return s.Runs && s.Alone && s.Alters && s.Effect == schedule.Writes && !s.Controls
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "WITH":
		return s.Alone && s.Alters && s.Effect == schedule.Writes
	}
	return false
}

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

// A reading is one way in which the server may understand a statement.
type reading struct {
	tokens  []token
	odd     bool // the tokens do not cover the whole text
	dialect Dialect
}

// readings returns the possible meanings of a text. Settings of the connection decide whether a
// backslash in a string escapes the next character (NO_BACKSLASH_ESCAPES and ANSI_QUOTES in MySQL's
// sql_mode, standard_conforming_strings in PostgreSQL). If there is no reading, the text cannot be
// understood.
func readings(sql string, d Dialect) (all []reading) {
	escapes := []bool{d == MySQL}
	if strings.Contains(sql, `\`) {
		escapes = []bool{true, false}
	}
	for _, escape := range escapes {
		t, rest := tokens(sql, d, escape)
		if rest == unfinished && !slices.ContainsFunc(t, func(one token) bool { return one.text == ";" }) {
			continue // with this meaning, the server refuses the text
		}
		all = append(all, reading{t, rest != whole, d})
	}
	return all
}

// effect returns the value of Statement.Effect, and says when the text passes the gate.
func (r reading) effect() (schedule.Effect, passing) {
	t, one := r.single()
	if r.empty() {
		return schedule.Local, always // drivers send an empty text to test a connection
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

func starts(t []token) schedule.Effect {
	if len(t) < 2 || !t[1].is("TRANSACTION") {
		return schedule.Writes
	}
	if slices.ContainsFunc(t, func(one token) bool { return one.is("SNAPSHOT") }) {
		return schedule.Reads // from here on, the transaction sees only earlier commits
	}
	return schedule.Local
}

// explains handles SHOW, DESCRIBE and EXPLAIN. Even without ANALYZE, the server may compute constant
// expressions for a plan, so the explained statement must be a read.
func (d Dialect) explains(t []token) schedule.Effect {
	inner := slices.IndexFunc(t, func(one token) bool { return one.is("SELECT") || one.is("WITH") })
	if slices.ContainsFunc(t, func(one token) bool { return one.is("ANALYZE") || one.is("ANALYSE") }) || !d.reads(t) {
		return schedule.Writes
	}
	if inner < 0 && first(t) == "EXPLAIN" && (len(t) != 2 && (len(t) != 4 || t[2].text != ".")) {
		return schedule.Writes // it explains neither a table nor a SELECT
	}
	return schedule.Reads
}

// reads reports whether a statement that begins like a read locks nothing, writes nothing, and calls no
// function with an effect.
func (d Dialect) reads(t []token) bool { return changesNothing(t) && d.callsArePure(t) }

// changesNothing reports whether a statement that begins like a read locks nothing and writes nothing,
// apart from the functions that it calls.
func changesNothing(t []token) bool {
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
			if next.is("VALUE") { // NEXT VALUE FOR a sequence
				return false
			}
		case "REPLACE": // also a string function
			if next.text != "(" {
				return false
			}
		case "FOR":
			if !next.is("JOIN") && !next.is("ORDER") && !next.is("GROUP") && !next.is("SYSTEM_TIME") && next.kind != number {
				return false
			}
		}
	}
	return true
}

// callsArePure reports whether every called function is known to have no effect.
func (d Dialect) callsArePure(t []token) bool {
	for i := 1; i < len(t); i++ {
		if t[i].text == "(" && t[i].kind == other && !d.callIsPure(t, i) {
			return false
		}
	}
	return true
}

// callIsPure reports whether the parenthesis at i belongs to no call, or to a function that is known to
// have no effect.
func (d Dialect) callIsPure(t []token, i int) bool {
	name := t[i-1]
	switch {
	case name.kind == identifier:
		return false
	case name.kind != word || beforeParenthesis[strings.ToLower(name.text)],
		d == MySQL && beforeParenthesisMySQL[strings.ToLower(name.text)]:
		return true
	case i > 1 && t[i-2].text == ".": // a function of a schema
		return d == Postgres && i > 2 && t[i-3].is("pg_catalog") && pure(name.text, d)
	case d == MySQL && t[i].spaced && !types[strings.ToLower(name.text)]:
		return false // MySQL 8.0 Reference Manual, 11.2.5: with a space it may be a stored function
	case strings.EqualFold(name.text, "last_insert_id"):
		return i+1 < len(t) && t[i+1].text == ")" // with an argument, LAST_INSERT_ID changes the connection's last id
	}
	return pure(name.text, d)
}

func (r reading) single() ([]token, bool) {
	all := r.statements()
	if len(all) != 1 || r.odd {
		return nil, false
	}
	return all[0], true
}

func (r reading) empty() bool { return len(r.statements()) == 0 && !r.odd }

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

// first returns the verb of a statement in capitals, or "(" if a parenthesis precedes it.
func first(t []token) string {
	if len(t) == 0 || t[0].kind != word && t[0].text != "(" {
		return ""
	}
	return strings.ToUpper(t[0].text)
}
