package app

import (
	"fmt"
	"regexp"
	"strings"
)

// known are the keys of a file, for an error.
var known = []string{
	"name", "run", "shared", "attach", "ready", "ready-within", "env", "mysql", "postgres", "redis", "local", "schema",
	"buyers", "buyer", "reset", "sold", "atomic", "pauses", "never", "watch", "sql", "pid", "gates",
}

// place and unknown are in what the YAML library says.
var (
	place   = regexp.MustCompile(`^\[(\d+):\d+\] (.*)`)
	unknown = regexp.MustCompile(`unknown field "(.*)"`)
)

// wrong is one line of what the YAML library says.
func wrong(err error) error {
	first, _, _ := strings.Cut(err.Error(), "\n")
	line := ": "
	if m := place.FindStringSubmatch(first); m != nil {
		line, first = ":"+m[1]+": ", m[2]
	}
	m := unknown.FindStringSubmatch(first)
	if m == nil {
		return fmt.Errorf("%s%s; "+seeExample, line, first)
	}
	if near := nearest(m[1]); near != "" {
		return fmt.Errorf("%sunknown key %q; did you mean %s?", line, m[1], near)
	}
	return fmt.Errorf("%sunknown key %q; shop explore --app-example has all there are", line, m[1])
}

// nearest is the key that is at most two letters away; "" if none is.
func nearest(key string) (best string) {
	least := 3
	for _, k := range known {
		if d := distance(key, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is Levenshtein's.
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
