package app

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Placeholder marks a value of a drafted file that its owner must replace. Load rejects a file that
// still contains one in a value; comments may contain it.
const Placeholder = "FILL_IN"

// GuessMark begins the comment behind a drafted value that may be wrong. The explorer uses such a value
// nevertheless.
const GuessMark = "# GUESS"

// A marked is a key of a file, with the line numbers of its marked values.
type marked struct {
	key   string
	lines []string
}

func add(all []marked, key string, line int) []marked {
	i := slices.IndexFunc(all, func(m marked) bool { return m.key == key })
	if i < 0 {
		return append(all, marked{key, []string{strconv.Itoa(line)}})
	}
	if number := strconv.Itoa(line); !slices.Contains(all[i].lines, number) {
		all[i].lines = append(all[i].lines, number)
	}
	return all
}

// text returns the key for people: "run (line 3)", "never (lines 7, 8)".
func (m marked) text() string {
	if len(m.lines) == 1 {
		return fmt.Sprintf("%s (line %s)", m.key, m.lines[0])
	}
	return fmt.Sprintf("%s (lines %s)", m.key, strings.Join(m.lines, ", "))
}

func markedTexts(all []marked) (texts []string) {
	for _, m := range all {
		texts = append(texts, m.text())
	}
	return texts
}

// open collects the values of a file that contain Placeholder.
type open struct {
	line int // line of the first value
	keys []marked
}

// Visit implements ast.Visitor.
func (o *open) Visit(n ast.Node) ast.Visitor {
	value, text := n.(*ast.StringNode)
	literal, block := n.(*ast.LiteralNode)
	if block {
		value, text = literal.Value, true
	}
	if !text || !strings.Contains(value.Value, Placeholder) {
		return o
	}
	line := n.GetToken().Position.Line
	if o.line == 0 {
		o.line = line
	}
	key := index.ReplaceAllString(strings.TrimPrefix(n.GetPath(), "$."), "")
	o.keys = add(o.keys, key, line)
	return o
}

var index = regexp.MustCompile(`\[\d+\]`)

// placeholders returns the keys of the values with Placeholder, each with its line, and the first of
// these lines.
func placeholders(text []byte) (names []string, line int, _ error) {
	tree, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, 0, wrong(err)
	}
	var o open
	for _, doc := range tree.Docs {
		if doc.Body != nil {
			ast.Walk(&o, doc.Body)
		}
	}
	return markedTexts(o.keys), o.line, nil
}

// unfilled returns an error that names every value with Placeholder, or nil. It begins with ":LINE: ".
func unfilled(text []byte) error {
	names, line, err := placeholders(text)
	if err != nil || names == nil {
		return err
	}
	return fmt.Errorf(":%d: replace %s in %s; the comments say by what", line, Placeholder, strings.Join(names, ", "))
}

// Marks returns the keys of a drafted file with values that may be wrong, and those with values that
// the owner must replace. Each key comes with its lines: "run (line 3)".
func Marks(text []byte) (guessed, missing []string, err error) {
	missing, _, err = placeholders(text)
	return guesses(text), missing, err
}

var (
	topKey   = regexp.MustCompile(`^([a-z-]+):`)
	innerKey = regexp.MustCompile(`^\s+([A-Za-z_][\w.-]*):\s`)
)

// guesses returns the keys with a GuessMark behind the value, each with its line: "run (line 3)".
func guesses(text []byte) []string {
	var all []marked
	top := ""
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		if m := topKey.FindStringSubmatch(line); m != nil {
			top = m[1]
		}
		name := top
		if m := innerKey.FindStringSubmatch(line); m != nil {
			name += "." + m[1]
		}
		if before, _, marked := strings.Cut(line, GuessMark); marked && strings.TrimSpace(before) != "" && before[0] != '#' {
			all = add(all, name, number)
		}
	}
	return markedTexts(all)
}
