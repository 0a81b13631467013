package app

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
)

// keys returns the YAML keys of a struct, each nested one as PARENT.KEY.
func keys(t reflect.Type) (all []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		name := field.Tag.Get("yaml")
		all = append(all, name)
		inner := field.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			for _, key := range keys(inner) {
				all = append(all, name+"."+key)
			}
		}
	}
	return all
}

// place and unknown match the messages of the YAML library.
var (
	place   = regexp.MustCompile(`^\[(\d+):\d+\] (.*)`)
	unknown = regexp.MustCompile(`unknown field "(.*)"`)
)

// wrong turns an error of the YAML library into one line.
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
	return fmt.Errorf("%sunknown key %q; shop explore --app-example lists the keys", line, m[1])
}

// nearest returns the known key with the least edit distance, if that is at most 2, or else "".
func nearest(key string) (best string) {
	least := 3
	for _, k := range keys(reflect.TypeFor[file]()) {
		k = k[strings.LastIndexByte(k, '.')+1:]
		if d := distance(key, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance returns the Levenshtein distance of two keys.
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
