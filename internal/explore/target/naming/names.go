// Package naming gives names to values that differ between runs, such as tokens, times and generated ids. The names are
// the same in every run. So two runs of a schedule have the same texts, although the program's values differ.
package naming

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Random matches values that differ in each run: UUIDs, long hexadecimal numbers, ULIDs, numbers with ten digits or
// more, and fractions such as random numbers. The function mayBeRandom must return true for a text with any of them.
var Random = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` +
	`|\b[0-9a-fA-F]{16,}\b|[0-7][0-9A-HJKMNP-TV-Z]{25}\b|\b\d{10,}(?:\.\d+)?\b|\b0?\.\d{6,}\b`)

// Moment matches a time. All times have the same name, because two times that are equal in one run may differ in
// another.
var Moment = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?`)

// someTime is the name of every time.
const someTime = "<time>"

// number matches a whole number that is a word by itself.
var number = regexp.MustCompile(`\b\d+\b`)

// longID is the minimum length at which texts are searched for a value that a server has generated. A shorter one could
// also be an item's id, a quantity or a year.
const longID = 4

// Names names the values that differ between the runs of a schedule. It belongs to one run and serves one goroutine. A
// name says in which statement the value appeared first. For example, <orders.2> appeared in the second statement on
// orders that had a new value. So an additional value in one run does not change the names in other statements.
type Names struct {
	varying *Varying
	known   map[string]string // names by value
	owners  map[string]string // by label: the skeleton of its statement, which has no strings and numbers
	series  map[string]int    // by label: number of statements with new values
	coarse  bool              // generated numbers are too short to be recognized, so the names of commands contain no number at all
}

// New returns names for a run. It also replaces the values that v knows. If `coarse` is true, the names of commands
// contain no numbers.
func New(v *Varying, coarse bool) *Names {
	return &Names{varying: v, known: map[string]string{}, owners: map[string]string{}, series: map[string]int{}, coarse: coarse}
}

var table = regexp.MustCompile("(?i)\\b(?:INTO|UPDATE|FROM|TABLE|CALL)\\s+(?:ONLY\\s+)?(?:[\"`]?\\w+[\"`]?\\.)?[\"`]?(\\w+)")

// label returns the first part of the names of a statement's values: the statement's table, or its first word. Two
// different statements on one table have different labels.
func (n *Names) label(statement string) string {
	label := strings.ToLower(firstWord.FindString(statement))
	if m := table.FindStringSubmatch(statement); m != nil {
		label = m[1]
	}
	kind := label
	if table.MatchString(statement) {
		kind = Skeleton(statement)
	}
	for i := 1; ; i++ {
		name := label
		if i > 1 {
			name = fmt.Sprintf("%s-%d", label, i)
		}
		if owner, taken := n.owners[name]; !taken || owner == kind {
			n.owners[name] = kind
			return name
		}
	}
}

var firstWord = regexp.MustCompile(`[A-Za-z]+`)

// PlaceOf returns the place of a statement or, if mark is ":", of its answer.
func PlaceOf(statement, mark string) place {
	at := place{statement: strings.ToUpper(firstWord.FindString(statement)), answer: mark != ""}
	if m := table.FindStringSubmatch(statement); m != nil {
		at.statement += " " + m[1]
	}
	return at
}

// IsClock reports whether a number is about the current time, in seconds, milliseconds, microseconds or nanoseconds.
func IsClock(text string) bool {
	number, err := strconv.ParseFloat(text, 64)
	for unit := 1.0; err == nil && unit <= 1e9; unit *= 1000 {
		if math.Abs(number/unit-float64(time.Now().Unix())) < clockSkew.Seconds() {
			return true
		}
	}
	return false
}

// clockSkew is how far a number may be from now to count as a time. The end of a session, for example, is a future
// time.
const clockSkew = 24 * time.Hour

// A namer names the new values of one text: <orders.2>, then <orders.2b>. If the text is the answer to the statement,
// mark is ":".
type namer struct {
	*Names
	statement, mark string
	prefix          string
	count           int
}

func (n *namer) name(v string) string {
	if known := n.known[v]; known != "" {
		return known
	}
	if len(v) < longID || v[0] == '<' {
		return "<>"
	}
	if n.prefix == "" {
		label := n.label(n.statement) + n.mark
		n.series[label]++
		n.prefix = fmt.Sprint(label, n.series[label])
		if n.mark == "" {
			n.prefix = fmt.Sprint(label, ".", n.series[label])
		}
	}
	name := n.prefix
	if n.count > 0 {
		name += "bcdefghijklmnopqrstuvwxyz"[min(n.count, 25)-1:][:1]
	}
	if n.count > 25 {
		name += fmt.Sprint(n.count)
	}
	n.count++
	n.known[v] = "<" + name + ">"
	return n.known[v]
}

// Made names a value that a server has generated for a statement. If the value is too short to be recognized in texts,
// Made does not name it and returns true.
func (n *Names) Made(statement, value string) (short bool) {
	if len(value) < longID {
		return true
	}
	(&namer{Names: n, statement: statement, mark: ":"}).name(value)
	return false
}

// text replaces the values that differ between runs by their names.
func (n *namer) text(text string) string {
	text = n.replaced(text, n.name)
	if n.varying.isEmpty() {
		return text
	}
	return n.varying.mask(PlaceOf(n.statement, n.mark), text, n.name)
}

// Seen replaces the values in a text by their names. A value without a name becomes <>, so Seen gives no new names. It
// serves texts that only a run for a witness has: such a run must give the same names as any other.
func (n *Names) Seen(text string) string {
	return n.replaced(text, n.nameOf)
}

func (n *Names) nameOf(v string) string { return cmp.Or(n.known[v], "<>") }

// Known implements rows.Names.
func (n *Names) Known(value string) string { return n.known[value] }

// Masked implements rows.Names. It replaces the values in a statement as Shown does, but gives no new names.
func (n *Names) Masked(statement string) string {
	return n.varying.mask(PlaceOf(statement, ""), n.replaced(statement, n.nameOf), n.nameOf)
}

// replaced replaces each value that looks random by the result of the function `name`. It replaces known values by
// their names.
func (n *Names) replaced(text string, name func(string) string) string {
	if mayBeMoment(text) {
		text = Moment.ReplaceAllString(text, someTime)
	}
	if mayBeRandom(text) {
		text = Random.ReplaceAllStringFunc(text, func(v string) string {
			if IsClock(v) {
				return someTime
			}
			return name(v)
		})
	}
	return replaceKnown(text, n.known)
}

// Shown replaces the values in a command by their names, and names new values.
func (n *Names) Shown(command string) string {
	return (&namer{Names: n, statement: command}).text(command)
}

// Usual returns a command or an answer without the values that differ between runs. It also removes their names,
// because two runs may give the same value different names.
func (n *Names) Usual(text string) string { return appeared.ReplaceAllString(n.Shown(text), "<>") }

var appeared = regexp.MustCompile(named)

// Reply replaces the values in the answer to a buyer's request by their names.
func (n *Names) Reply(text string) string { return (&namer{Names: n, statement: "answer"}).text(text) }

// Answer replaces the values in the answer to a command by their names.
func (n *Names) Answer(command, answer string) string {
	return (&namer{Names: n, statement: command, mark: ":"}).text(answer)
}

// Of returns the name of a command, which is the same in every run.
func (n *Names) Of(text string) string { return n.OfShown(n.Shown(text)) }

// size matches the length of a text that was cut (effect.OneLine). If a value in the text has another length in each
// run, so has the text.
var size = regexp.MustCompile(`\.\.\. \(\d+ bytes\)`)

// OfShown works like Of, for a command that Shown has returned.
func (n *Names) OfShown(shown string) string {
	if strings.Contains(shown, "... (") {
		shown = size.ReplaceAllString(shown, "...")
	}
	if n.coarse {
		return number.ReplaceAllString(shown, "#")
	}
	return shown
}

// Blank removes the values that differ between runs from a command, with a name or without.
func (n *Names) Blank(text string) string {
	return n.varying.mask(PlaceOf(text, ""), Plain(text), func(string) string { return "<>" })
}

// Plain removes all times and random values from a command. The result is the same for two versions of a program.
func Plain(text string) string {
	return Random.ReplaceAllString(Moment.ReplaceAllString(text, "<>"), "<>")
}
