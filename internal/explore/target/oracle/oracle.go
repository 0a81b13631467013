// Package oracle decides, without a rule of the user, whether a schedule is right. The schedule must end as some serial
// run ends: a run of the buyers, one after the other. (This is serializability, see Papadimitriou, "The Serializability
// of Concurrent Database Updates", 1979.)
//
//	Add        records the answers and the data at the end of a serial run
//	Settle     excludes differences between two runs of one order
//	Judge      compares the end of a schedule: the nearest order and the difference, or
//	           the buyers that were refused while a unit was left
//
// A buyer that was refused need not be part of the order, but it must have changed nothing. Generated keys and random
// values are compared by where they occur, not by their values, see form.
package oracle

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// An Answer is the answer to one buyer.
type Answer struct {
	Lost   bool // the buyer got no answer, so the request may have taken effect or not
	No     bool // the answer is a refusal, with any status
	Status int
	Body   string
}

// refused reports whether the answer is a refusal or a failure, or is missing.
func (a Answer) refused() bool { return a.Lost || a.No || a.Status >= http.StatusBadRequest }

// A Run is the end of one run: the data, and the answers by the buyer's number. A buyer that did not come has no entry.
type Run struct {
	Answers map[int]Answer
	Data    Data
}

// An Oracle knows how each order of the buyers ends when they come one after the other. It serves one goroutine.
type Oracle struct {
	reset  Data // before any buyer
	serial []serial
	out    map[string]bool // places that are not compared, in the form of New's argument `except`
	fixed  map[string]bool // values that look random or like the time, but are the same in equal runs
	before map[node]bool   // generated keys that existed before any buyer came
}

// A serial is one order of some buyers, and one or two runs of it.
type serial struct {
	order []int
	runs  []Run
	forms map[string]*form // by the buyers whose answers are left out of the comparison
}

// New returns an oracle for programs that begin with the data `reset`. The parameter `except` lists values that may
// differ: "table.column", "table.*", "redis.KEY", or "body /path" for a place in the JSON of an answer ("body"
// for all of it).
func New(reset Data, except []string) *Oracle {
	o := &Oracle{reset: reset, out: map[string]bool{}, fixed: tokens(Run{Data: reset}), before: nodes(reset)}
	for _, e := range except {
		o.out[e] = true
	}
	return o
}

// Renewed learns the values that each reset creates anew: keys, random values, and columns of other tokens, such as
// login tokens. The parameter `again` is the data after another reset, before any buyer came. All other columns are
// still compared, because they may contain a quantity that the reset does not restore.
func (o *Oracle) Renewed(again Data) {
	values, keys := tokens(Run{Data: again}), nodes(again)
	maps.DeleteFunc(o.fixed, func(value string, _ bool) bool { return !values[value] })
	maps.DeleteFunc(o.before, func(n node, _ bool) bool { return !keys[n] })
	one, other := o.columns(Run{Data: o.reset}), o.columns(Run{Data: again})
	for _, place := range o.varying(Run{Data: o.reset}, Run{Data: again}) {
		isOther := func(value string) bool { return !isToken(value) && !strings.Contains(value, "\x00") }
		if !slices.ContainsFunc(slices.Concat(one[place], other[place]), isOther) {
			o.out[place] = true
		}
	}
}

// isToken reports whether a text is one long word with a letter, such as a login's token.
func isToken(text string) bool { return token.MatchString(text) && hasLetter.MatchString(text) }

var token, hasLetter = regexp.MustCompile(`^[\w+/=.~$-]{16,}$`), regexp.MustCompile(`[A-Za-z]`)

// Unrestored compares the data after another reset (`again`) with that of New, to find data that a reset does not restore.
// A column that differs and contains only times, such as updated_at, is no longer compared: hardly any reset restores it.
// If a table still differs, it is not compared, either. Unrestored returns its differing places by table, in the form
// of New's argument `except`.
func (o *Oracle) Unrestored(again Data) map[string][]string {
	one, other := o.columns(Run{Data: o.reset}), o.columns(Run{Data: again})
	for _, place := range o.varying(Run{Data: o.reset}, Run{Data: again}) {
		if len(one[place]) == len(other[place]) && !slices.ContainsFunc(slices.Concat(one[place], other[place]), isNoTime) {
			o.out[place] = true
		}
	}
	d := compare(o.form(Run{Data: o.reset}, nil), o.form(Run{Data: again}, nil))
	if d == nil {
		return nil
	}
	tables := map[string][]string{}
	for _, r := range d.Rows {
		tables[r.Table] = append(tables[r.Table], r.places...)
	}
	for name, places := range tables {
		o.out[name+".*"] = true
		slices.Sort(places)
		tables[name] = slices.Compact(places)
	}
	return tables
}

// Orders returns each order of each subset of the buyers 1 to n. The orders of all buyers come first.
func Orders(n int) (all [][]int) {
	var grow func(order []int)
	grow = func(order []int) {
		all = append(all, slices.Clone(order))
		for b := 1; b <= n; b++ {
			if !slices.Contains(order, b) {
				grow(append(order, b))
			}
		}
	}
	grow(nil)
	slices.SortStableFunc(all, func(a, b []int) int { return cmp.Compare(len(b), len(a)) })
	return all
}

// Add records a run of the buyers in the given order. If an order is run twice, Settle can compare the two.
func (o *Oracle) Add(order []int, r Run) {
	at := slices.IndexFunc(o.serial, func(s serial) bool { return slices.Equal(s.order, order) })
	if at < 0 {
		o.serial = append(o.serial, serial{order: slices.Clone(order), forms: map[string]*form{}})
		at = len(o.serial) - 1
	}
	o.serial[at].runs = append(o.serial[at].runs, r)
}

// Only forgets the tables for which `touched` returns false. No buyer uses them, so they are not read after a schedule.
func (o *Oracle) Only(touched func(table string) bool) {
	for _, s := range o.serial {
		for _, r := range s.runs {
			maps.DeleteFunc(r.Data, func(table string, _ *Table) bool { return !touched(table) })
		}
	}
}

// Settle excludes the columns that differ between two runs of one order. It may be called again after another Add. If a
// further difference remains, no schedule can be judged. Then the error names the difference in one line.
func (o *Oracle) Settle() error {
	for _, s := range o.serial {
		for _, again := range s.runs[1:] {
			once := tokens(s.runs[0])
			for value := range tokens(again) {
				o.fixed[value] = o.fixed[value] || once[value]
			}
		}
	}
	for _, s := range o.serial {
		for _, again := range s.runs[1:] {
			for _, place := range o.varying(s.runs[0], again) {
				if place == "status" {
					return errors.New("the same buyers, one after the other, are answered with another status each time")
				}
				o.out[place] = true
			}
		}
	}
	for i := range o.serial {
		s := &o.serial[i]
		clear(s.forms)
		for _, again := range s.runs[1:] {
			one, other := o.form(s.runs[0], nil), o.form(again, nil)
			if d := compare(one, other); d != nil {
				return fmt.Errorf("the same buyers, one after the other, end differently each time: %s", strings.Join(d.Places(), ", "))
			}
		}
	}
	return nil
}

// Unmatched returns those entries of `except` that match no table, no column and no place in an answer.
func (o *Oracle) Unmatched(except []string) (all []string) {
	places := map[string]bool{"status": true, "body": true}
	for name, t := range o.reset {
		places[name+".*"] = true
		for _, c := range t.Columns {
			places[name+"."+c.Name] = true
		}
	}
	for _, s := range o.serial {
		for _, a := range s.runs[0].Answers {
			for _, leaf := range leaves(a) {
				for at := leaf.place; strings.Contains(at, "/"); at = at[:strings.LastIndexByte(at, '/')] {
					places[at] = true
				}
			}
		}
	}
	_, redis := o.reset[redisTable]
	for _, e := range except {
		if !places[e] && !(redis && strings.HasPrefix(e, redisTable+".")) { // a key of Redis may exist only after a race, so its entry always counts as matched
			all = append(all, e)
		}
	}
	return all
}

// LeftOut returns the places that are not compared, in the form of New's argument `except`.
func (o *Oracle) LeftOut() []string { return slices.Sorted(maps.Keys(o.out)) }

// Judge compares a run with each order of the buyers. If the run ended as one of the orders did, `nearest` is nil. Then
// `refused` lists the buyers that were refused but would be served after that order. Otherwise `nearest` is the
// difference from the nearest order.
func (o *Oracle) Judge(r Run) (nearest *Difference, refused []int, _ error) {
	seen := map[string]*form{}
	right := false
	for i := range o.serial {
		s := &o.serial[i]
		drop, fits := dropped(s.order, r.Answers)
		if !fits {
			continue
		}
		key := fmt.Sprint(drop)
		if s.forms[key] == nil {
			s.forms[key] = o.form(s.runs[0], drop)
		}
		if seen[key] == nil {
			seen[key] = o.form(r, drop)
		}
		d := compare(seen[key], s.forms[key])
		if d == nil {
			right = true
			if refused = o.servedAfter(s.order, r.Answers); len(refused) == 0 {
				return nil, nil, nil
			}
			continue
		}
		d.Order = s.order
		if nearest == nil || d.size() < nearest.size() {
			nearest = d
		}
	}
	if right {
		return nil, refused, nil
	}
	if nearest == nil {
		return nil, nil, errors.New("no order of the buyers was run")
	}
	return nearest, nil, nil
}

// servedAfter returns the buyers outside the order that were refused, but are served if they come directly after it.
func (o *Oracle) servedAfter(order []int, answers map[int]Answer) (all []int) {
	for _, b := range slices.Sorted(maps.Keys(answers)) {
		if slices.Contains(order, b) || answers[b].Lost {
			continue
		}
		next := append(slices.Clone(order), b)
		if at := slices.IndexFunc(o.serial, func(s serial) bool { return slices.Equal(s.order, next) }); at >= 0 && !o.serial[at].runs[0].Answers[b].refused() {
			all = append(all, b)
		}
	}
	return all
}

// dropped returns the buyers whose answers are not compared with an order: those outside the order, and those without
// an answer. If a buyer outside the order was not refused, `fits` is false.
func dropped(order []int, answers map[int]Answer) (drop []int, fits bool) {
	for _, b := range slices.Sorted(maps.Keys(answers)) {
		part := slices.Contains(order, b)
		if !part && !answers[b].refused() {
			return nil, false
		}
		if !part || answers[b].Lost {
			drop = append(drop, b)
		}
	}
	return drop, true
}
