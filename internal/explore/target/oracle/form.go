package oracle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/target/naming"
)

// A form describes the end of a run so that equal ends have equal texts. A new generated key or random value is a node
// of a graph. Its color depends on the rows and answers in which it occurs, and on the values beside it (color
// refinement: Weisfeiler and Leman, 1968). A key that existed before the buyers came is an ordinary value.
type form struct {
	rows map[string][]line // by table, sorted
}

type line struct {
	text    string   // the text that is compared
	cells   []string // text of each column
	columns []string // entry for `except` in oversell.yaml, for each column
	place   string   // entry for `except` in oversell.yaml, for the whole row
	shown   string
}

// A node is a generated key or a random value.
type node struct{ key, value string }

// A cell is a value with its nodes. In the text, a NUL stands for each node.
type cell struct {
	text  string
	nodes []node
	shown string
}

// A row is one row before its nodes are colored.
type row struct {
	table, place string
	names        []string
	columns      []string // as in line
	cells        []cell
}

// rounds is how often the colors are refined. After that, a node's color depends on nodes up to two references away.
const rounds = 3

// answers is the name of a table of a form. It has a row for each value in the answers to the buyers.
const answers = "answer"

// form returns the form of a run, without the answers to the buyers in `drop`.
func (o *Oracle) form(r Run, drop []int) *form {
	rows := o.rows(r, drop)
	colors := map[node]string{}
	for range rounds {
		places := map[node][]string{}
		for _, w := range rows {
			text := strings.Join(w.colored(colors), "\x01")
			for i, c := range w.cells {
				for _, n := range c.nodes {
					places[n] = append(places[n], fmt.Sprint(w.table, "\x00", i, "\x00", text))
				}
			}
		}
		colors = map[node]string{}
		for n, all := range places {
			slices.Sort(all)
			sum := sha256.Sum256([]byte(strings.Join(all, "\x00")))
			colors[n] = hex.EncodeToString(sum[:8])
		}
	}
	f := &form{map[string][]line{}}
	for _, w := range rows {
		cells := w.colored(colors)
		f.rows[w.table] = append(f.rows[w.table], line{strings.Join(cells, "\x01"), cells, w.columns, w.place, w.shown()})
	}
	for _, all := range f.rows {
		slices.SortFunc(all, func(a, b line) int { return strings.Compare(a.text, b.text) })
	}
	return f
}

// colored returns the texts of the cells, with a color in place of each node.
func (w row) colored(colors map[node]string) (all []string) {
	for _, c := range w.cells {
		text := c.text
		for _, n := range c.nodes {
			text = strings.Replace(text, "\x00", "<"+n.key+" "+colors[n]+">", 1)
		}
		all = append(all, text)
	}
	return all
}

func (w row) shown() string {
	var all []string
	for i, c := range w.cells {
		all = append(all, strings.TrimSpace(w.names[i]+" "+c.shown))
	}
	if w.table == answers {
		return strings.Join(all, " ")
	}
	return strings.Join(all, ", ")
}

// rows returns the rows of the tables and of the answers, without values excluded from the comparison.
func (o *Oracle) rows(r Run, drop []int) (all []row) {
	known := o.known(r.Data)
	for _, name := range slices.Sorted(maps.Keys(r.Data)) {
		t := r.Data[name]
		if o.out[name+".*"] {
			continue
		}
		for _, values := range t.Rows {
			w := row{table: name, place: name + ".*"}
			key := ""
			if name == redisTable {
				key = redisKey(known, values[0])
			}
			if o.out[key] {
				continue
			}
			w.place = cmp.Or(key, w.place)
			for i, c := range t.Columns {
				if !o.out[name+"."+c.Name] {
					w.names = append(w.names, c.Name)
					w.columns = append(w.columns, cmp.Or(key, name+"."+c.Name))
					one := known.cell(c.Name, c.Key, values[i])
					if c.Key == "" && len(one.nodes) == 1 && !refers(c.Name, one.nodes[0].key) && o.isShared(name, values[0]) {
						position := fmt.Sprintf(" (%d newer)", known.after(one.nodes[0]))
						one.text, one.shown = one.text+position, one.shown+position
					}
					w.cells = append(w.cells, one)
				}
			}
			all = append(all, w)
		}
	}
	for _, b := range slices.Sorted(maps.Keys(r.Answers)) {
		if slices.Contains(drop, b) || r.Answers[b].Lost {
			continue
		}
		buyer := cell{text: strconv.Itoa(b), shown: strconv.Itoa(b)}
		for _, leaf := range leaves(r.Answers[b]) {
			if o.leavesOut(leaf.place) {
				continue
			}
			all = append(all, row{
				table: answers, place: leaf.place, names: []string{"buyer", "", ""}, columns: []string{leaf.place, leaf.place, leaf.place},
				cells: []cell{buyer, {text: leaf.path, shown: leaf.path}, known.cell(leaf.name, "", leaf.value)},
			})
		}
	}
	return all
}

// isShared reports whether the table's row with the given first value belongs to no single buyer. Such a row existed
// before the buyers, or every serial run ends with exactly one such row. If it contains a generated key, that may be a
// counter, or how far a reader has read. So the form also says how many greater keys there are.
func (o *Oracle) isShared(table, first string) bool {
	rows := func(d Data) (n int) {
		if t := d[table]; t != nil {
			for _, values := range t.Rows {
				if values[0] == first {
					n++
				}
			}
		}
		return n
	}
	t := o.reset[table]
	switch {
	case t == nil || t.Columns[0].Key != "" && !o.before[node{t.Columns[0].Key, first}]: // each reset gives the row a new key
		return false
	case rows(o.reset) > 0:
		return true
	}
	each := func(s serial) bool { return len(s.order) > 0 }
	return t.Columns[0].Key == "" && slices.ContainsFunc(o.serial, each) &&
		!slices.ContainsFunc(o.serial, func(s serial) bool { return each(s) && rows(s.runs[0].Data) != 1 })
}

// redisKey returns the entry for `except` that excludes a key of Redis; "" if the key differs in each run.
func redisKey(k known, key string) string {
	if k.cell("key", "", key).text != key || strings.ContainsAny(key, " \t\n") {
		return ""
	}
	return redisTable + "." + key
}

// leavesOut reports whether a place in an answer is excluded from the comparison, alone or with a place that contains
// it.
func (o *Oracle) leavesOut(place string) bool {
	if o.out[place] || o.out["body"] && strings.HasPrefix(place, "body") {
		return true
	}
	for p, path, _ := strings.Cut(place, " "); path != ""; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
		if o.out[p+" "+path] {
			return true
		}
	}
	return false
}

type leaf struct{ place, path, name, value string }

// leaves returns the status and each value in an answer's JSON. A text that is not JSON is one value.
func leaves(a Answer) []leaf {
	all := []leaf{{"status", "status", "", strconv.Itoa(a.Status)}}
	var value any
	d := json.NewDecoder(strings.NewReader(a.Body))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		return append(all, leaf{"body", "body", "", strings.TrimSpace(a.Body)})
	}
	var walk func(path, place, name string, v any)
	walk = func(path, place, name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(v)) {
				walk(path+"/"+key, place+"/"+key, key, v[key])
			}
		case []any:
			for i, one := range v {
				walk(fmt.Sprint(path, "/", i), place+"/*", name, one)
			}
		default:
			all = append(all, leaf{strings.TrimSpace("body " + place), strings.TrimSpace("body " + path), name, fmt.Sprint(v)})
		}
	}
	walk("", "", "", value)
	return all
}

// A known knows which generated keys of a run are new, that is, did not exist before the buyers. It also knows the
// values that look random and are the same in equal runs.
type known struct {
	keys   map[string][]string // by value of a new key: the columns that contain it
	before map[node]bool
	fixed  map[string]bool
}

func (o *Oracle) known(d Data) known {
	k := known{map[string][]string{}, o.before, o.fixed}
	for n := range nodes(d) {
		if !k.before[n] && !slices.Contains(k.keys[n.value], n.key) {
			k.keys[n.value] = append(k.keys[n.value], n.key)
		}
	}
	return k
}

func nodes(d Data) map[node]bool {
	all := map[node]bool{}
	for _, t := range d {
		for i, c := range t.Columns {
			for _, values := range t.Rows {
				if c.Key != "" && values[i] != Null {
					all[node{c.Key, values[i]}] = true
				}
			}
		}
	}
	return all
}

// after returns how many new keys of n's column are greater than n.
func (k known) after(n node) (count int) {
	less := func(a, b string) bool { return len(a) < len(b) || len(a) == len(b) && a < b }
	for value, keys := range k.keys {
		if slices.Contains(keys, n.key) && less(n.value, value) {
			count++
		}
	}
	return count
}

// idName matches the name of a column, or of a place in an answer, that contains a key.
var idName = regexp.MustCompile(`(?i)(?:^|[_.-])(?:id|no|nr|number|key|ref|pk)s?$|[a-z](?:Id|ID|No|Nr|Number|Key|Ref)s?$`)

// cell returns the cell of a value, with its new keys and random values as nodes. The parameter `key` is Column.Key.
func (k known) cell(name, key, value string) cell {
	c := cell{text: value, shown: value}
	if n := (node{key, value}); key != "" && value != Null {
		if k.before[n] {
			return c
		}
		return cell{"\x00", []node{n}, shownNode}
	}
	if keys := k.keys[value]; len(keys) > 0 && (len(value) >= longKey || idName.MatchString(name)) {
		return cell{"\x00", []node{{meant(name, keys), value}}, shownNode}
	}
	text := naming.Moment.ReplaceAllStringFunc(value, func(found string) string {
		if isNow(found) && !k.fixed[found] {
			return someTime
		}
		return found
	})
	c.text = inText.ReplaceAllStringFunc(text, func(found string) string {
		switch {
		case len(k.keys[withoutZeros(found)]) > 0:
			found = withoutZeros(found)
			c.nodes = append(c.nodes, node{meant("", k.keys[found]), found})
		case !naming.Random.MatchString(found) || k.fixed[found]:
			return found
		case naming.IsClock(found):
			return someTime
		default:
			c.nodes = append(c.nodes, node{"", found})
		}
		return "\x00"
	})
	c.shown = strings.ReplaceAll(c.text, "\x00", shownNode)
	return c
}

// shownNode replaces a generated key or a random value in the output.
const shownNode = "(new)"

// longKey is the minimum length at which a generated key is recognized anywhere. A shorter one could be a quantity.
const longKey = 4

// withoutZeros removes leading zeros: the key in 00042 is 42.
func withoutZeros(number string) string { return cmp.Or(strings.TrimLeft(number, "0"), "0") }

// meant returns the column for which a key was generated, by the name of the column that contains it: order_id means
// orders.id. It returns "" if that is unclear.
func meant(name string, keys []string) string {
	if at := slices.IndexFunc(keys, func(key string) bool { return refers(name, key) }); at >= 0 {
		return keys[at]
	}
	if len(keys) > 1 {
		return ""
	}
	return keys[0]
}

// refers reports whether a column's name refers to the key: order_id refers to orders.id.
func refers(name, key string) bool {
	stem := strings.TrimRight(strings.TrimSuffix(strings.ToLower(name), "id"), "_")
	return stem != "" && strings.HasPrefix(strings.ToLower(key), stem)
}

// tokens returns the values of a run that look random, and the times.
func tokens(r Run) map[string]bool {
	all := map[string]bool{}
	add := func(text string) {
		for _, found := range append(naming.Moment.FindAllString(text, -1), naming.Random.FindAllString(text, -1)...) {
			all[found] = true
		}
	}
	for _, t := range r.Data {
		for _, values := range t.Rows {
			for _, v := range values {
				add(v)
			}
		}
	}
	for _, a := range r.Answers {
		for _, leaf := range leaves(a) {
			add(leaf.value)
		}
	}
	return all
}

// inText matches a possible new key or random value in a longer text.
var inText = regexp.MustCompile(naming.Random.String() + `|\b\d{4,}\b`)

// isNoTime reports whether a cell contains anything except a time.
func isNoTime(text string) bool { return !onlyTime.MatchString(text) }

// onlyTime matches a cell with only a time, or with only its replacement. A zone as Go writes it may follow.
var onlyTime = regexp.MustCompile(`^(?:` + someTime + `|` + naming.Moment.String() + `)(?: [+-]\d{4} \S+)?$`)

// someTime replaces a time that depends on when the run was.
const someTime = "<time>"

// around is how far a time may be from now to count as one that depends on when the run was.
const around = 48 * time.Hour

func isNow(text string) bool {
	t, err := time.Parse("2006-01-02 15:04:05", strings.Replace(text[:19], "T", " ", 1))
	return err == nil && time.Since(t).Abs() < around
}
