package judge

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/lockstrategy"
)

// databases are the names that a witness uses for servers with stock and records. A witness is a schedule
// that breaks the code.
var databases = []string{"sql", "mysql", "postgres"}

// A moment is a step of a witness, by its number.
type moment struct {
	step, buyer int
	text        string
}

// A teller finds the steps of a witness that explain its violation.
type teller struct {
	w       *explore.Witness
	lines   []string
	reads   map[int]moment   // each buyer's last read
	holds   map[held]moment  // the holder of each key
	gone    map[held]bool    // keys in holds that Redis has lost since
	written map[held]moment  // each key's last write
	freed   map[int]moment   // each buyer's last release
	begun   map[int]bool     // whether the buyer has an open transaction
	commits []moment         // commits of transactions with a write
	wrote   map[int]bool     // whether the buyer has written since its BEGIN
	records map[int][]moment // each buyer's inserts of records
}

type held struct{ server, key string }

// String returns the key, and the name of its server if that is not the only Redis.
func (h held) String() string {
	if h.server == string(lockstrategy.NeedsRedis) {
		return h.key
	}
	return h.key + " in " + h.server
}

// Story tells a witness in words. For each step that led to the verdict, it names the buyer, the command, and
// the earlier read that the step relied on.
func Story(w *explore.Witness) string {
	t := &teller{w: w, reads: map[int]moment{}, holds: map[held]moment{}, gone: map[held]bool{}, written: map[held]moment{}, freed: map[int]moment{}, begun: map[int]bool{}, wrote: map[int]bool{}, records: map[int][]moment{}}
	for i, s := range w.Steps {
		t.step(i+1, s)
	}
	t.end()
	return strings.Join(t.lines, "\n")
}

func (t *teller) say(format string, args ...any) {
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

// step records one step of the witness, and describes it if it explains the violation.
func (t *teller) step(n int, s explore.Step) {
	m := moment{n, s.Buyer, strings.TrimPrefix(s.Command, "(let through) ")}
	switch {
	case strings.HasPrefix(s.Command, "(") && !strings.HasPrefix(s.Command, "(let through)"):
		who := ""
		if s.Buyer > 0 {
			who = fmt.Sprintf("buyer %d ", s.Buyer)
		}
		t.say("step %d: %s%s.", n, who, strings.Trim(m.text, "()"))
		if strings.Contains(m.text, "forgets its keys") {
			for name := range t.holds {
				t.gone[name] = t.gone[name] || name.server == s.Server
			}
			maps.DeleteFunc(t.written, func(name held, _ moment) bool { return name.server == s.Server })
		}
	case slices.Contains(databases, s.Server):
		t.sql(m, s)
	case s.Server != "" && s.Server != "process":
		t.redis(m, s)
	}
	if s.Note != "" {
		t.say("step %d: buyer %d sends %s%s; %s.", n, s.Buyer, short(m.text), to(s.Server), s.Note)
	}
}

func (t *teller) sql(m moment, s explore.Step) {
	upper := strings.ToUpper(m.text)
	switch {
	case strings.HasPrefix(upper, "BEGIN"):
		t.begun[m.buyer], t.wrote[m.buyer] = true, false
	case strings.HasPrefix(upper, "SELECT") && strings.Contains(upper, "PRODUCT"):
		t.reads[m.buyer] = moment{m.step, m.buyer, s.Result}
		t.say("step %d: buyer %d reads the stock: %s.", m.step, m.buyer, s.Result)
	case strings.HasPrefix(upper, "UPDATE PRODUCT"):
		t.wrote[m.buyer] = true
		line := fmt.Sprintf("step %d: buyer %d sends %s -> %s", m.step, m.buyer, short(m.text), s.Result)
		if since := t.since(m.buyer); since != "" {
			line += since
		}
		t.say("%s.", line)
		if !t.begun[m.buyer] {
			t.committed(m)
		}
	case strings.HasPrefix(upper, "INSERT"):
		t.wrote[m.buyer] = true
		t.records[m.buyer] = append(t.records[m.buyer], m)
		if !t.begun[m.buyer] {
			t.committed(m)
		}
	case strings.HasPrefix(upper, "COMMIT"):
		t.begun[m.buyer] = false
		if t.wrote[m.buyer] {
			t.committed(m)
		}
	case strings.HasPrefix(upper, "ROLLBACK"):
		t.begun[m.buyer] = false
	}
}

// since returns a clause about the buyer's earlier read if another buyer has written since that read, and ""
// otherwise.
func (t *teller) since(buyer int) string {
	read, has := t.reads[buyer]
	if !has {
		return ""
	}
	for _, c := range t.commits {
		if c.buyer != buyer && c.step > read.step {
			return fmt.Sprintf(", by what it read at step %d (%s), though buyer %d has changed that at step %d", read.step, read.text, c.buyer, c.step)
		}
	}
	return ""
}

func (t *teller) committed(m moment) {
	t.commits = append(t.commits, m)
	if free, has := t.freed[m.buyer]; has {
		t.say("step %d: buyer %d commits, and has freed its lock before, at step %d (%s).", m.step, m.buyer, free.step, short(free.text))
	}
}

// key matches the first argument of a command, or of a script.
var key = regexp.MustCompile(`^(?:script "[^"]*"|\S+) (\S+)`)

func (t *teller) redis(m moment, s explore.Step) {
	found := key.FindStringSubmatch(m.text)
	if found == nil {
		return
	}
	name, upper := held{s.Server, found[1]}, strings.ToUpper(m.text)
	switch {
	case strings.HasPrefix(upper, "SET") && (strings.Contains(upper+" ", " NX ") || strings.HasPrefix(upper, "SETNX")):
		holder, held := t.holds[name]
		if s.Result != "1" && s.Result != "OK" {
			return
		}
		line := fmt.Sprintf("step %d: buyer %d takes %s", m.step, m.buyer, name)
		if held && holder.buyer != m.buyer {
			line += fmt.Sprintf(", which buyer %d has taken at step %d and not given back", holder.buyer, holder.step)
		}
		t.say("%s.", line)
		t.holds[name], t.written[name] = m, m
		delete(t.gone, name)
		delete(t.freed, m.buyer)
	case strings.HasPrefix(upper, "SET "):
		if before, has := t.written[name]; has && before.buyer != m.buyer {
			t.say("step %d: buyer %d writes %s, over what buyer %d has written at step %d.", m.step, m.buyer, name, before.buyer, before.step)
		}
		t.written[name] = m
	case strings.HasPrefix(upper, "DEL"), strings.HasPrefix(upper, `SCRIPT "DELETE`):
		if s.Result != "0" {
			delete(t.holds, name)
			delete(t.written, name)
			t.freed[m.buyer] = m
			if s.Note == "" {
				t.say("step %d: buyer %d frees %s.", m.step, m.buyer, name)
			}
		}
	}
}

func (t *teller) end() {
	for _, o := range t.w.Outcomes {
		if all := t.records[o.Buyer]; len(all) > 1 {
			t.say("buyer %d's one purchase is recorded at step %d and again at step %d.", o.Buyer, all[0].step, all[1].step)
		}
	}
	var keys []held
	for name := range t.holds {
		keys = append(keys, name)
	}
	slices.SortFunc(keys, func(a, b held) int { return strings.Compare(a.String(), b.String()) })
	if t.w.Verdict == "stalled" {
		for _, name := range keys {
			if t.gone[name] {
				continue
			}
			t.say("%s stays with buyer %d, who took it at step %d.", name, t.holds[name].buyer, t.holds[name].step)
		}
	}
	var told []string
	for _, o := range t.w.Outcomes {
		told = append(told, fmt.Sprintf("buyer %d: %s", o.Buyer, strings.ReplaceAll(o.Answer, "_", " ")))
	}
	t.say("In the end %s; %s.", t.w.Why, strings.Join(told, ", "))
}

// to returns words that name a command's server, or "" if there is only one.
func to(server string) string {
	if !strings.HasPrefix(server, "store-") {
		return ""
	}
	return " to " + server
}

func short(text string) string {
	text = oneLine(text)
	if len(text) > 100 {
		text = text[:97] + "..."
	}
	return text
}
