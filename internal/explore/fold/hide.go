package fold

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/serverstate"
	"github.com/oversell/oversell/internal/explore/witness"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A step is a step of the run, with the objects that it may touch. An object is a table or a Redis key, written with
// its server: "postgres items".
type step struct {
	witness.Step
	touches, writes map[string]bool // objects; touches includes writes
	// If undecided, the step may also touch unknown objects, for example because it calls a procedure. If wild, it may
	// also write unknown objects.
	undecided, wild        bool
	shown                  bool // never hide this step: it is an event, a wait, an error or a lock
	controls, begins, ends bool // the step controls, begins or ends a transaction
}

func (r Run) analyse() (all []step) {
	for _, s := range r.Steps {
		one := step{Step: s, touches: map[string]bool{}, writes: map[string]bool{}}
		one.shown = s.Buyer == 0 || s.Server == "" || strings.HasPrefix(s.Command, "(") || s.Note != "" ||
			s.Result == "waits for another" || strings.Contains(s.Result, "error")
		if d, sql := effect.DialectOf(s.Server); sql {
			one.statement(d, r.Tables[s.Server])
		} else if s.Server != "" {
			one.redis()
		}
		all = append(all, one)
	}
	return all
}

// statement finds the objects of an SQL statement. If `tables` is nil, they are unknown, so the step may touch any
// object.
func (s *step) statement(d effect.Dialect, tables serverstate.Tables) {
	m := effect.Mentions(cmp.Or(s.Whole, s.Command), d)
	s.undecided, s.wild = m.Undecided || tables == nil, m.Alters && m.Undecided || tables == nil
	s.controls, s.begins, s.ends = m.Controls, m.Begins, m.Ends
	s.shown = s.shown || m.Waits
	if m.Controls {
		s.undecided, s.wild = false, false
		return
	}
	named := known(m.Names, tables)
	for name := range named {
		if tables[name].Opaque {
			s.undecided = true
			s.wild = s.wild || m.Alters
		}
	}
	writes := m.Alters || m.Undecided // LOCK TABLE counts as a write: it changes no row, but blocks other buyers
	if writes {
		written := maps.Clone(named)
		for name := range named {
			cascade(written, tables, name, m.Deletes)
		}
		for name := range written {
			s.undecided = s.undecided || tables[name].Fires
			s.wild = s.wild || tables[name].Fires
			s.writes[s.Server+" "+name] = true
			named[name] = true
			for _, checked := range tables[name].Reads {
				named[checked] = true
			}
		}
	}
	for name := range named {
		s.touches[s.Server+" "+name] = true
	}
}

// known returns the names that are tables, and also the partitions and parents of these tables.
func known(names []string, tables serverstate.Tables) map[string]bool {
	found := map[string]bool{}
	var add func(name string)
	add = func(name string) {
		if tables[name] == nil || found[name] {
			return
		}
		found[name] = true
		for _, part := range tables[name].Parts {
			add(part)
		}
	}
	for _, name := range names {
		add(name)
	}
	return found
}

// cascade adds the tables that a change of the named table also changes: through ON UPDATE of their foreign keys and,
// if `deletes` is true, through ON DELETE.
func cascade(found map[string]bool, tables serverstate.Tables, name string, deletes bool) {
	next := tables[name].Updates
	if deletes {
		next = slices.Concat(next, tables[name].Deletes)
	}
	for _, other := range next {
		if !found[other] {
			found[other] = true
			cascade(found, tables, other, deletes)
		}
	}
}

// Redis commands whose only key is their first argument. DEL, UNLINK and EXISTS may name several keys, so the method
// redis checks that they name one.
var (
	readsKey = words(`GET STRLEN GETRANGE TTL PTTL TYPE HGET HMGET HGETALL HEXISTS HLEN HKEYS HVALS LLEN LRANGE LINDEX
		SMEMBERS SISMEMBER SCARD ZRANGE ZSCORE ZCARD ZRANK`)
	writesKey = words(`SET SETEX PSETEX SETNX GETSET GETDEL APPEND INCR DECR INCRBY DECRBY HSET HMSET HSETNX HDEL HINCRBY
		EXPIRE PEXPIRE PERSIST SADD SREM LPUSH RPUSH LPOP RPOP ZADD ZREM`)
)

func words(text string) map[string]bool {
	all := map[string]bool{}
	for _, one := range strings.Fields(text) {
		all[one] = true
	}
	return all
}

// redis finds the key of a Redis command. An unknown command, or one with several keys, may touch any key.
func (s *step) redis() {
	all := strings.Split(s.Command, " ")
	reads := readsKey[all[0]] || all[0] == "EXISTS" && len(all) == 2
	writes := writesKey[all[0]] || (all[0] == "DEL" || all[0] == "UNLINK") && len(all) == 2
	if len(all) < 2 || !reads && !writes || strings.ContainsAny(all[1], `"…`) {
		s.undecided, s.wild = true, true
		return
	}
	s.touches[s.Server+" "+all[1]] = true
	if writes {
		s.writes[s.Server+" "+all[1]] = true
	}
}

// hide reports for each step whether it is hidden. It hides no step if a broken rule may read unknown objects, or if
// the buyers share a process. After a leaked lock it hides none, either, since any step may be the cause.
func (r Run) hide(steps []step) []bool {
	hidden := make([]bool, len(steps))
	rule, decided := r.ruled()
	if !decided || r.Shared || r.Verdict == verdict.LeakedLock {
		return hidden
	}
	events := slices.ContainsFunc(steps, func(s step) bool { return s.Name == "expire" || s.Name == "forget" })
	others := map[int]*account{}
	for _, s := range steps {
		for id := range buyersOf(steps) {
			if id != s.Buyer {
				account := others[id]
				if account == nil {
					account = newAccount()
					others[id] = account
				}
				account.add(s)
			}
		}
	}
	for i, s := range steps {
		hidden[i] = !s.shown && !s.undecided && !s.controls && !(events && !isSQL(s.Server)) && others[s.Buyer].lets(s, rule)
	}
	transactions(steps, hidden)
	for i := range hidden { // a single hidden step is shown, since the row "... 1 more commands" would be as long
		alone := hidden[i] && (i == 0 || !hidden[i-1] || steps[i-1].Buyer != steps[i].Buyer) && (i == len(hidden)-1 || !hidden[i+1] || steps[i+1].Buyer != steps[i].Buyer)
		hidden[i] = hidden[i] && !alone
	}
	return hidden
}

func isSQL(protocol string) bool {
	_, sql := effect.DialectOf(protocol)
	return sql
}

func buyersOf(steps []step) map[int]bool {
	all := map[int]bool{}
	for _, s := range steps {
		if s.Buyer > 0 {
			all[s.Buyer] = true
		}
	}
	return all
}

// ruled returns the objects that the broken rules name. If a rule may also read unknown objects, for example through a
// view, `decided` is false.
func (r Run) ruled() (rule map[string]bool, decided bool) {
	rule = map[string]bool{}
	for _, f := range r.Findings {
		for protocol, tables := range r.Tables {
			if len(r.Tables) > 1 && !strings.HasPrefix(f.Query, protocol+":") {
				continue
			}
			d, _ := effect.DialectOf(protocol)
			m := effect.Mentions(strings.TrimPrefix(f.Query, protocol+":"), d)
			if m.Undecided {
				return nil, false
			}
			for name := range known(m.Names, tables) {
				if tables[name].View {
					return nil, false
				}
				rule[protocol+" "+name] = true
			}
		}
	}
	return rule, true
}

// An account sums up the steps of all buyers except one: which objects they may touch and write.
type account struct {
	touches, writes map[string]bool // objects
	undecided, wild map[string]bool // by server: a step may touch (undecided) or write (wild) unknown objects
}

func newAccount() *account {
	return &account{touches: map[string]bool{}, writes: map[string]bool{}, undecided: map[string]bool{}, wild: map[string]bool{}}
}

func (a *account) add(s step) {
	maps.Copy(a.touches, s.touches)
	maps.Copy(a.writes, s.writes)
	a.undecided[s.Server] = a.undecided[s.Server] || s.undecided
	a.wild[s.Server] = a.wild[s.Server] || s.wild
}

// lets reports whether a step may be hidden. The broken rule must name none of the step's objects. The step must write
// no object that another buyer touches, and another buyer must write no object that the step touches.
func (a *account) lets(s step, rule map[string]bool) bool {
	if a.wild[s.Server] || len(s.writes) > 0 && a.undecided[s.Server] {
		return false
	}
	for object := range s.touches {
		if rule[object] || a.writes[object] {
			return false
		}
	}
	for object := range s.writes {
		if a.touches[object] {
			return false
		}
	}
	return true
}

// transactions hides BEGIN and COMMIT of a transaction whose other steps are all hidden. Of other transactions, it also
// shows the first statement and the first read, because either may have taken the snapshot.
func transactions(steps []step, hidden []bool) {
	type connection struct {
		server string
		buyer  int
		id     int64
	}
	open := map[connection][]int{}
	finish := func(c connection) {
		all := open[c]
		delete(open, c)
		matters := slices.ContainsFunc(all, func(i int) bool { return !steps[i].controls && !hidden[i] })
		first, read := true, true
		for _, i := range all {
			switch s := steps[i]; {
			case s.controls:
				hidden[i] = !matters && !s.shown && c.id != 0
			case matters:
				if first || read && len(s.writes) == 0 {
					hidden[i] = false
				}
				first, read = false, read && len(s.writes) > 0
			}
		}
	}
	for i, s := range steps {
		if !isSQL(s.Server) {
			continue
		}
		c := connection{s.Server, s.Buyer, s.Connection}
		if s.begins {
			if slices.ContainsFunc(open[c], func(i int) bool { return !hidden[i] && len(steps[i].writes) > 0 }) {
				steps[i].shown = true // in MySQL, BEGIN commits an open transaction
			}
			finish(c)
		}
		open[c] = append(open[c], i)
		if s.ends {
			finish(c)
		}
	}
	for c := range open {
		finish(c)
	}
}
