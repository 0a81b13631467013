// Package plural writes nouns in the singular or the plural.
package plural

import "fmt"

// Count returns a number with its noun: "1 buyer", "2 buyers". The plural of the noun must end in "s".
func Count[N int | int64](n N, noun string) string {
	return fmt.Sprintf("%d %s", n, Word(n, noun, noun+"s"))
}

// Word returns the text for the number n: `singular` for 1, and otherwise `plural`.
func Word[N int | int64](n N, singular, plural string) string {
	if n == 1 {
		return singular
	}
	return plural
}
