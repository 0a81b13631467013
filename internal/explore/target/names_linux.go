package target

import (
	"fmt"
	"regexp"
)

// random are values that are others in each run: UUIDs, long hexadecimal numbers, times,
// numbers from ten digits on, fractions such as a random number's.
var random = regexp.MustCompile(`[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}` +
	`|\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?` +
	`|\b[0-9a-fA-F]{16,}\b|\b\d{10,}(?:\.\d+)?\b|\b0?\.\d{6,}\b`)

// number is a whole number as a word of its own.
var number = regexp.MustCompile(`\b\d+\b`)

// longID is from where on a number that the server made up is known again by itself: a
// smaller one may be the id of an item, a quantity, a year.
const longID = 4

// names calls values that differ between runs by the order in which they turn up.
type names struct {
	known  map[string]string
	coarse bool // numbers that the server makes up are as short as others: no number is part of a name
}

func newNames(coarse bool) *names { return &names{map[string]string{}, coarse} }

// made notes a value that a server has made up.
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

// shown is a text with its random values named.
func (n *names) shown(text string) string {
	text = random.ReplaceAllStringFunc(text, n.name)
	return number.ReplaceAllStringFunc(text, func(v string) string {
		if name, ok := n.known[v]; ok {
			return name
		}
		return v
	})
}

// of is what a command is called in every run.
func (n *names) of(text string) string {
	text = n.shown(text)
	if n.coarse {
		return number.ReplaceAllString(text, "#")
	}
	return text
}

// longestName is of a command that a result names, in characters.
const longestName = 120

// short is a command for a line with others.
func short(text string) string {
	if all := []rune(text); len(all) > longestName {
		return string(all[:longestName]) + "…"
	}
	return text
}

// plain is a command without any such value: the same in two versions of a program.
func plain(text string) string { return random.ReplaceAllString(text, "<>") }
