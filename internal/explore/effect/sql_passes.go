package effect

import (
	"slices"
	"strings"
)

// setsTransaction reports SET TRANSACTION and SET SESSION TRANSACTION, which affect only the
// connection.
func setsTransaction(t []token) bool {
	if len(t) > 0 && (t[0].is("SESSION") || t[0].is("LOCAL")) {
		t = t[1:]
	}
	if len(t) == 0 || !t[0].is("TRANSACTION") {
		return false
	}
	return !slices.ContainsFunc(t, func(one token) bool { return one.kind != word && one.text != "," })
}

// setsUp reports whether every assignment of MySQL's SET affects only the connection.
func (d Dialect) setsUp(t []token) bool {
	for {
		one, rest, more := cut(t)
		if !d.assigns(one) {
			return false
		}
		if !more {
			return true
		}
		t = rest
	}
}

func cut(t []token) (before, after []token, found bool) {
	depth := 0
	for i, one := range t {
		switch {
		case one.kind != other:
		case one.text == "(":
			depth++
		case one.text == ")":
			depth--
		case one.text == "," && depth == 0:
			return t[:i], t[i+1:], true
		}
	}
	return t, nil, false
}

// assigns reads one assignment of MySQL's SET (MySQL 8.0 Reference Manual, 15.7.6).
func (d Dialect) assigns(t []token) bool {
	switch {
	case len(t) < 2:
		return false
	case t[0].is("NAMES"), t[0].is("CHARSET"):
		return len(t) == 2 || len(t) == 4 && t[2].is("COLLATE")
	case t[0].is("CHARACTER") && t[1].is("SET"):
		return len(t) == 3
	}
	if t[0].text == "@@" {
		t = t[1:]
		if len(t) > 2 && (t[0].is("SESSION") || t[0].is("LOCAL")) && t[1].text == "." {
			t = t[2:]
		}
	} else if t[0].is("SESSION") || t[0].is("LOCAL") {
		t = t[1:]
	}
	if len(t) < 3 || t[0].kind != word && t[0].text != "`autocommit`" {
		return false
	}
	name := strings.ToLower(strings.Trim(t[0].text, "`"))
	if !settings[name] && name != "autocommit" && !strings.HasPrefix(name, "character_set_") && !strings.HasPrefix(name, "collation_") && !strings.HasPrefix(name, "session_track_") {
		return false
	}
	value := t[1:]
	if value[0].text == ":" {
		value = value[1:]
	}
	return len(value) > 1 && value[0].text == "=" && d.plain(value[1:])
}

// plain reports whether an expression contains no query and only reads.
func (d Dialect) plain(t []token) bool {
	return !slices.ContainsFunc(t, func(one token) bool { return one.is("SELECT") || one.is("TABLE") || one.is("VALUES") }) && d.reads(t)
}

// settings are variables of a connection. No other connection notices a change, and it ends no
// transaction.
var settings = set(`sql_mode time_zone sql_auto_is_null sql_safe_updates sql_select_limit sql_big_selects sql_notes
	sql_warnings sql_quote_show_create wait_timeout interactive_timeout idle_transaction_timeout net_read_timeout net_write_timeout
	max_execution_time max_statement_time lc_time_names lc_messages group_concat_max_len innodb_lock_wait_timeout
	lock_wait_timeout optimizer_switch information_schema_stats_expiry div_precision_increment profiling
	default_storage_engine storage_engine query_cache_type max_sort_length cte_max_recursion_depth`)

// showsServer reports whether a SHOW of MySQL reads no table.
func (d Dialect) showsServer(t []token) bool {
	for len(t) > 0 && (t[0].is("SESSION") || t[0].is("GLOBAL") || t[0].is("LOCAL") || t[0].is("FULL")) {
		t = t[1:]
	}
	if len(t) > 3 && t[0].is("COUNT") {
		t = t[4:] // SHOW COUNT(*) WARNINGS
	}
	if len(t) == 0 || t[0].kind != word || !shows[strings.ToLower(t[0].text)] {
		return false
	}
	return d.plain(t)
}

var shows = set("variables status warnings errors collation character charset engines plugins processlist")

// looks reports whether a SELECT list contains only variables of the server, constants, and functions
// that look at the connection.
func (d Dialect) looks(t []token) bool {
	for {
		n := d.item(t)
		if n == 0 {
			return false
		}
		t = t[n:]
		if len(t) > 1 && t[0].is("AS") && t[1].kind != other {
			t = t[2:]
		} else if len(t) > 0 && (t[0].kind == word && !t[0].is("FROM") && !t[0].is("LIMIT") && !clauses[strings.ToLower(t[0].text)] || t[0].kind == identifier) {
			t = t[1:]
		}
		if len(t) == 0 || t[0].text != "," {
			break
		}
		t = t[1:]
	}
	if len(t) > 1 && t[0].is("FROM") && t[1].is("DUAL") {
		t = t[2:]
	}
	if len(t) > 1 && t[0].is("LIMIT") && t[1].kind == number {
		t = t[2:]
	}
	return len(t) == 0
}

// clauses are words that are never an alias.
var clauses = set("where group having order into for lock union except intersect procedure window from limit fetch offset")

// item returns the number of tokens of the first item; 0 if the method `looks` does not accept the item.
func (d Dialect) item(t []token) int {
	if len(t) == 0 {
		return 0
	}
	if t[0].kind == number || t[0].kind == text {
		return 1
	}
	if t[0].text == "@@" {
		n := 1
		for n < len(t) && t[n].kind == word {
			n++
			if n >= len(t) || t[n].text != "." {
				return n
			}
			n++
		}
		return 0
	}
	if d == Postgres && t[0].is("pg_catalog") && len(t) > 2 && t[1].text == "." {
		if n := d.item(t[2:]); n > 0 {
			return n + 2
		}
		return 0
	}
	if t[0].kind != word || !lookers(d)[strings.ToLower(t[0].text)] {
		return 0
	}
	switch {
	case len(t) > 2 && t[1].text == "(" && t[2].text == ")" && (d == Postgres || !t[1].spaced):
		return 3
	case len(t) > 3 && t[0].is("current_setting") && t[1].text == "(" && t[2].kind == text && t[3].text == ")":
		return 4
	case strings.HasPrefix(strings.ToLower(t[0].text), "current_") && (len(t) == 1 || t[1].text != "("):
		return 1
	}
	return 0
}

func lookers(d Dialect) map[string]bool {
	if d == Postgres {
		return lookersPostgres
	}
	return lookersMySQL
}

var (
	lookersMySQL    = set("version database schema connection_id user current_user session_user system_user current_role")
	lookersPostgres = set("version current_database current_schema current_user session_user current_catalog pg_backend_pid current_setting pg_is_in_recovery")
)

func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, one := range strings.Fields(words) {
		all[one] = true
	}
	return all
}
