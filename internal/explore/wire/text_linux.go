package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/oversell/oversell/internal/explore/effect"
)

// LongestText is how many characters of an answer people are shown.
const LongestText = 80

// Shown collects the rows of an answer for people, up to what they will see.
type Shown struct {
	parts []string
	width int
}

// Add adds a row, or what stands for one.
func (s *Shown) Add(row string) {
	if !s.Full() {
		s.parts = append(s.parts, row)
		s.width += len(row) + 2
	}
}

// Full reports whether people will not see a further row.
func (s *Shown) Full() bool { return s.width > LongestText }

// Only has row in the place of all rows, so that it is not cut off.
func (s *Shown) Only(row string) { *s = Shown{[]string{row}, len(row)} }

// Text returns the rows and what comes after them in one line.
func (s *Shown) Text(more ...string) string {
	return Shorten(strings.Join(append(s.parts[:len(s.parts):len(s.parts)], more...), "; "))
}

// Shorten makes a line of at most LongestText characters.
func Shorten(text string) string {
	all := []rune(effect.OneLine(text))
	if len(all) > LongestText {
		return string(all[:LongestText-3]) + "..."
	}
	return string(all)
}

// Readable returns a value for people and reports whether it is text. cut: the value may end
// within a character, which is left out.
func Readable(value string, cut bool) (string, bool) {
	for n := 0; cut && n < utf8.UTFMax && len(value) > 0 && !utf8.ValidString(value); n++ {
		value = value[:len(value)-1]
	}
	return value, utf8.ValidString(value) && !strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) })
}

// Cell returns column=value, with quotes around a value that is empty or has spaces.
func Cell(column, value string) string {
	if value == "" || strings.ContainsAny(value, " ;\t\r\n") {
		value = "'" + value + "'"
	}
	if column == "" {
		return value
	}
	return column + "=" + value
}
