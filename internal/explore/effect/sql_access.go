package effect

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// Rows describes rows of one table. In each of these rows, a column in Fixed has one of the values
// listed there.
type Rows struct {
	Table string // in lower case, without schema
	Fixed map[string][]string
}

// An Access says which rows a statement of PostgreSQL touches.
type Access struct {
	Verb  string   // SELECT, INSERT, UPDATE or DELETE
	Reads []Rows   // all rows that can influence its result or the rows that it writes
	Locks bool     // a SELECT that locks the rows that it reads
	Finds Rows     // the rows that an UPDATE or DELETE writes; for an INSERT, only the table is set
	None  bool     // an UPDATE or DELETE whose condition is never true, such as 0 = 1
	Sets  []Values // the new values: one entry for each row of an INSERT, and one for an UPDATE
}

// Values are values by column; nil is a value that the text does not contain.
type Values map[string]*string

// Default is the value DEFAULT. NULL is schedule.Null.
const Default = "\x00default"

// Accesses returns which rows one statement touches. It reads only comparisons of a column with
// constants or with a column of another table, connected by AND. The parameter `has` is a function that
// reports whether a table contains a column. ok is false if Accesses does not understand a part of the
// statement.
func Accesses(sql string, has func(table, column string) bool) (a Access, ok bool) {
	t, rest := tokens(sql, Postgres, false)
	if rest != whole || len(sql) > longest || strings.Contains(sql, `\`) {
		return a, false
	}
	t = withoutNames(sql, t)
	if n := len(t); n > 0 && t[n-1].text == ";" {
		t = t[:n-1]
	}
	if slices.ContainsFunc(t, func(one token) bool { return one.text == ";" }) {
		return a, false
	}
	p := rowParser{has: has, access: &a}
	a.Verb = first(t)
	switch a.Verb {
	case "SELECT":
		ok = p.query(t, true)
	case "INSERT":
		ok = p.insert(t[1:])
	case "UPDATE":
		ok = p.update(t[1:])
	case "DELETE":
		ok = p.remove(t[1:])
	}
	relations := 0
	for _, one := range t {
		if one.is("FROM") || one.is("JOIN") || one.is("SELECT") {
			relations++
		}
		if one.is("SKIP") || one.is("NOWAIT") || one.is("TABLESAMPLE") {
			return a, false
		}
	}
	return a, ok && relations == p.relations
}

// valueName matches a name, such as <orders.1>, that package target gives to a value that differs between runs.
var valueName = regexp.MustCompile(`^<[\w-]+[.:]\w+>`)

// withoutNames replaces the tokens of each name that valueName matches by one string.
func withoutNames(sql string, t []token) (all []token) {
	for i := 0; i < len(t); i++ {
		name := ""
		if t[i].text == "<" {
			name = valueName.FindString(sql[t[i].at:])
		}
		if name == "" {
			all = append(all, t[i])
			continue
		}
		all = append(all, token{kind: text, text: "'" + name + "'", at: t[i].at, spaced: t[i].spaced})
		for i+1 < len(t) && t[i+1].at < t[i].at+len(name) && t[i+1].at < all[len(all)-1].at+len(name) {
			i++
		}
	}
	return all
}

// A rowParser reads one statement. The field `relations` counts the words SELECT, FROM and JOIN that it has read.
type rowParser struct {
	has       func(table, column string) bool
	access    *Access
	relations int
}

// eachOutside calls a function for each token outside parentheses, until the function returns false.
func eachOutside(t []token, do func(i int) bool) {
	for i := 0; i < len(t); i++ {
		if t[i].kind == other && t[i].text == "(" {
			if end := closing(t, i); end < len(t) {
				i = end
				continue
			}
		}
		if !do(i) {
			return
		}
	}
}

// query reads a SELECT, or a UNION, INTERSECT or EXCEPT of several.
func (p *rowParser) query(t []token, top bool) bool {
	from, ok := 0, true
	eachOutside(t, func(i int) bool {
		if t[i].is("UNION") || t[i].is("INTERSECT") || t[i].is("EXCEPT") {
			ok = ok && p.block(t[from:i], false)
			if from = i + 1; from < len(t) && (t[from].is("ALL") || t[from].is("DISTINCT")) {
				from++
			}
		}
		return ok
	})
	return ok && p.block(t[from:], top && from == 0)
}

// endsPart are the words that begin a clause of a SELECT, and so end the previous clause.
var endsPart = []string{"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "WINDOW", "FOR"}

// block reads one SELECT and the queries within it.
func (p *rowParser) block(t []token, top bool) bool {
	if first(t) != "SELECT" {
		return false
	}
	p.relations++
	parts, last, at, ok := map[string][]token{}, "SELECT", 0, true
	eachOutside(t, func(i int) bool {
		if i == 0 || !slices.ContainsFunc(endsPart, t[i].is) {
			return true
		}
		word := strings.ToUpper(t[i].text)
		if word == "FROM" && t[i-1].is("DISTINCT") {
			if i > 1 && (t[i-2].is("IS") || t[i-2].is("NOT")) {
				p.relations++
				return true
			}
			ok = false
		}
		if _, twice := parts[word]; twice {
			ok = false
		}
		parts[last] = t[at:i]
		last, at = word, i
		parts[word] = nil
		return ok
	})
	parts[last] = t[at:]
	if !ok || !p.nested(t[1:]) {
		return false
	}
	if _, locks := parts["FOR"]; locks {
		if !top {
			return false
		}
		p.access.Locks = true
	}
	var s scope
	if from := parts["FROM"]; len(from) > 0 {
		p.relations++
		if !s.from(p, from[1:]) {
			return false
		}
	}
	if where := parts["WHERE"]; len(where) > 0 {
		s.restrict(p, where[1:], "")
	}
	p.access.Reads = append(p.access.Reads, s.rows()...)
	return true
}

func (p *rowParser) nested(t []token) bool {
	for i := 0; i+1 < len(t); i++ {
		if t[i].kind != other || t[i].text != "(" {
			continue
		}
		switch {
		case t[i+1].is("SELECT"):
			end := closing(t, i)
			if end == len(t) || !p.query(t[i+1:end], false) {
				return false
			}
			i = end
		case t[i+1].is("WITH"), t[i+1].is("TABLE"), t[i+1].is("VALUES") && !(i > 0 && t[i-1].kind == word):
			return false
		}
	}
	return true
}

// A scope holds the tables of one SELECT by their aliases, and the conditions on their rows.
type scope struct {
	aliases []string
	tables  map[string]string // "": a query in parentheses
	fixed   map[column]knownValues
	equal   []equality
	none    bool // the condition is never true
}

// knownValues lists the values that a column can have in the rows that the statement uses. Unless
// `sure` is true, a LEFT JOIN may also have produced NULL.
type knownValues struct {
	values []string
	sure   bool
}

// A column is a column of a table with an alias.
type column struct{ alias, name string }

// An equality says that two columns have the same value. If `left` is true, a LEFT JOIN that adds b's
// table has this condition.
type equality struct {
	a, b column
	left bool
}

func (s *scope) from(p *rowParser, t []token) bool {
	s.tables, s.fixed = map[string]string{}, map[column]knownValues{}
	i := 0
	if _, ok := s.relation(t, &i); !ok {
		return false
	}
	for i < len(t) {
		left, on := false, true
		switch {
		case t[i].text == ",":
			on = false
			i++
		case t[i].is("JOIN"):
			i++
		case t[i].is("INNER") && i+1 < len(t) && t[i+1].is("JOIN"):
			i += 2
		case t[i].is("CROSS") && i+1 < len(t) && t[i+1].is("JOIN"):
			on = false
			i += 2
		case t[i].is("LEFT") && i+1 < len(t) && t[i+1].is("JOIN"):
			left = true
			i += 2
		case t[i].is("LEFT") && i+2 < len(t) && t[i+1].is("OUTER") && t[i+2].is("JOIN"):
			left = true
			i += 3
		default:
			return false
		}
		if i > 0 && t[i-1].is("JOIN") {
			p.relations++
		}
		alias, ok := s.relation(t, &i)
		if !ok {
			return false
		}
		if !on {
			continue
		}
		if i >= len(t) || !t[i].is("ON") {
			return false
		}
		end := len(t)
		eachOutside(t[i+1:], func(n int) bool {
			one := t[i+1+n]
			next := token{}
			if i+2+n < len(t) {
				next = t[i+2+n]
			}
			if one.text == "," && one.kind == other || one.is("JOIN") || one.is("INNER") || one.is("CROSS") || one.is("RIGHT") || one.is("FULL") || one.is("NATURAL") ||
				one.is("LEFT") && (next.is("JOIN") || next.is("OUTER")) {
				end = i + 1 + n
				return false
			}
			return true
		})
		right := ""
		if left {
			right = alias
		}
		s.restrict(p, t[i+1:end], right)
		i = end
	}
	return true
}

// relation reads a table or a query in parentheses, with its alias.
func (s *scope) relation(t []token, i *int) (alias string, ok bool) {
	if *i < len(t) && t[*i].is("ONLY") {
		*i++
	}
	if *i >= len(t) {
		return "", false
	}
	table := ""
	if t[*i].text == "(" && t[*i].kind == other {
		end := closing(t, *i)
		if end == len(t) || *i+1 >= len(t) || !t[*i+1].is("SELECT") {
			return "", false
		}
		*i = end + 1
	} else {
		last := qualified(t, *i)
		if last < 0 || t[*i].is("LATERAL") {
			return "", false
		}
		alias, *i = folded(t[last]), last+1
		table = strings.ToLower(alias)
		if *i < len(t) && t[*i].text == "(" {
			return "", false // a function call
		}
	}
	if *i < len(t) && t[*i].is("AS") {
		*i++
	}
	if *i < len(t) && (t[*i].kind == identifier || t[*i].kind == word && !slices.ContainsFunc(afterRelation, t[*i].is)) {
		alias = folded(t[*i])
		*i++
		if *i < len(t) && t[*i].text == "(" {
			return "", false // a list of column names
		}
	}
	if _, twice := s.tables[alias]; twice || alias == "" {
		return "", false
	}
	s.tables[alias] = table
	s.aliases = append(s.aliases, alias)
	return alias, true
}

// folded returns a name as the server stores it.
func folded(t token) string {
	if t.kind == identifier {
		return strings.Trim(t.text, `"`)
	}
	return strings.ToLower(t.text)
}

// restrict reads a condition. The parameter `right` names the table that a LEFT JOIN adds; "" in a
// WHERE. The condition of a LEFT JOIN restricts only the rows of that table.
func (s *scope) restrict(p *rowParser, t []token, right string) {
	for len(t) > 1 && t[0].text == "(" && t[0].kind == other && closing(t, 0) == len(t)-1 {
		t = t[1 : len(t)-1]
	}
	var parts [][]token
	from, simple := 0, true
	eachOutside(t, func(i int) bool {
		switch {
		case t[i].is("OR"), t[i].is("BETWEEN"), t[i].is("CASE"), t[i].is("XOR"):
			simple = false
		case t[i].is("AND"):
			parts = append(parts, t[from:i])
			from = i + 1
		}
		return simple
	})
	if !simple {
		return
	}
	if from > 0 {
		for _, part := range append(parts, t[from:]) {
			s.restrict(p, part, right)
		}
		return
	}
	a, n := s.column(p, t)
	if n == 0 {
		v, constant := constantOf(t, 0)
		if other, both := constantOf(t, 2); constant && both && len(t) == 3 && t[0].kind == number && t[2].kind == number && t[1].text == "=" {
			s.none = s.none || right == "" && v != other
			return
		}
		if constant && len(t) > 2 && t[1].text == "=" {
			if b, m := s.column(p, t[2:]); m > 0 && m == len(t)-2 {
				s.fix(b, []string{v}, right)
			}
		}
		return
	}
	rest := t[n:]
	switch v, constant := constantOf(rest, 1); {
	case len(rest) == 2 && rest[0].text == "=" && constant:
		s.fix(a, []string{v}, right)
	case len(rest) > 2 && rest[0].is("IN") && rest[1].text == "(" && closing(rest, 1) == len(rest)-1:
		var all []string
		for i := 2; i < len(rest)-1; i += 2 {
			v, constant := constantOf(rest, i)
			if !constant || i+1 < len(rest)-1 && rest[i+1].text != "," {
				return
			}
			all = append(all, v)
		}
		s.fix(a, all, right)
	case len(rest) > 1 && rest[0].text == "=":
		if b, m := s.column(p, rest[1:]); m > 0 && m == len(rest)-1 && a.alias != b.alias {
			switch right {
			case "":
				s.equal = append(s.equal, equality{a, b, false})
			case a.alias:
				s.equal = append(s.equal, equality{b, a, true})
			case b.alias:
				s.equal = append(s.equal, equality{a, b, true})
			}
		}
	}
}

func (s *scope) fix(c column, values []string, right string) {
	if (right == "" || right == c.alias) && len(values) > 0 && !s.fixed[c].sure {
		s.fixed[c] = knownValues{values, right == ""}
	}
}

// column reads the name of a column. It returns the number of its tokens; 0 if no table of the scope
// has this column.
func (s *scope) column(p *rowParser, t []token) (c column, n int) {
	name := func(i int) bool { return i < len(t) && (t[i].kind == word || t[i].kind == identifier) }
	switch {
	case !name(0):
		return c, 0
	case len(t) > 2 && t[1].text == "." && name(2):
		c, n = column{folded(t[0]), folded(t[2])}, 3
		if len(t) > 3 && t[3].text == "." {
			return c, 0
		}
	case len(s.aliases) == 1:
		c, n = column{s.aliases[0], folded(t[0])}, 1
	}
	if table := s.tables[c.alias]; table == "" || !p.has(table, c.name) {
		return c, 0
	}
	return c, n
}

// WholeNumber matches a whole number without leading zeros.
var WholeNumber = regexp.MustCompile(`^(0|[1-9]\d{0,17})$`)

func constantOf(t []token, i int) (value string, constant bool) {
	if i >= len(t) {
		return "", false
	}
	switch one := t[i]; {
	case one.kind == number && WholeNumber.MatchString(one.text):
		return one.text, true
	case one.kind == text && len(one.text) > 1 && one.text[0] == '\'':
		if value = one.text[1 : len(one.text)-1]; !strings.Contains(value, "'") {
			return value, true
		}
	}
	return "", false
}

func (s *scope) rows() (all []Rows) {
	if s.none {
		return nil
	}
	for changed := true; changed; {
		changed = false
		derive := func(from, to column, sure bool) {
			known, now := s.fixed[from], s.fixed[to]
			if sure = sure && known.sure; known.values != nil && (now.values == nil || sure && !now.sure) {
				s.fixed[to], changed = knownValues{known.values, sure}, true
			}
		}
		for _, e := range s.equal {
			derive(e.a, e.b, !e.left)
			if !e.left || s.fixed[e.b].sure { // if sure, the LEFT JOIN has found a row
				derive(e.b, e.a, true)
			}
		}
	}
	for _, alias := range s.aliases {
		if s.tables[alias] == "" {
			continue
		}
		r := Rows{Table: s.tables[alias], Fixed: map[string][]string{}}
		for c, one := range s.fixed {
			if c.alias == alias {
				r.Fixed[c.name] = one.values
			}
		}
		all = append(all, r)
	}
	return all
}

// target reads the table that a statement writes, with its alias.
func (p *rowParser) target(s *scope, t []token, i *int) bool {
	s.tables, s.fixed = map[string]string{}, map[column]knownValues{}
	_, ok := s.relation(t, i)
	return ok
}

// condition reads WHERE and RETURNING at the end of a statement.
func (p *rowParser) condition(s *scope, t []token) bool {
	end := len(t)
	eachOutside(t, func(i int) bool {
		if t[i].is("RETURNING") {
			end = i
		}
		return end == len(t)
	})
	if end > 0 {
		if !t[0].is("WHERE") {
			return false
		}
		s.restrict(p, t[1:end], "")
	}
	p.access.None = s.none
	for _, own := range s.rows() {
		p.access.Finds = own
		p.access.Reads = append(p.access.Reads, Rows{own.Table, maps.Clone(own.Fixed)})
	}
	return p.nested(t)
}

func (p *rowParser) update(t []token) bool {
	var s scope
	i := 0
	if !p.target(&s, t, &i) || i >= len(t) || !t[i].is("SET") {
		return false
	}
	from := i + 1
	end, ok := len(t), true
	eachOutside(t[from:], func(n int) bool {
		switch one := t[from+n]; {
		case one.is("WHERE"), one.is("RETURNING"):
			end = from + n
		case one.is("FROM"):
			ok = false
		}
		return ok && end == len(t)
	})
	values := Values{}
	for rest, more := t[from:end], true; more && ok; {
		var one []token
		one, rest, more = cut(rest)
		if len(one) < 3 || one[0].kind != word && one[0].kind != identifier || one[1].text != "=" {
			return false
		}
		values[folded(one[0])] = valueOf(one[2:])
	}
	p.access.Sets = []Values{values}
	return ok && p.nested(t[from:end]) && p.condition(&s, t[end:])
}

// valueOf returns the value of an expression; nil if it is not a constant.
func valueOf(t []token) *string {
	if len(t) != 1 {
		return nil
	}
	v, constant := constantOf(t, 0)
	switch {
	case t[0].is("NULL"):
		v = schedule.Null
	case t[0].is("DEFAULT"):
		v = Default
	case !constant:
		return nil
	}
	return &v
}

func (p *rowParser) remove(t []token) bool {
	var s scope
	i := 1
	if first(t) != "FROM" || !p.target(&s, t, &i) {
		return false
	}
	p.relations++
	return p.condition(&s, t[i:])
}

func (p *rowParser) insert(t []token) bool {
	if first(t) != "INTO" {
		return false
	}
	last := qualified(t, 1)
	i, end := last+1, len(t)
	if i < len(t) && t[i].text == "(" {
		end = closing(t, i)
	}
	if last < 0 || end+1 >= len(t) || !t[end+1].is("VALUES") {
		return false
	}
	var columns []string
	for n := i + 1; n < end; n += 2 {
		columns = append(columns, folded(t[n]))
	}
	for i = end + 2; i < len(t) && t[i].text == "("; i++ {
		if end = closing(t, i); end == len(t) {
			return false
		}
		values, n := Values{}, 0
		for rest, more := t[i+1:end], true; more; n++ {
			var one []token
			one, rest, more = cut(rest)
			if n < len(columns) {
				values[columns[n]] = valueOf(one)
			}
		}
		if n != len(columns) {
			return false
		}
		p.access.Sets = append(p.access.Sets, values)
		if i = end + 1; i >= len(t) || t[i].text != "," {
			break
		}
	}
	p.access.Finds = Rows{Table: strings.ToLower(folded(t[last]))}
	return (i >= len(t) || t[i].is("RETURNING")) && p.nested(t)
}
