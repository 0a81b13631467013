package effect

import (
	"slices"
	"strings"
)

// InsertsOnly reports whether the text is one INSERT that reads no table and changes no existing row.
func InsertsOnly(sql string, d Dialect) bool {
	t, ok := alone(sql, d)
	return ok && first(t) == "INSERT" && !slices.ContainsFunc(t, func(one token) bool { return one.is("SELECT") || one.is("TABLE") || one.is("ON") || one.is("WITH") })
}

// Disjoint reports whether two texts, each one UPDATE or DELETE of the same table, touch different rows.
// They do if both conditions compare the same column with different literals, and neither text assigns to
// that column. False means that it is unknown.
func Disjoint(a, b string, d Dialect) bool {
	ours, theirs := fixed(a, d), fixed(b, d)
	for column, value := range ours {
		if other, both := theirs[column]; both && other != value {
			return true
		}
	}
	return false
}

// fixed returns the columns that an UPDATE or DELETE of one table compares with a literal, and that
// literal. In each row that the statement writes, the column has this value. Columns that the statement
// assigns to are left out.
func fixed(sql string, d Dialect) map[string]string {
	t, ok := alone(sql, d)
	if !ok || first(t) != "UPDATE" && first(t) != "DELETE" {
		return nil
	}
	where := where(t)
	if where == len(t) || severalTables(t, where) || slices.ContainsFunc(t[where:], func(one token) bool {
		return slices.ContainsFunc(notFixing, one.is) || one.kind == other && strings.ContainsAny(one.text, "|&!")
	}) {
		return nil
	}
	values := map[string]string{}
	depth := 0
	for i := where; i < len(t); i++ {
		switch t[i].text {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth > 0 || !t[i].is("WHERE") && !t[i].is("AND") {
			continue
		}
		at := i + 1
		if at+1 < len(t) && t[at+1].text == "." {
			at += 2
		}
		if at+2 >= len(t) || t[at].kind != word && t[at].kind != identifier || t[at+1].text != "=" {
			continue
		}
		if at+3 < len(t) && !slices.ContainsFunc(afterCondition, t[at+3].is) {
			continue
		}
		if value, simple := literal(t[at+2]); simple {
			values[unquoted(t[at].text)] = value
		}
	}
	for i := 1; i < where; i++ { // SET column = ...
		if t[i].text == "=" {
			delete(values, unquoted(t[i-1].text))
		}
	}
	return values
}

var (
	notFixing      = []string{"SELECT", "OR", "XOR", "NOT", "BETWEEN", "CASE", "WITH"}
	afterCondition = []string{"AND", "LIMIT", "ORDER", "RETURNING"}
)

// severalTables reports whether an UPDATE or DELETE may name more than one table before its condition.
func severalTables(t []token, where int) bool {
	set := slices.IndexFunc(t, func(one token) bool { return one.is("SET") })
	for i, one := range t[:where] {
		if slices.ContainsFunc([]string{"JOIN", "STRAIGHT_JOIN", "USING"}, one.is) || one.is("FROM") && first(t) == "UPDATE" || one.text == "," && (set < 0 || i < set) {
			return true
		}
	}
	return false
}

// literal returns the value of a whole number or a UUID, always in the same spelling.
func literal(t token) (value string, simple bool) {
	if t.kind == number {
		return t.text, strings.Trim(t.text, "0123456789") == "" && (t.text == "0" || t.text[0] != '0')
	}
	value = strings.ReplaceAll(strings.ToLower(strings.Trim(t.text, "'")), "-", "")
	return value, t.kind == text && len(value) == 32 && strings.Trim(value, "0123456789abcdef") == ""
}

// alone returns the tokens of a text that is exactly one statement in each of its readings.
func alone(sql string, d Dialect) ([]token, bool) {
	all := readings(sql, d)
	if len(sql) > longest || len(all) == 0 {
		return nil, false
	}
	for _, r := range all {
		if _, one := r.single(); !one {
			return nil, false
		}
	}
	return all[0].single()
}
