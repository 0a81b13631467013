package prose

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

const maxSentenceWords = 35

// A finding is one breach of a rule.
type finding struct {
	file string
	line int
	rule string
	text string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", f.file, f.line, f.rule, f.text)
}

// A paragraph is running text, a list item, a table cell or a heading, with code in backquotes.
type paragraph struct {
	line    int // line number of the first character of text
	text    string
	heading bool // "What a report contains" is a title, not a sentence
}

var (
	quoted    = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|“[^”]+”")
	shortened = regexp.MustCompile(`(^|[\s(])(e\.g|i\.e|etc|vs|cf|approx)\.$|\.\.\.$`)
	ending    = regexp.MustCompile(`[.!?]["')\]*_]*\s`)
	subject   = regexp.MustCompile(`(?i)^\W*(who|whoever|what)\s`)
	avoided   = regexp.MustCompile(`(?i)\b(nobody|somebody|but\s+for|in\s+vain|comes\s+to)\b`)
)

func (p paragraph) check(file string) []finding {
	var found []finding
	report := func(start int, rule, text string) {
		line := p.line + strings.Count(p.text[:start], "\n")
		found = append(found, finding{file, line, rule, strings.Join(strings.Fields(text), " ")})
	}
	masked := mask(p.text)
	for start := 0; start < len(masked); {
		end := start + sentenceLength(masked[start:])
		sentence, original := strings.TrimSpace(masked[start:end]), p.text[start:end]
		start += len(masked[start:end]) - len(strings.TrimLeft(masked[start:end], " \t\n"))
		if !p.heading && subject.MatchString(sentence) && !strings.HasSuffix(sentence, "?") {
			report(start, "subject", original)
		}
		if avoided.MatchString(sentence) {
			report(start, "word", original)
		}
		if n := wordCount(sentence); n > maxSentenceWords {
			report(start, "long", fmt.Sprintf("%d words: %s", n, original))
		}
		start = end
	}
	return found
}

// mask replaces each byte of code and quotations by an underscore, so that these do not count as words.
// Offsets in the text stay valid.
func mask(text string) string {
	return quoted.ReplaceAllStringFunc(text, func(s string) string {
		return strings.Repeat("_", len(s)-strings.Count(s, "\n")) + strings.Repeat("\n", strings.Count(s, "\n"))
	})
}

// sentenceLength returns the length of the first sentence in text.
func sentenceLength(text string) int {
	for from := 0; ; {
		at := ending.FindStringIndex(text[from:])
		if at == nil {
			return len(text)
		}
		stop := from + at[0] + 1
		from += at[1]
		if !shortened.MatchString(text[:stop]) {
			return from
		}
	}
}

// wordCount counts the words that have a letter or a digit.
func wordCount(sentence string) int {
	n := 0
	for _, word := range strings.Fields(sentence) {
		if strings.ContainsFunc(word, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}
