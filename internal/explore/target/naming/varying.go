package naming

import (
	"regexp"
	"slices"
	"strings"
)

// A Varying knows values that differ between two runs of the same buyer, but that Names does not recognize. Examples
// are nanoids and counters of the process. It learns their positions from two runs, see Learn. In a later text with the
// same words, the values in the same positions vary, too.
type Varying struct {
	shapes map[place][]shape
	Asked  []*regexp.Regexp // patterns of oversell.yaml
}

// A place is the kind of text from which a shape was learned. A shape applies only to texts of the same kind.
type place struct {
	statement string // the statement's verb and table
	answer    bool   // the text is the answer to the statement
}

// A shape is a text, as tokens, of which the varying ones are known.
type shape struct {
	tokens []string
	varies []bool
}

// named is a pattern for a name that Names gives.
const named = `<(?:[\w-]+[.:]\w+|time)?>`

// piece matches the tokens of a text: a name that Names gives, a word, or another character.
var piece = regexp.MustCompile(named + `|[A-Za-z0-9_-]+|(?s:.)`)

// literal is like piece, but takes a quoted string as one token. So strings that consist of different numbers of tokens
// can be compared.
var literal = regexp.MustCompile(`'(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|` + piece.String())

// word matches a token that stays the same in all runs: an identifier or a keyword.
var word = regexp.MustCompile(`^[A-Za-z_]+$`)

// Learn compares a text of one run with the corresponding text of another run. If they differ in more than values, a
// shape cannot describe the difference, and Learn returns false.
func (v *Varying) Learn(at place, one, other string) bool {
	if one == other {
		return true
	}
	for _, pattern := range []*regexp.Regexp{piece, literal} {
		a, b := pattern.FindAllString(one, -1), pattern.FindAllString(other, -1)
		if len(a) != len(b) {
			continue
		}
		s := shape{a, make([]bool, len(a))}
		masks := true
		for i := range a {
			s.varies[i] = a[i] != b[i]
			masks = masks && (!s.varies[i] || len(a[i]) > 1 || len(b[i]) > 1 || isDigit(a[i]) && isDigit(b[i]))
		}
		if !masks {
			continue
		}
		if v.shapes == nil {
			v.shapes = map[place][]shape{}
		}
		for _, known := range v.shapes[at] {
			if known.fits(a) && known.fits(b) {
				for i := range known.varies {
					known.varies[i] = known.varies[i] || s.varies[i]
				}
				return true
			}
		}
		v.shapes[at] = append(v.shapes[at], s)
		return true
	}
	return false
}

func isDigit(token string) bool { return len(token) == 1 && token[0] >= '0' && token[0] <= '9' }

// fits reports whether the tokens belong to the shape. Apart from the varying tokens, words and punctuation must be the
// same. Numbers may differ, since they belong to the shop's state.
func (s shape) fits(tokens []string) bool {
	if len(tokens) != len(s.tokens) {
		return false
	}
	for i, t := range tokens {
		same := s.tokens[i]
		switch {
		case s.varies[i], t == same, t[0] == '<' && len(t) > 1, same[0] == '<' && len(same) > 1:
		case len(t) == 1 && len(same) == 1 && !isDigit(t), word.MatchString(t), word.MatchString(same):
			return false
		}
	}
	return true
}

// isEmpty reports whether mask would change no text.
func (v *Varying) isEmpty() bool { return v == nil || len(v.Asked) == 0 && len(v.shapes) == 0 }

// mask replaces each varying value of a text by the result of the function `name`.
func (v *Varying) mask(at place, text string, name func(string) string) string {
	if v == nil {
		return text
	}
	for _, pattern := range v.Asked {
		text = pattern.ReplaceAllStringFunc(text, func(found string) string {
			if found == "" {
				return ""
			}
			return name(found)
		})
	}
	if len(v.shapes[at]) == 0 {
		return text
	}
	for _, pattern := range []*regexp.Regexp{piece, literal} {
		tokens := pattern.FindAllString(text, -1)
		found := slices.IndexFunc(v.shapes[at], func(s shape) bool { return s.fits(tokens) })
		if found < 0 {
			continue
		}
		for i, varies := range v.shapes[at][found].varies {
			if varies && !(len(tokens[i]) > 1 && tokens[i][0] == '<') {
				tokens[i] = name(tokens[i])
			}
		}
		return strings.Join(tokens, "")
	}
	return text
}
