package effect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Mention describes the tables that an SQL text can touch. It relies on one fact: a statement touches
// only the tables that it names, and those that a function, view, trigger, rule or foreign key adds.
type Mention struct {
	// Names are all names in the text, in lower case and without quotes, each once: tables, columns and
	// keywords alike.
	Names []string
	// Undecided reports that the text may touch a table that it does not name. It may if it contains
	// CALL, DO, EXECUTE or a function of the user, or if it is not understood or not complete.
	Undecided bool
	// Alters reports that it may change or lock rows.
	Alters bool
	// Deletes reports that it may delete rows.
	Deletes bool
	// Waits reports that it calls a function that takes or releases a lock, waits or notifies.
	Waits bool
	// Controls reports that it only begins, ends or sets up a transaction or the connection. Begins and
	// Ends are true if it begins or ends a transaction.
	Controls, Begins, Ends bool
}

// isCut matches a text whose end, or the end of one of its statements, is missing. It does not match a
// value that Quote has cut: there, a quote stands before the dots.
var isCut = regexp.MustCompile(`\.\.\. \(\d+ (?:bytes|more)\)(?:;|$)|[^']\.\.\. \(\d+ (?:bytes|more)\)`)

// Mentions analyses a text from Line.
func Mentions(text string, d Dialect) (m Mention) {
	all := readings(text, d)
	if len(all) == 0 || isCut.MatchString(text) {
		return Mention{Undecided: true, Alters: true}
	}
	m.Controls = true
	for _, r := range all {
		if r.odd {
			m.Undecided, m.Alters, m.Controls = true, true, false
		}
		m.Ends = m.Ends || r.ends()
		for _, t := range r.statements() {
			m.add(t, d)
		}
		for i, one := range r.tokens {
			m.name(r.tokens, i, one, d)
		}
	}
	slices.Sort(m.Names)
	m.Names = slices.Compact(m.Names)
	return m
}

// name adds the token at i if it can be a name.
func (m *Mention) name(t []token, i int, one token, d Dialect) {
	switch {
	case one.kind == word || one.kind == identifier || one.kind == text && d == MySQL && one.text[0] == '"':
		name := unquoted(one.text)
		m.Names = append(m.Names, name)
		m.Waits = m.Waits || waiting[name]
	case one.text == "&" && i+1 < len(t) && t[i+1].kind == identifier: // U&"name" may contain escapes
		m.Undecided, m.Alters = true, true
	}
}

func unquoted(name string) string { return strings.ToLower(strings.Trim(name, "`\"")) }

func (m *Mention) add(t []token, d Dialect) {
	r := reading{tokens: t, dialect: d}
	switch verb := first(t); verb {
	case "BEGIN", "START":
		if effect, _ := r.effect(); effect == schedule.Local {
			m.Begins = true
			return
		}
	case "COMMIT", "ROLLBACK", "END", "ABORT", "SAVEPOINT", "RELEASE":
		if !slices.ContainsFunc(t, func(one token) bool { return one.is("PREPARED") }) {
			return
		}
	case "SET":
		if effect, _ := r.effect(); effect == schedule.Local {
			return
		}
	case "SELECT", "WITH", "(", "VALUES", "TABLE", "INSERT", "REPLACE", "UPDATE", "DELETE":
		m.Controls = false
		alters := changes(t)
		m.Alters = m.Alters || alters
		m.Deletes = m.Deletes || slices.ContainsFunc(t, func(one token) bool { return one.is("DELETE") || one.is("REPLACE") })
		if !d.callsTouchNoTable(t) || !alters && slices.ContainsFunc(t, func(one token) bool { return one.is("INTO") }) {
			m.Undecided = true
			m.Alters = m.Alters || d.alters(t)
		}
		return
	}
	m.Controls, m.Undecided = false, true
	m.Alters = m.Alters || d.alters(t)
}

func changes(t []token) bool {
	switch first(t) {
	case "INSERT", "REPLACE", "UPDATE", "DELETE":
		return true
	}
	return !changesNothing(t)
}

// tableless are functions that have an effect and touch no table.
var tableless = set(`uuid_short nextval currval lastval setval uuid_generate_v1 uuid_generate_v4 uuidv4 uuidv7`)

// waiting are functions that take or release a lock, wait or notify, and touch no table.
var waiting = set(`get_lock release_lock release_all_locks is_free_lock is_used_lock sleep pg_sleep pg_notify
	pg_advisory_lock pg_advisory_lock_shared pg_advisory_unlock pg_advisory_unlock_shared pg_advisory_unlock_all
	pg_advisory_xact_lock pg_advisory_xact_lock_shared pg_try_advisory_lock pg_try_advisory_lock_shared
	pg_try_advisory_xact_lock pg_try_advisory_xact_lock_shared`)

// callsTouchNoTable reports whether the called functions touch only tables that the statement names. It
// returns false for an unknown function.
func (d Dialect) callsTouchNoTable(t []token) bool {
	into := -1 // the end of the table's name after INSERT INTO
	for i := 1; i < len(t); i++ {
		if t[i-1].is("INTO") {
			for into = i; into+2 < len(t) && t[into+1].text == "."; into += 2 {
			}
		}
		if t[i].text != "(" || t[i].kind != other || i-1 == into {
			continue // no parenthesis, or the columns of an INSERT
		}
		before := t[i-1]
		known := before.is("CONFLICT") || before.kind == word && (tableless[strings.ToLower(before.text)] || waiting[strings.ToLower(before.text)])
		if !known && !d.callIsPure(t, i) {
			return false
		}
	}
	return true
}
