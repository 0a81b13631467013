package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/witness"
)

// LongestText is the maximum length of a shown answer, in characters.
const LongestText = 80

// Shown collects the rows of an answer that are shown to people.
type Shown struct {
	parts []string
	width int
	rows  [][]witness.Cell
}

// Add adds a row or a placeholder.
func (s *Shown) Add(row string) {
	if !s.Full() {
		s.parts = append(s.parts, row)
		s.width += len(row) + 2
	}
}

// Row adds a row of the server.
func (s *Shown) Row(row []witness.Cell) {
	if s.Full() {
		return
	}
	var cells []string
	for _, c := range row {
		cells = append(cells, c.String())
	}
	s.Add(strings.Join(cells, " "))
	s.rows = append(s.rows, row)
}

// Rows returns the rows that Row has added.
func (s *Shown) Rows() [][]witness.Cell { return s.rows }

// Full reports whether the text has reached its limit, so that another row would not be shown.
func (s *Shown) Full() bool { return s.width > LongestText }

// Only replaces all rows by the given row.
func (s *Shown) Only(row string) { *s = Shown{parts: []string{row}, width: len(row)} }

// Text returns the rows, and then the texts in `more`, in one line.
func (s *Shown) Text(more ...string) string { return Shorten(s.Whole(more...)) }

// Whole returns the same line as Text, without a limit.
func (s *Shown) Whole(more ...string) string {
	return effect.OneLine(strings.Join(append(s.parts[:len(s.parts):len(s.parts)], more...), "; "))
}

// Shorten cuts a line to LongestText characters.
func Shorten(text string) string {
	all := []rune(effect.OneLine(text))
	if len(all) > LongestText {
		return string(all[:LongestText-3]) + "..."
	}
	return string(all)
}

// Readable returns a value for people and reports whether it is text. If `cut` is true, the value may
// end within a character, and Readable omits that character.
func Readable(value string, cut bool) (string, bool) {
	for n := 0; cut && n < utf8.UTFMax && len(value) > 0 && !utf8.ValidString(value); n++ {
		value = value[:len(value)-1]
	}
	return value, utf8.ValidString(value) && !strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}
