package effect

import (
	"maps"
	"slices"
	"strings"
)

// unlimited is the number of scans or statements at which a walk stops counting.
const unlimited = 10000

// A walk analyses a text and all code that it runs. It follows every branch.
type walk struct {
	c             *Catalog
	uses          Uses
	reads, writes map[string]bool
	locked        map[string]bool // tables with rows that are locked for an update
	shared        map[string]bool // tables with rows that are locked against a change
	inserted      map[string]bool // tables that get new rows
	path          map[any]bool    // the routines, tables and triggers that the walk is inside of
	seen          int             // number of effects found so far
	size          int             // number of statements

	ended    bool     // the transaction in which Guard was taken has ended
	open     bool     // a transaction of the text is open
	wrote    bool     // it has written since its last commit
	order    []lock   // the locks since its last commit
	orders   [][]lock // the locks of the earlier transactions
	commits  int      // number of its commits that have writes
	unguards bool     // the text cannot get a Guard any more: it has read, or its first lock is not suitable
}

// A place is the context of a statement.
type place struct {
	packet bool              // the statement is in the text itself, not in a routine or a block
	inner  bool              // within another statement (the outer statement), which commits the writes
	stale  bool              // the statement does not see commits since the start of the outer statement
	branch bool              // it is uncertain whether the statement runs
	many   bool              // the statement may run several times
	values map[string]string // literals by name: arguments, and columns of the new row, such as new.team
}

func walked(c *Catalog, t []token) *Uses {
	inside := newWalk(c)
	inside.open = true
	inside.body(t, place{packet: true})
	inside.commit()
	w := newWalk(c)
	w.body(t, place{packet: true})
	w.commit()
	w.uses.TornInside, w.uses.Orders, w.uses.OrdersInside = inside.commits > 1, w.orders, inside.orders
	return w.found()
}

func newWalk(c *Catalog) *walk {
	return &walk{c: c, path: map[any]bool{}, reads: map[string]bool{}, writes: map[string]bool{}, locked: map[string]bool{}, shared: map[string]bool{}, inserted: map[string]bool{}}
}

func (w *walk) found() *Uses {
	u := &w.uses
	u.Locks = slices.Sorted(maps.Keys(w.locked))
	u.Locks = slices.AppendSeq(u.Locks, maps.Keys(w.shared))
	for name := range w.writes {
		if w.shared[name] || w.locked[name] && w.inserted[name] {
			w.reads[name] = true // a shared lock does not stop another shared lock, and no row lock stops a new row
		}
	}
	if u.Torn = w.commits > 1; u.Torn {
		maps.Copy(w.reads, w.writes)
		u.Guard = "" // the first commit releases the lock
	}
	u.Reads, u.Writes = slices.Sorted(maps.Keys(w.reads)), slices.Sorted(maps.Keys(w.writes))
	if w.size >= unlimited {
		u.Any = true
	}
	if u.Any {
		u.Scans = unlimited
	}
	return u
}

func (w *walk) body(t []token, s place) {
	if !s.packet {
		s.many = s.many || slices.ContainsFunc(t, func(one token) bool { return one.is("LOOP") || one.is("WHILE") || one.is("REPEAT") })
	}
	always, depth := !s.branch, 0
	for _, one := range pieces(t, w.c.Dialect) {
		if w.size++; w.size >= unlimited {
			return
		}
		s.packet = s.packet && !(w.c.Dialect == MySQL && one[0].is("BEGIN") && len(one) > 2) // BEGIN NOT ATOMIC
		switch {
		case s.packet:
		case slices.ContainsFunc(branches, one[0].is):
			depth++
		case endsBranch(one):
			depth = max(0, depth-1)
		}
		s.branch = !always || depth > 0
		scans, snapshots := w.uses.Scans, w.uses.Snapshots
		w.statement(one, s)
		if w.uses.Scans > scans && w.uses.Snapshots == snapshots { // only its functions have read
			w.snapshot(s)
		}
		if w.c.Dialect == MySQL && !w.open && !s.inner {
			w.commit()
		}
	}
}

// endsBranch recognizes END IF, END CASE and so on, also after UNTIL.
func endsBranch(t []token) bool {
	at := slices.IndexFunc(t, func(one token) bool { return one.is("END") })
	return at >= 0 && at+1 < len(t) && slices.ContainsFunc(branches, t[at+1].is)
}

func (w *walk) commit() {
	if w.wrote {
		w.commits++
	}
	w.wrote = false
	if len(w.order) > 1 {
		w.orders = append(w.orders, w.order)
	}
	w.order = nil
}

// A word of `branches` begins statements that possibly do not run. After a word of `openers`, a
// statement may begin with a word of `starters`.
var (
	branches = []string{"IF", "CASE", "WHILE", "FOR", "LOOP", "REPEAT", "EXCEPTION"}
	openers  = []string{"BEGIN", "THEN", "ELSE", "LOOP", "DO", "REPEAT", "ATOMIC", "QUERY", "IN", "SQLEXCEPTION", "FOUND", "SQLWARNING"}
	starters = []string{
		"SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "WITH", "PERFORM", "CALL", "EXECUTE", "COMMIT", "ROLLBACK", "START", "LOCK", "TRUNCATE",
		"IF", "CASE", "WHILE", "FOR", "LOOP", "BEGIN", "RETURN", "SET", "DECLARE",
	}
)

func pieces(t []token, d Dialect) (all [][]token) {
	from, depth := 0, 0
	cut := func(end, next int) {
		if end > from {
			all = append(all, t[from:end])
		}
		from = next
	}
	for i, one := range t {
		switch {
		case one.kind == other && one.text == "(":
			depth++
		case one.kind == other && one.text == ")":
			depth--
		case one.kind == other && one.text == ";":
			cut(i, i+1)
			depth = 0
		case i == 0 || depth > 0 || !slices.ContainsFunc(openers, t[i-1].is) || !slices.ContainsFunc(starters, one.is):
		case t[i-1].is("DO") && d == Postgres: // ON CONFLICT DO UPDATE
		case one.is("REPLACE") && i+1 < len(t) && t[i+1].text == "(": // a function
		default:
			cut(i, i)
		}
	}
	cut(len(t), len(t))
	return all
}

func (w *walk) statement(t []token, s place) {
	for !s.packet && len(t) > 1 && slices.ContainsFunc(openers, t[0].is) {
		t = t[1:]
	}
	switch {
	case t[0].is("LOCK"):
		for _, one := range t[1:] {
			if name := unquoted(one.text); w.c.Hidden || w.c.Tables[name] != nil {
				w.holds(name)
			}
		}
	case t[0].is("RETURN"):
		for t = t[1:]; len(t) > 0 && (t[0].is("QUERY") || t[0].is("NEXT")); t = t[1:] {
		}
		if len(t) == 0 {
			return
		}
	case t[0].is("PERFORM"):
		t = slices.Clone(t)
		t[0].text = "SELECT"
	}
	if w.special(t, s) {
		return
	}
	d := w.c.Dialect
	q := d.query(t, !s.packet)
	if guard := w.guard(t, q, s); guard != "" {
		w.uses.Guard = guard
	}
	if q.selects(w, s) {
		w.scanned(s)
	}
	for name, on := range q.targets {
		if on&Inserts != 0 {
			w.inserted[name] = true
		}
	}
	w.calls(t, s)
	for _, name := range slices.Sorted(maps.Keys(q.targets)) {
		w.changes(name, q.targets[name], t, s)
		if end := where(t); d == MySQL && (first(t) == "UPDATE" || first(t) == "DELETE") && severalTables(t, end) { // the statement may change any of its tables
			for _, joined := range relationsOf(t[:end]) {
				w.changes(joined, q.targets[name], t, s)
			}
		}
	}
}

// scanned records that a statement has read rows without a lock.
func (w *walk) scanned(s place) {
	w.uses.Scans++
	if s.many {
		w.uses.Scans++
	}
	if w.ended {
		w.uses.Guard = ""
	}
	w.unguards = true
	w.snapshot(s)
}

// snapshot counts the snapshot of a statement that has read.
func (w *walk) snapshot(s place) {
	switch {
	case s.stale:
	case s.many:
		w.uses.Snapshots += 2
	default:
		w.uses.Snapshots++
	}
}

// selects records the tables that a query reads, and reports whether it reads rows without a lock.
func (q *query) selects(w *walk, s place) (scans bool) {
	for _, b := range q.done {
		for _, name := range b.reads {
			switch {
			case b.ignored && b.verb == "SELECT":
			case b.locks:
				w.note(w.locked, name)
				w.locks(name, q.tokens, s)
				w.uses.Waits = w.uses.Waits || !s.packet
			case b.shares:
				w.note(w.shared, name)
				w.uses.Waits = w.uses.Waits || !s.packet
			default:
				scans = w.looks(name, s) || scans
			}
		}
	}
	if q.merges {
		for name := range q.targets {
			scans = w.looks(name, s) || scans
		}
	}
	return scans
}

func (w *walk) holds(what string) {
	if !slices.Contains(w.uses.Holds, what) {
		w.uses.Holds = append(w.uses.Holds, what)
	}
}

func (w *walk) note(to map[string]bool, name string) {
	to[name] = true
	w.seen++
}

// looks records a read of rows of a table or a view, and reports whether there is such a table. Any
// other name belongs to a temporary table or a variable.
func (w *walk) looks(name string, s place) bool {
	r := w.c.Tables[name]
	if r == nil && w.c.Hidden {
		w.note(w.reads, name)
		return true
	}
	if r == nil || !w.enter(name) {
		return false
	}
	defer delete(w.path, name)
	if r.View != "" {
		s.packet = false
		t, _ := tokens(r.View, w.c.Dialect, w.c.Dialect == MySQL)
		scans := w.c.Dialect.query(t, true).selects(w, s)
		w.calls(t, s)
		return scans
	}
	w.note(w.reads, name)
	for _, part := range r.Parts {
		w.looks(part, s)
	}
	return true
}

// enter records that the walk is inside some code. It returns false if the walk was already inside that
// code, as in a recursion.
func (w *walk) enter(code any) bool {
	if w.path[code] {
		return false
	}
	w.path[code] = true
	return true
}

// special handles statements that are not queries.
func (w *walk) special(t []token, s place) bool {
	switch first(t) {
	case "BEGIN":
		if s.packet && (len(t) <= 2 || w.c.Dialect == Postgres) { // any other BEGIN starts a block
			w.begins()
		}
	case "START":
		w.begins()
	case "SET":
		if w.c.Dialect == MySQL && setsAutocommit(t) {
			w.begins()
		}
		return false
	case "END":
		if s.packet && w.c.Dialect == Postgres {
			w.ends(s)
		}
	case "COMMIT", "ROLLBACK":
		if !slices.ContainsFunc(t, func(one token) bool { return one.is("TO") }) {
			w.ends(s)
		}
	case "SAVEPOINT", "RELEASE", "CREATE", "DROP", "ALTER", "PREPARE", "DEALLOCATE":
	case "EXECUTE":
		w.dynamic(t[1:], s)
	case "CALL":
		w.calls(t, s)
		if len(t) < 3 || t[len(t)-1].text != ")" { // MySQL
			w.call(t[1:], nil, s)
		}
	case "DO":
		if w.c.Dialect == MySQL || len(t) < 2 {
			return false
		}
		before, at := w.seen, len(w.uses.Runs)
		for _, one := range t {
			if one.kind == text {
				s.packet = false
				w.inner(one.text, s)
			}
		}
		if w.seen > before {
			w.first(at, "a block")
		}
	case "COPY":
		if from := slices.IndexFunc(t, func(one token) bool { return one.is("FROM") }); from > 1 && t[1].text != "(" {
			s.many = true
			for _, one := range t[1:from] {
				w.changes(unquoted(one.text), Inserts, t, s)
			}
		}
	case "LOAD":
		s.many = true
		for _, name := range relationsOf(t) {
			w.changes(name, Inserts|Deletes, t, s)
		}
	case "TRUNCATE":
		for _, one := range t {
			w.changes(unquoted(one.text), Truncates, t, s)
		}
	default:
		return false
	}
	return true
}

func (w *walk) begins() {
	w.commit()
	w.uses.Controls, w.open = true, true
}

// ends handles COMMIT and ROLLBACK. In a branch, the statement need not run, so the transaction counts
// as continued. In a loop, it may commit any number of times.
func (w *walk) ends(s place) {
	w.uses.Controls = true
	switch {
	case s.branch && s.many:
		w.commits += unlimited
	case !s.branch:
		w.commit()
		w.open, w.ended = false, w.ended || w.uses.Guard != ""
	}
}

// dynamic follows an EXECUTE of a prepared statement, or of a text in a routine.
func (w *walk) dynamic(t []token, s place) {
	if !s.packet && len(t) > 0 && t[0].kind == text && (len(t) == 1 || t[1].kind != other) {
		w.inner(t[0].text, s)
		return
	}
	w.uses.Any = true
	w.runs("a statement that is composed or was prepared")
}

func (w *walk) inner(quoted string, s place) {
	body := strings.ReplaceAll(strings.Trim(quoted, "'"), "''", "'")
	if quoted[0] == '$' {
		tag := quoted[:strings.IndexByte(quoted[1:], '$')+2]
		body = strings.TrimSuffix(strings.TrimPrefix(quoted, tag), tag)
	}
	w.text(body, s)
}

func (w *walk) text(body string, s place) {
	t, rest := tokens(body, w.c.Dialect, w.c.Dialect == MySQL)
	w.uses.Any = w.uses.Any || rest != whole
	w.body(t, s)
}

func (w *walk) runs(what string) {
	w.seen++
	if !slices.Contains(w.uses.Runs, what) {
		w.uses.Runs = append(w.uses.Runs, what)
	}
}

func (w *walk) calls(t []token, s place) {
	for i := 1; i < len(t); i++ {
		if t[i].text != "(" || t[i].kind != other || t[i-1].kind != word && t[i-1].kind != identifier {
			continue
		}
		name := i - 1
		for name > 1 && t[name-1].text == "." {
			name -= 2
		}
		if name > 0 && t[name-1].is("INTO") { // the columns of an INSERT
			continue
		}
		w.call(t[name:i], items(t[i+1:closing(t, i)]), s)
		if called := strings.ToLower(t[i-1].text); w.c.Hidden && !w.c.Dialect.callIsPure(t, i) && !tableless[called] && !waiting[called] {
			w.uses.Any = true
			w.runs("function " + unquoted(called))
		}
		if called := unquoted(t[i-1].text); strings.Contains(called, "lock") && waiting[called] {
			w.uses.Waits = w.uses.Waits || !s.packet
			w.holds(NamedLocks)
		}
	}
}

func (w *walk) call(path []token, args [][]token, s place) {
	if len(path) == 0 {
		return
	}
	last := path[len(path)-1]
	schema := ""
	if len(path) > 2 {
		schema = unquoted(path[len(path)-3].text)
	}
	if w.c.Dialect == MySQL && schema == "" && pure(last.text, MySQL) {
		return
	}
	for _, r := range w.c.Routines[unquoted(last.text)] {
		if schema != "" && r.Schema != schema || schema == "" && r.Built || len(args) < r.Min || len(args) > r.Max {
			continue
		}
		inside := place{inner: s.inner || !r.Procedure, stale: s.stale || !r.Fresh, branch: s.branch, many: s.many, values: map[string]string{}}
		for i, name := range r.Params {
			if i < len(args) {
				if v, known := s.literal(args[i]); known {
					inside.values[name] = v
				}
			}
		}
		w.run(r, inside)
	}
}

func (w *walk) run(r *Routine, s place) {
	if !w.enter(r) {
		return
	}
	defer delete(w.path, r)
	before, at := w.seen, len(w.uses.Runs)
	switch {
	case r.Text != "":
		w.text(r.Text, s)
	case r.Writes:
		w.uses.Any = true
		w.seen++
	case r.Reads:
		w.note(w.reads, anyTable)
		w.scanned(s)
	}
	kind := "function "
	if r.Procedure {
		kind = "procedure "
	}
	if w.seen > before {
		w.first(at, kind+r.Name)
	}
}

// first inserts the name of some code into Runs, before the names of the code that it runs.
func (w *walk) first(at int, what string) {
	if !slices.Contains(w.uses.Runs, what) {
		w.uses.Runs = slices.Insert(w.uses.Runs, at, what)
	}
}

// changes follows a statement that changes rows of a table or a view. It ignores any other name.
func (w *walk) changes(name string, on Event, t []token, s place) {
	r := w.c.Tables[name]
	if r == nil && w.c.Hidden {
		w.note(w.writes, name)
		w.wrote = true
	}
	if r == nil || !w.enter(r) {
		return
	}
	defer delete(w.path, r)
	if r.View == "" && on&^Inserts != 0 {
		w.locks(name, t, s)
	}
	instead := false
	s.packet, s.many = false, s.many || !oneRow(t)
	for _, code := range r.Code {
		if code.On&on == 0 || code.On&on == Updates && code.Of != nil && !sets(t, code.Of) {
			continue
		}
		instead = true
		w.fires(code, t, s)
	}
	switch {
	case r.View != "" && instead:
		return
	case r.View != "":
		view, _ := tokens(r.View, w.c.Dialect, w.c.Dialect == MySQL)
		w.calls(view, s)
		for _, base := range relationsOf(view) {
			w.changes(base, on, t, s)
		}
		return
	}
	w.note(w.writes, name)
	w.wrote = true
	for _, part := range r.Parts {
		w.changes(part, on, t, s)
	}
	s.many = true
	for _, k := range r.Deletes {
		if on&Deletes != 0 {
			w.changes(k.Table, Updates|Deletes, nil, s)
		}
	}
	for _, k := range r.Updates {
		if on&Updates != 0 && sets(t, k.Of) {
			w.changes(k.Table, Updates, nil, s)
		}
	}
}

// fires follows the code that runs when a table changes.
func (w *walk) fires(code Code, t []token, s place) {
	s.inner, s.values = true, s.newRow(t)
	before, scans, at := w.seen, w.uses.Scans, len(w.uses.Runs)
	switch {
	case code.Run != nil:
		s.stale = s.stale || !code.Run.Fresh
		if w.enter(code.Run) {
			w.text(code.Run.Text, s)
			delete(w.path, code.Run)
		}
		if code.Run.Text == "" && code.Run.Writes {
			w.uses.Any = true
			w.seen++
		}
	case code.Name == "":
		body, _ := tokens(code.Text, w.c.Dialect, w.c.Dialect == MySQL)
		w.calls(body, s)
	default:
		w.text(code.Text, s)
	}
	if w.seen > before && code.Name != "" {
		w.first(at, code.Name)
	}
	if code.Late && w.uses.Scans > scans {
		w.uses.Scans = unlimited
	}
}
