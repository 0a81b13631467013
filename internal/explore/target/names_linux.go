package target

import (
	"fmt"
	"regexp"
)

// random matches values that differ in each run: UUIDs, long hexadecimal numbers, times, numbers with
// ten digits or more, and fractions such as random numbers.
var random = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` +
	`|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?` +
	`|\b[0-9a-fA-F]{16,}\b|\b\d{10,}(?:\.\d+)?\b|\b0?\.\d{6,}\b`)

// number matches a whole number that is a word of its own.
var number = regexp.MustCompile(`\b\d+\b`)

// longID is the length from which a number that the server generated is recognized in texts. A shorter
// one may be the id of an item, a quantity or a year.
const longID = 4

// names names values that differ between runs by their order of appearance.
type names struct {
	known  map[string]string
	coarse bool // generated numbers are as short as others, so no number is part of a name
}

func newNames(coarse bool) *names { return &names{map[string]string{}, coarse} }

// made records a value that a server has generated.
func (n *names) made(value string) {
	if len(value) >= longID {
		n.name(value)
	}
}

func (n *names) name(value string) string {
	if n.known[value] == "" {
		n.known[value] = fmt.Sprintf("<%d>", len(n.known)+1)
	}
	return n.known[value]
}

// shown replaces the random values in a text by their names.
func (n *names) shown(text string) string {
	text = random.ReplaceAllStringFunc(text, n.name)
	return number.ReplaceAllStringFunc(text, func(v string) string {
		if name, ok := n.known[v]; ok {
			return name
		}
		return v
	})
}

// of returns the name of a command, which is the same in every run.
func (n *names) of(text string) string {
	text = n.shown(text)
	if n.coarse {
		return number.ReplaceAllString(text, "#")
	}
	return text
}

// plain removes all such values from a command, so that it is the same in two versions of a program.
func plain(text string) string { return random.ReplaceAllString(text, "<>") }
