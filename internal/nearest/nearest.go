// Package nearest builds the error for a name that is not in a list.
package nearest

import (
	"errors"
	"fmt"
	"strings"
)

// maxChoices is the maximum length of a list that an error shows.
const maxChoices = 10

// Unknown returns the error for a name that is not among the known ones, for example
//
//	unknown strategy "rediss" (did you mean "redis"?); list them with: shop strategies
//
// The parameter `command` is a command that prints the known names. If it is "", the error contains a
// short list itself.
func Unknown[K ~string](kind, name string, known []K, command string) error {
	text := fmt.Sprintf("unknown %s %q", kind, name)
	if near := To(name, known); near != "" {
		text += fmt.Sprintf(" (did you mean %q?)", near)
	}
	if command != "" {
		return fmt.Errorf("%s; list them with: %s", text, command)
	}
	if len(known) > maxChoices {
		return errors.New(text)
	}
	choices := make([]string, len(known))
	for i, k := range known {
		choices[i] = string(k)
	}
	return fmt.Errorf("%s; choose from: %s", text, strings.Join(choices, ", "))
}

// To returns the known name that differs from name by at most two letters, or that begins with it.
// It returns "" if there is none.
func To[K ~string](name string, known []K) (best K) {
	name = strings.ToLower(name)
	least := min(3, len(name)) // a name of one or two letters must share a letter
	for _, k := range known {
		d := distance(name, string(k))
		if strings.HasPrefix(string(k), name) {
			d = min(d, 2)
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// distance returns the Levenshtein distance: the number of bytes to insert, delete or replace.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			before, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, before+cost)
		}
	}
	return row[len(b)]
}
