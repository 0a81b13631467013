package app

import (
	"strings"
	"testing"
)

// FuzzParse: parse accepts any text, or refuses it in one line.
func FuzzParse(f *testing.F) {
	f.Add(sound)
	f.Add(Example())
	f.Add("run: [a, b]\nattach: {}\nbuyers: -1\n")
	f.Add("buyer: [ { method: POST } ]\nenv: { a: [1] }\n")
	f.Fuzz(func(t *testing.T, text string) {
		a, err := parse([]byte(text), "/dir")
		if (a == nil) == (err == nil) {
			t.Fatalf("%v, %v", a, err)
		}
		if err != nil && (strings.ContainsAny(err.Error(), "\r\n") || !strings.HasPrefix(err.Error(), ":")) {
			t.Errorf("%q", err.Error())
		}
	})
}
