package app

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"

	"github.com/oversell/oversell/internal/nearest"
)

// keys returns the YAML keys of a struct, a nested key as PARENT.KEY.
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
	all := keys(reflect.TypeFor[file]())
	for i, key := range all {
		all[i] = key[strings.LastIndexByte(key, '.')+1:]
	}
	return fmt.Errorf("%s%w", line, nearest.Unknown("key", m[1], all, "shop explore --app-example"))
}
