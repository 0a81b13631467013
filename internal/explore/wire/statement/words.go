package statement

import (
	"slices"
	"strings"
)

// Words are the tokens of a text that is one statement: keywords and names in capitals,
// names in quotes, strings, numbers and signs as they were sent. Comments and semicolons
// are none. nil: there are several statements, or it is not understood, or it can be read
// in two ways.
func Words(sql string, d Dialect) (words []string) {
	for i, r := range readings(sql, d) {
		t, one := r.single()
		if !one {
			return nil
		}
		var read []string
		for _, token := range t {
			if token.kind == word {
				read = append(read, strings.ToUpper(token.text))
			} else {
				read = append(read, token.text)
			}
		}
		if i > 0 && !slices.Equal(words, read) {
			return nil
		}
		words = read
	}
	return words
}
