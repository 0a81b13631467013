// Package naming gives values that differ between runs, such as tokens, times and generated ids, names that
// are the same in every run. Two runs of a schedule then have the same texts, although the program's values
// differ.
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

// Random matches values that differ in each run: UUIDs, long hexadecimal numbers, ULIDs, numbers with ten
// digits or more, and fractions such as random numbers. mayBeRandom must return true for each of them.
var Random = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` +
	`|\b[0-9a-fA-F]{16,}\b|[0-7][0-9A-HJKMNP-TV-Z]{25}\b|\b\d{10,}(?:\.\d+)?\b|\b0?\.\d{6,}\b`)

// Moment matches a time. Two times that are equal in one run may differ in another, so all times have the same name.
var Moment = regexp.MustCompile(`\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?`)

// someTime is the name of every time.
const someTime = "<time>"

// number matches a whole number that is a word of its own.
var number = regexp.MustCompile(`\b\d+\b`)

// longID is the minimum length of a server-generated value that is recognized in texts. A shorter one may be an item's
// id, a quantity or a year.
const longID = 4

// Names names the values that differ between the runs of a schedule. It belongs to one run and serves one
// goroutine. The name of a value says in which statement it appeared first: <orders.2> appeared in the second
// statement on orders that had a new value. So an additional value in one run does not change the names of
// values of other statements.
type Names struct {
	varying *Varying
	known   map[string]string // names by value
	owners  map[string]string // skeletons of statements by label
	series  map[string]int    // by label: the number of statements with new values
	coarse  bool              // generated numbers are as short as other numbers, so no command's name contains a number
}

// New returns names that also mask the values that v knows. If coarse is true, the names of commands contain no
// numbers.
func New(v *Varying, coarse bool) *Names {
	return &Names{varying: v, known: map[string]string{}, owners: map[string]string{}, series: map[string]int{}, coarse: coarse}
}

var table = regexp.MustCompile("(?i)\\b(?:INTO|UPDATE|FROM|TABLE|CALL)\\s+(?:ONLY\\s+)?(?:[\"`]?\\w+[\"`]?\\.)?[\"`]?(\\w+)")

// label returns the first part of the names of a statement's values: its table, or its first word. Two different
// statements on one table have different labels.
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

// PlaceOf returns the place of a statement or, with the mark ":", of its answer.
func PlaceOf(statement, mark string) place {
	at := place{statement: strings.ToUpper(firstWord.FindString(statement)), answer: mark != ""}
	if m := table.FindStringSubmatch(statement); m != nil {
		at.statement += " " + m[1]
	}
	return at
}

// IsClock reports whether a number is the current time in seconds, milliseconds, microseconds or
// nanoseconds.
func IsClock(text string) bool {
	number, err := strconv.ParseFloat(text, 64)
	for unit := 1.0; err == nil && unit <= 1e9; unit *= 1000 {
		if math.Abs(number/unit-float64(time.Now().Unix())) < clockSkew.Seconds() {
			return true
		}
	}
	return false
}

// clockSkew is the distance from now within which a number counts as a time, such as the end of a session.
const clockSkew = 24 * time.Hour

// A namer names the new values of one text: <orders.2>, then <orders.2b>. If the text is an answer to the statement,
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

// Made records a value that a server has generated for a statement. It returns true if the value is too short
// to be recognized in texts.
func (n *Names) Made(statement, value string) (short bool) {
	if len(value) < longID {
		return true
	}
	(&namer{Names: n, statement: statement, mark: ":"}).name(value)
	return false
}

// text replaces the values that differ between runs.
func (n *namer) text(text string) string {
	text = n.replaced(text, n.name)
	if n.varying.isEmpty() {
		return text
	}
	return n.varying.mask(PlaceOf(n.statement, n.mark), text, n.name)
}

// Seen replaces the values in a text by their names, and names no new ones, so that an observed run numbers
// its values like any other run. A value without a name becomes <>.
func (n *Names) Seen(text string) string {
	return n.replaced(text, n.nameOf)
}

func (n *Names) nameOf(v string) string { return cmp.Or(n.known[v], "<>") }

// Known implements rows.Names.
func (n *Names) Known(value string) string { return n.known[value] }

// Masked implements rows.Names. It replaces the values in a statement like Shown, without naming new ones.
func (n *Names) Masked(statement string) string {
	return n.varying.mask(PlaceOf(statement, ""), n.replaced(statement, n.nameOf), n.nameOf)
}

// replaced replaces each value that looks random by the result of name, and each known value by its name.
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

// Shown replaces the values in a command by their names.
func (n *Names) Shown(command string) string {
	return (&namer{Names: n, statement: command}).text(command)
}

// Usual returns a command or an answer without the values that differ between runs. Two runs may give the
// same value different names, so the names are removed, too.
func (n *Names) Usual(text string) string { return appeared.ReplaceAllString(n.Shown(text), "<>") }

var appeared = regexp.MustCompile(named)

// Reply replaces the values in the answer to a buyer.
func (n *Names) Reply(text string) string { return (&namer{Names: n, statement: "answer"}).text(text) }

// Answer replaces the values in an answer to a command.
func (n *Names) Answer(command, answer string) string {
	return (&namer{Names: n, statement: command, mark: ":"}).text(answer)
}

// Of returns the name of a command, which is the same in every run.
func (n *Names) Of(text string) string { return n.OfShown(n.Shown(text)) }

// size matches the length of a text that was cut, see effect.OneLine. The length differs between runs if a value in the
// text does.
var size = regexp.MustCompile(`\.\.\. \(\d+ bytes\)`)

// OfShown is Of for a command that Shown has returned.
func (n *Names) OfShown(shown string) string {
	if strings.Contains(shown, "... (") {
		shown = size.ReplaceAllString(shown, "...")
	}
	if n.coarse {
		return number.ReplaceAllString(shown, "#")
	}
	return shown
}

// Blank removes the values from a command, named or not.
func (n *Names) Blank(text string) string {
	return n.varying.mask(PlaceOf(text, ""), Plain(text), func(string) string { return "<>" })
}

// Plain removes all times and random values from a command, so that it is the same in two versions of a program.
func Plain(text string) string {
	return Random.ReplaceAllString(Moment.ReplaceAllString(text, "<>"), "<>")
}
