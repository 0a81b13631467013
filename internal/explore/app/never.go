package app

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
)

// Told counts the buyers by what the program answered them.
type Told struct {
	Sold   int // were told that they have bought
	Failed int // got a failure, or no answer
}

// A Finding is what a query of never has returned.
type Finding struct {
	Query   string // as the file has it
	Answers bool   // the query asks about answers, so it means nothing before every buyer has come
	Columns []string
	Rows    [][]string // the first ten
}

// mostRows are kept of a finding.
const mostRows = 10

// Never asks all queries of never, and returns those that have a row. t has the numbers that
// stand for :sold and :failed.
func (s *Servers) Never(ctx context.Context, t Told) (found []Finding, _ error) {
	for _, query := range s.app.Never {
		protocol, text, err := s.app.addressed(query)
		if err != nil {
			return nil, err
		}
		f := Finding{Query: query}
		text, f.Answers = t.in(protocol, text)
		if f.Columns, f.Rows, err = rows(ctx, s.databases[protocol], text, mostRows); err != nil {
			return nil, fmt.Errorf("never: %s: %w", query, err)
		}
		if len(f.Rows) > 0 {
			found = append(found, f)
		}
	}
	return found, nil
}

// countOrQuoted is :sold or :failed, or where neither is one: a text, a name in quotes, a
// comment, a cast.
var countOrQuoted = map[string]*regexp.Regexp{
	"mysql":    regexp.MustCompile("(?s)'(?:[^'\\\\]|\\\\.)*'|\"(?:[^\"\\\\]|\\\\.)*\"|`[^`]*`|--\\s[^\n]*|#[^\n]*|/\\*.*?\\*/|:(?:sold|failed)\\b"),
	"postgres": regexp.MustCompile(`(?s)\b[eE]'(?:[^'\\]|\\.)*'|'[^']*'|"[^"]*"|--[^\n]*|/\*.*?\*/|::\w+|:(?:sold|failed)\b`),
}

// in puts the numbers into a query, and reports whether the query has a place for one. A text
// or a comment has none.
func (t Told) in(protocol, query string) (text string, asked bool) {
	numbers := map[string]int{":sold": t.Sold, ":failed": t.Failed}
	text = countOrQuoted[protocol].ReplaceAllStringFunc(query, func(found string) string {
		number, counts := numbers[found]
		if !counts {
			return found
		}
		asked = true
		return strconv.Itoa(number)
	})
	return text, asked
}
