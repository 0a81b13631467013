package effect

import (
	"slices"
	"strings"
)

// guard returns a name for the lock that a statement takes and keeps to the end of the transaction. Two
// statements get the same name only if they take the same lock. The name is "" if the statement takes no
// lock, or if the text has already read rows.
func (w *walk) guard(t []token, q *query, s place) string {
	if w.unguards || s.branch || s.stale || w.uses.Guard != "" || w.c.Dialect == MySQL && !w.open || len(q.targets) > 0 && !t[0].is("UPDATE") {
		return ""
	}
	t = s.known(t)
	switch end := len(t) - 1; {
	case t[0].is("LOCK"):
		return locksTable(t)
	case t[0].is("SELECT") && end > 3 && t[1].is("pg_advisory_xact_lock") && closing(t, 2) == end:
		for i, one := range t[2:] {
			cast := i > 1 && t[i].text == ":" && t[i+1].text == ":"
			if one.kind == identifier || one.kind == placeholder || one.kind == word && !cast && !pure(one.text, w.c.Dialect) {
				return ""
			}
		}
		return join(t[1:])
	case t[0].is("UPDATE") && end > 1 && t[2].is("SET"):
		condition := t[where(t):]
		if returns := slices.IndexFunc(condition, func(one token) bool { return one.is("RETURNING") }); returns > 0 {
			condition = condition[:returns]
		}
		return locksRow(unquoted(t[1].text), condition)
	case t[0].is("SELECT") && end > 1 && t[end].is("UPDATE") && t[end-1].is("FOR"):
		if from := where(t) - 2; from > 0 && t[from].is("FROM") {
			return locksRow(unquoted(t[from+1].text), t[from+2:end-1])
		}
	}
	return ""
}

func where(t []token) int {
	if at := slices.IndexFunc(t, func(one token) bool { return one.is("WHERE") }); at >= 0 {
		return at
	}
	return len(t)
}

// locksTable returns the guard of a LOCK TABLE statement whose mode conflicts with itself.
func locksTable(t []token) string {
	if len(t) > 1 && t[1].is("TABLE") {
		t = t[1:]
	}
	if len(t) < 4 || !t[2].is("IN") || t[3].is("ROW") || !slices.ContainsFunc(t, func(one token) bool { return one.is("EXCLUSIVE") }) {
		return ""
	}
	return "table " + unquoted(t[1].text)
}

// locksRow returns the guard of a statement that locks rows of a table with a condition b = 1 AND c = 2.
func locksRow(table string, condition []token) string {
	for i := 1; i < len(condition); i += 4 {
		one := condition[i:min(i+4, len(condition))]
		if len(one) < 3 || one[0].kind != word && one[0].kind != identifier || one[1].text != "=" || one[2].kind != number && one[2].kind != text || len(one) > 3 && !one[3].is("AND") {
			return ""
		}
	}
	if len(condition) < 4 {
		return ""
	}
	return "row " + table + " " + strings.ToLower(join(condition))
}

// known replaces each name with a known value by that value.
func (s place) known(t []token) (all []token) {
	for i := 0; i < len(t); i++ {
		name := unquoted(t[i].text)
		if i+2 < len(t) && t[i+1].text == "." {
			name += "." + unquoted(t[i+2].text)
		}
		v, known := s.values[name]
		if !known || i > 0 && t[i-1].text == "." {
			all = append(all, t[i])
			continue
		}
		all = append(all, token{kind: text, text: v, spaced: t[i].spaced})
		if strings.Contains(name, ".") {
			i += 2
		}
	}
	return all
}

// literal returns the text of a literal, such as 5 or '5'::int.
func (s place) literal(t []token) (string, bool) {
	t = s.known(t)
	if len(t) == 0 || t[0].kind != number && t[0].kind != text || len(t) > 1 && t[1].text != ":" {
		return "", false
	}
	return t[0].text, true
}

// newRow returns the literals of an INSERT of one row, by column, such as new.id.
func (s place) newRow(t []token) map[string]string {
	row := map[string]string{}
	columns := slices.IndexFunc(t, func(one token) bool { return one.text == "(" })
	values := slices.IndexFunc(t, func(one token) bool { return one.is("VALUES") })
	if first(t) != "INSERT" || columns < 0 || values < columns || !oneRow(t) || values+1 == len(t) {
		return row
	}
	names, cells := items(t[columns+1:closing(t, columns)]), items(t[values+2:closing(t, values+1)])
	for i, one := range names {
		if i < len(cells) && len(one) == 1 {
			if v, known := s.literal(cells[i]); known {
				row["new."+unquoted(one[0].text)] = v
			}
		}
	}
	return row
}

// oneRow reports whether a statement may be one that changes a single row. Any UPDATE or DELETE may be,
// since its condition may be a key.
func oneRow(t []token) bool {
	switch first(t) {
	case "UPDATE", "DELETE":
		return true
	case "INSERT", "REPLACE":
		at := slices.IndexFunc(t, func(one token) bool { return one.is("VALUES") })
		if at < 0 {
			return !slices.ContainsFunc(t, func(one token) bool { return one.is("FROM") || one.is("TABLE") })
		}
		end := closing(t, at+1) + 1
		return end >= len(t) || t[end].text != ","
	}
	return false
}

func sets(t []token, columns []string) bool {
	found := false
	for i, one := range t {
		if i > 0 && one.text == "=" && slices.Contains(columns, unquoted(t[i-1].text)) {
			return true
		}
		found = found || one.is("SET")
		if one.is("WHERE") && found {
			break
		}
	}
	return !found
}
