package effect

import (
	"slices"
	"strings"
)

// An Inside says whether another connection's write can come between the reads and the writes of a
// statement.
type Inside int

// The values, in order of risk.
const (
	// Atomic: the statement writes no rows, reads only the rows that it writes, or locks the rows that
	// it reads. UPDATE items SET stock = stock - 1 WHERE stock > 0 is atomic: the server checks the
	// row again under its lock.
	Atomic Inside = iota
	// Lockable: the statement reads other tables than it writes. The isolation level decides whether
	// the server locks the rows that it reads.
	Lockable
	// Divided: the statement reads the table that it writes. Two such statements can read the same
	// rows. If the server locks those rows, it refuses one of the two statements: a deadlock or a
	// serialization failure.
	Divided
)

// inside returns the Inside of one statement. It does not look into functions and triggers.
func (d Dialect) inside(t []token) Inside { return d.query(t, false).inside() }

// query reads one statement. In the body of a routine, an expression may have a FROM without a SELECT.
func (d Dialect) query(t []token, body bool) *query {
	q := &query{dialect: d, body: body, tokens: t, targets: map[string]Event{}, named: withNames(t), open: []*block{{}}}
	for i := range t {
		q.take(i)
	}
	for len(q.open) > 0 {
		q.pop()
	}
	return q
}

// A query is one statement, including its subqueries.
type query struct {
	dialect Dialect
	tokens  []token
	targets map[string]Event // the tables that it writes
	body    bool             // it is part of a routine
	inserts bool
	merges  bool
	named   map[string]bool // the names that WITH defines
	open    []*block        // the blocks of the statement and of each open parenthesis
	done    []*block
}

// A block is a statement or a pair of parentheses, without the parentheses nested in it.
type block struct {
	verb    string
	from    bool     // the current token is in the block's list of tables
	ignored bool     // part of RETURNING, which is evaluated after the writes
	joined  bool     // a list of tables in parentheses, which belong to the enclosing block
	reads   []string // the tables that it reads
	aliases []string // their names in the statement
	locks   bool     // FOR UPDATE
	shares  bool     // FOR SHARE
}

func (q *query) at(i int) (t token) {
	if i >= 0 && i < len(q.tokens) {
		t = q.tokens[i]
	}
	return t
}

func (q *query) take(i int) {
	b, one := q.open[len(q.open)-1], q.tokens[i]
	switch {
	case one.kind == other && one.text == "(":
		q.push(b, i)
	case one.kind == other && one.text == ")" && len(q.open) > 1:
		q.pop()
	case one.kind == other && one.text == "," && b.from:
		q.relation(b, i+1)
	case one.kind == word:
		q.word(b, i)
	}
}

func (q *query) push(b *block, i int) {
	inner := &block{ignored: b.ignored}
	q.open = append(q.open, inner)
	before := q.at(i - 1)
	if b.from && (before.text == "," || before.is("FROM") || before.is("JOIN") || before.is("USING")) && !begins(q.at(i+1)) {
		inner.verb, inner.from, inner.joined = b.verb, true, true
		q.relation(inner, i+1)
	}
}

func (q *query) pop() {
	last := len(q.open) - 1
	b := q.open[last]
	q.open = q.open[:last]
	if b.joined && last > 0 {
		around := q.open[last-1]
		around.reads, around.aliases = append(around.reads, b.reads...), append(around.aliases, b.aliases...)
		return
	}
	q.done = append(q.done, b)
}

func begins(t token) bool {
	return t.is("SELECT") || t.is("WITH") || t.is("VALUES") || t.is("TABLE") || t.text == "("
}

func (q *query) word(b *block, i int) {
	one, before, next := q.tokens[i], q.at(i-1), q.at(i+1)
	first := before.text == "" || before.text == ")" || before.text == "(" // the token starts a statement or follows a WITH
	switch verb := strings.ToUpper(one.text); verb {
	case "SELECT":
		b.verb, b.from = verb, false
	case "INSERT", "REPLACE", "MERGE", "UPDATE", "DELETE":
		if first && next.text != "(" {
			b.verb = verb
			q.inserts = q.inserts || verb == "INSERT" || verb == "REPLACE"
			q.merges = q.merges || verb == "MERGE"
			if verb != "DELETE" {
				q.target(i+1, events[verb])
			}
		} else if verb == "UPDATE" && (before.is("DO") || before.is("KEY")) && q.inserts { // ON CONFLICT, ON DUPLICATE KEY
			for name := range q.targets {
				q.targets[name] |= Updates
			}
		}
	case "FROM":
		switch {
		case before.is("DISTINCT"): // the operator IS DISTINCT FROM
		case b.verb == "DELETE" && !b.from:
			q.target(i+1, Deletes)
		case b.verb == "SELECT", b.verb == "" && q.body, b.verb == "UPDATE" && q.dialect == Postgres:
			q.relation(b, i+1)
		}
	case "USING":
		if b.verb == "DELETE" && q.dialect == Postgres {
			q.relation(b, i+1)
		}
	case "JOIN", "STRAIGHT_JOIN":
		if b.from {
			q.relation(b, i+1)
		}
	case "TABLE":
		if b.verb == "INSERT" || b.verb == "REPLACE" {
			q.relation(b, i+1)
		}
	case "FOR", "LOCK":
		b.from = false
		b.locks = b.locks || next.is("UPDATE") || next.is("NO")
		b.shares = b.shares || next.is("SHARE") || next.is("IN")
		q.lockedOnly(b, i)
	case "RETURNING":
		b.from, b.ignored = false, true
	case "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "EXCEPT", "INTERSECT", "WINDOW", "SET":
		b.from = false
	}
}

// lockedOnly handles FOR UPDATE OF items, which locks no rows of the block's other tables.
func (q *query) lockedOnly(b *block, i int) {
	of := i + 2
	if q.at(i + 1).is("NO") { // FOR NO KEY UPDATE
		of += 2
	}
	if !q.at(of).is("OF") {
		return
	}
	locked := map[string]bool{}
	for i = of + 1; q.at(i).kind == word || q.at(i).kind == identifier; i += 2 {
		locked[unquoted(q.at(i).text)] = true
		if q.at(i+1).text != "," {
			break
		}
	}
	rest := &block{verb: b.verb, ignored: b.ignored}
	for n, name := range b.reads {
		if !locked[b.aliases[n]] {
			rest.reads, rest.aliases = append(rest.reads, name), append(rest.aliases, b.aliases[n])
		}
	}
	q.done = append(q.done, rest)
}

func (q *query) target(i int, on Event) {
	for t := q.at(i); t.is("INTO") || t.is("ONLY") || t.is("LOW_PRIORITY") || t.is("DELAYED") || t.is("HIGH_PRIORITY") || t.is("QUICK") || t.is("IGNORE"); t = q.at(i) {
		i++
	}
	if path := q.path(i); len(path) > 0 {
		q.targets[path[len(path)-1]] |= on
	}
}

// relation records the table at i as read by b.
func (q *query) relation(b *block, i int) {
	b.from = true
	for q.at(i).is("LATERAL") || q.at(i).is("ONLY") {
		i++
	}
	path := q.path(i)
	if len(path) == 0 || q.at(i+2*len(path)-1).text == "(" { // a subquery or a function call
		return
	}
	name := path[len(path)-1]
	own := slices.Contains(catalogs, strings.ToUpper(name)) || len(path) > 1 && (path[0] == "information_schema" || path[0] == "pg_catalog")
	if !own && !q.named[name] && name != "dual" {
		alias, after := name, i+2*len(path)-1
		if q.at(after).is("AS") {
			after++
		}
		if t := q.at(after); t.kind == identifier || t.kind == word && !slices.ContainsFunc(afterRelation, t.is) {
			alias = unquoted(t.text)
		}
		b.reads, b.aliases = append(b.reads, name), append(b.aliases, alias)
	}
}

// path returns the parts of the qualified name at i, in lower case and without quotes.
func (q *query) path(i int) (path []string) {
	for last := qualified(q.tokens, i); i <= last; i += 2 {
		path = append(path, unquoted(q.tokens[i].text))
	}
	return path
}

func withNames(t []token) map[string]bool {
	names := map[string]bool{}
	if !slices.ContainsFunc(t, func(one token) bool { return one.is("WITH") }) {
		return names
	}
	for i := 1; i < len(t); i++ {
		if !t[i].is("AS") {
			continue
		}
		name := i - 1
		if t[name].text == ")" { // skip the list of column names
			for name > 0 && t[name].text != "(" {
				name--
			}
			name--
		}
		next := i + 1
		for next < len(t) && (t[next].is("NOT") || t[next].is("MATERIALIZED")) {
			next++
		}
		if name >= 0 && next < len(t) && t[next].text == "(" {
			names[unquoted(t[name].text)] = true
		}
	}
	return names
}

// inside returns the result. Call it after take has processed every token.
func (q *query) inside() (in Inside) {
	if q.merges {
		return Divided // another connection may insert the row between the search and the write of a MERGE
	}
	if len(q.targets) == 0 {
		return Atomic
	}
	ownRows, guard := false, false
	for _, b := range q.done {
		own := slices.ContainsFunc(b.reads, func(name string) bool { return q.targets[name] != 0 })
		switch {
		case len(b.reads) == 0 || b.ignored && b.verb == "SELECT":
		case b.locks && own && q.inserts:
			ownRows = true
		case b.locks:
			guard = true
		case own:
			in = max(in, Divided)
		case !b.shares:
			in = max(in, Lockable)
		}
	}
	// Row locks do not stop another connection's INSERT into the same table. If the statement locks a
	// row of another table, two such statements run one after the other. In PostgreSQL that does not
	// help, since the statement still reads from the snapshot of its beginning.
	if ownRows && (!guard || q.dialect == Postgres) {
		in = Divided
	}
	return in
}
