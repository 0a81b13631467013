package effect

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// These limits are in bytes, except longestBrief, which is in characters. A statement up to shortEnough stays as it is.
// A list longer than longestList becomes "...". A result longer than longestBrief is cut.
const (
	shortEnough  = 80
	longestList  = 60
	longestBrief = 300
)

// A Brief is a statement that is shortened for people: SELECT ... FROM stock_level WHERE id = 5.
type Brief struct {
	Text    string
	Columns map[string]string // the table's column behind each column of the answer, in lower case
	Sets    []string          // the columns that an UPDATE assigns, in lower case, except those that it sets to the current time
}

// Shorten shortens a text from Line. Long lists of columns become "...", except for columns for which the function
// `keep` returns true. It leaves out the quotes of names, the alias if there is only one table, and the conditions of
// long joins. The result is for people; a server may refuse it.
func Shorten(text string, d Dialect, keep func(column string) bool) Brief {
	b := Brief{Columns: map[string]string{}}
	t, rest := tokens(text, d, d == MySQL)
	var parts []string
	for _, one := range (reading{tokens: t, dialect: d}).statements() {
		s := shortening{t: one, keep: keep, brief: &b, renamed: map[string]string{}}
		parts = append(parts, s.text())
	}
	b.Text = text
	if len(text) > shortEnough && rest == whole {
		b.Text = strings.Join(parts, "; ")
	}
	b.Text = clip(b.Text, longestBrief)
	return b
}

func clip(text string, most int) string {
	if all := []rune(text); len(all) > most {
		return string(all[:most]) + "..."
	}
	return text
}

type shortening struct {
	t       []token
	keep    func(column string) bool
	brief   *Brief
	edits   []edit
	renamed map[string]string // texts to show instead of a column's qualifier; "": no text
}

// An edit replaces a range of tokens by a text.
type edit struct {
	from, to int
	text     string
}

func (s *shortening) replace(from, to int, text string) {
	s.edits = append(s.edits, edit{from, to, text})
}

// clause returns the position of the first token that is one of `words`, outside parentheses, at or after position
// `from`. It returns the end if there is none.
func (s *shortening) clause(from int, words ...string) int {
	depth := 0
	for i := from; i < len(s.t); i++ {
		switch one := s.t[i]; {
		case one.kind == other && one.text == "(":
			depth++
		case one.kind == other && one.text == ")":
			depth--
		case depth == 0 && slices.ContainsFunc(words, one.is):
			return i
		}
	}
	return len(s.t)
}

func (s *shortening) text() string {
	switch first(s.t) {
	case "SELECT":
		s.query()
	case "UPDATE":
		s.update()
	case "INSERT", "REPLACE":
		s.insert()
	}
	if first(s.t) != "SELECT" {
		if r := s.clause(1, "RETURNING"); r < len(s.t) {
			s.list(r+1, len(s.t))
		}
	}
	s.condition()
	s.alternatives()
	return s.render()
}

func (s *shortening) query() {
	from := s.clause(1, "FROM")
	s.list(1, from)
	if from == len(s.t) {
		return
	}
	end := s.clause(from+1, "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "WINDOW", "LOCK", "UNION", "EXCEPT", "INTERSECT")
	nested := slices.ContainsFunc(s.t[1:], func(one token) bool { return one.is("SELECT") })
	tables, ok := tablesOf(s.t[from+1 : end])
	if nested || !ok {
		return
	}
	var names []string
	for _, one := range tables {
		names = append(names, one.name)
	}
	unique := len(slices.Compact(slices.Sorted(slices.Values(names)))) == len(names)
	switch {
	case len(tables) == 1:
		s.replace(from+1, end, names[0])
		s.renamed[tables[0].alias], s.renamed[names[0]] = "", ""
	case unique && width(s.t[from+1:end]) > longestList:
		s.replace(from+1, end, strings.Join(names, " JOIN "))
		for _, one := range tables {
			s.renamed[one.alias] = one.name
		}
	}
}

// A named is a table of a statement with its alias.
type named struct{ name, alias string }

// tablesOf reads a list of tables and joins. It returns false if there is a subquery or a function.
func tablesOf(t []token) (all []named, ok bool) {
	expects := true // the next token begins a table
	on := false     // the tokens belong to a condition
	for i := 0; i < len(t); i++ {
		one := t[i]
		switch {
		case one.is("JOIN"), one.kind == other && one.text == "," && !on:
			expects, on = true, false
		case one.is("LEFT"), one.is("RIGHT"), one.is("INNER"), one.is("OUTER"), one.is("CROSS"), one.is("FULL"), one.is("NATURAL"):
			on = false
		case one.is("ON"), one.is("USING"):
			on = true
		case on:
		case !expects:
			return nil, false
		case one.kind != word && one.kind != identifier:
			return nil, false
		default:
			for i+2 < len(t) && t[i+1].text == "." {
				i += 2
			}
			table := named{name: plainName(t[i])}
			table.alias = table.name
			if i+1 < len(t) && t[i+1].is("AS") {
				i++
			}
			if next := i + 1; next < len(t) && (t[next].kind == identifier || t[next].kind == word && !joins[strings.ToLower(t[next].text)]) {
				i = next
				table.alias = plainName(t[i])
			}
			all, expects = append(all, table), false
		}
	}
	return all, len(all) > 0 && !expects
}

// joins are the words that can follow a table without being its alias.
var joins = set("join left right inner outer cross full natural on using")

func (s *shortening) update() {
	from := s.clause(1, "SET")
	end := s.clause(from, "WHERE", "FROM", "RETURNING", "ORDER", "LIMIT")
	if from == len(s.t) {
		return
	}
	if tables, ok := tablesOf(s.t[1:from]); ok && len(tables) == 1 && (end == len(s.t) || !s.t[end].is("FROM")) {
		s.replace(1, from, tables[0].name)
		s.renamed[tables[0].alias], s.renamed[tables[0].name] = "", ""
	}
	var kept []string
	all := items(s.t[from+1 : end])
	for _, one := range all {
		at := slices.IndexFunc(one, func(t token) bool { return t.text == "=" })
		if at < 1 {
			return
		}
		column := strings.ToLower(plainName(one[at-1]))
		if !isTime(one[at+1:]) {
			s.brief.Sets = append(s.brief.Sets, column)
		}
		if s.keep(column) && !isTime(one[at+1:]) {
			kept = append(kept, join(one))
		}
	}
	if width(s.t[from+1:end]) > longestList {
		s.replace(from+1, end, strings.Join(append(kept, "..."), ", "))
	}
}

func isTime(t []token) bool {
	return slices.ContainsFunc(t, func(one token) bool {
		name := strings.ToLower(one.text)
		return name == "now" || name == "time" || strings.HasSuffix(name, "timestamp") || strings.HasPrefix(name, "'20") && len(name) > len("'2006-01-02 15:04")
	})
}

func (s *shortening) insert() {
	open := s.clause(1, "INTO") + 2
	for open+1 < len(s.t) && s.t[open].text == "." {
		open += 2
	}
	if open >= len(s.t) || s.t[open].text != "(" {
		return
	}
	end := closing(s.t, open)
	values := s.clause(min(end+1, len(s.t)), "VALUES")
	if width(s.t[open:min(end+1, len(s.t))]) <= longestList && (values == len(s.t) || width(s.t[values:]) <= longestList) {
		return
	}
	columns := items(s.t[open+1 : end])
	var wanted []int
	var shown []string
	want := func(i int) { wanted, shown = append(wanted, i), append(shown, join(columns[i])) }
	for i, one := range columns {
		if len(one) == 1 && s.keep(strings.ToLower(plainName(one[0]))) {
			want(i)
		}
	}
	if len(wanted) == 0 && values+1 < len(s.t) {
		for i, one := range items(s.t[values+2 : closing(s.t, values+1)]) {
			if i < len(columns) && len(strings.Join(shown, ", "))+width(columns[i]) < longestList/2 && width(one) < longestList/3 && !isTime(one) && !one[0].is("DEFAULT") && !one[0].is("NULL") {
				want(i)
			}
		}
	}
	s.replace(open+1, end, strings.Join(append(shown, "..."), ", "))
	rows := 0
	for at := values + 1; at < len(s.t) && s.t[at].text == "("; at++ {
		last := closing(s.t, at)
		cells := items(s.t[at+1 : last])
		shown = nil
		for _, i := range wanted {
			if i < len(cells) {
				shown = append(shown, join(cells[i]))
			}
		}
		if rows++; rows <= mostInserted {
			s.replace(at+1, last, strings.Join(append(shown, "..."), ", "))
		} else {
			s.replace(at, last+1, "...")
		}
		if at = last + 1; at >= len(s.t) || s.t[at].text != "," {
			break
		}
	}
}

// mostInserted is the number of rows of one INSERT that are shown.
const mostInserted = 3

func (s *shortening) list(from, to int) {
	if from >= to {
		return
	}
	for _, one := range items(s.t[from:to]) {
		last := len(one) - 1
		if last < 1 {
			continue
		}
		expression := one[:last]
		if expression[last-1].is("AS") {
			expression = expression[:last-1]
		}
		if n := len(expression); n > 0 && n%2 == 1 && (expression[n-1].kind == word || expression[n-1].kind == identifier) && (n == 1 || expression[n-2].text == ".") && one[last].text != expression[n-1].text {
			s.brief.Columns[unquoted(one[last].text)] = plainName(expression[n-1])
		}
	}
	if width(s.t[from:to]) > longestList {
		s.replace(from, to, "...")
	}
}

func (s *shortening) condition() {
	from := s.clause(1, "WHERE") + 1
	end := s.clause(from, "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "WINDOW", "LOCK", "UNION", "EXCEPT", "INTERSECT", "RETURNING")
	for ; from < end && s.t[from].text == "(" && closing(s.t, from) == end-1; from, end = from+1, end-1 {
		s.replace(from, from+1, "")
		s.replace(end-1, end, "")
	}
}

func (s *shortening) alternatives() {
	const shown = 3
	for i := 1; i < len(s.t); i++ {
		if s.t[i].text != "(" || !s.t[i-1].is("IN") {
			continue
		}
		end := closing(s.t, i)
		all := items(s.t[i+1 : end])
		if len(all) > shown && width(s.t[i:end]) > longestList {
			s.replace(i+1, end, fmt.Sprintf("%s, %s, ... %d more", join(all[0]), join(all[1]), len(all)-2))
		}
	}
}

// closing returns the position of the parenthesis that closes t[i]; the end if there is none.
func closing(t []token, i int) int {
	depth := 0
	for ; i < len(t); i++ {
		switch {
		case t[i].kind != other:
		case t[i].text == "(":
			depth++
		case t[i].text == ")":
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return len(t)
}

func items(t []token) (all [][]token) {
	for {
		one, rest, more := cut(t)
		if len(one) > 0 {
			all = append(all, one)
		}
		if !more {
			return all
		}
		t = rest
	}
}

func (s *shortening) render() string {
	var b strings.Builder
	spaced := false
	write := func(text string, space bool) {
		if text == "" {
			spaced = spaced || space
			return
		}
		if (space || spaced) && b.Len() > 0 {
			b.WriteByte(' ')
		}
		spaced = false
		b.WriteString(text)
	}
	for i := 0; i < len(s.t); i++ {
		if at := slices.IndexFunc(s.edits, func(e edit) bool { return e.from == i && e.to > i }); at >= 0 {
			e := s.edits[at]
			write(e.text, s.t[i].spaced)
			i = e.to - 1
			continue
		}
		space := s.t[i].spaced
		if i+2 < len(s.t) && s.t[i+1].text == "." && (i == 0 || s.t[i-1].text != ".") {
			if by, ok := s.renamed[plainName(s.t[i])]; ok && by == "" {
				i += 2
			} else if ok {
				write(by, space)
				continue
			}
		}
		write(plainName(s.t[i]), space)
	}
	return b.String()
}

// simpleName matches a name that is readable without quotes.
var simpleName = regexp.MustCompile("^[\"`][A-Za-z_][A-Za-z0-9_]*[\"`]$")

// plainName returns a token without the quotes of a simple name.
func plainName(t token) string {
	if t.kind == identifier && simpleName.MatchString(t.text) {
		return t.text[1 : len(t.text)-1]
	}
	return t.text
}

func join(t []token) string {
	s := shortening{t: t}
	return s.render()
}

// width returns the length of tokens as text, in bytes.
func width(t []token) int { return len(join(t)) }
