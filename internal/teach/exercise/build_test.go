package exercise

import (
	"errors"
	"testing"
)

// TestCompiler: a learner sees the compiler's lines about its own files, and nothing about the
// judge.
func TestCompiler(t *testing.T) {
	for _, c := range []struct{ name, out, want string }{
		{"a slip", "# learner.example/token\n./shop.go:3:8: undefined: left\n", "shop.go:3:8: undefined: left"},
		{"no New", "# learner.example/token/oversell-judge\n/tmp/shop-exercise-27/main.go:11:18: undefined: code0.New\n", "New is missing, or is another function: func New(kit kata.Kit) kata.Strategy"},
		{
			"another New", "# x/oversell-judge\noversell-judge/main.go:11:11: cannot use code0.New (value of type func()) as judge.New value in map literal\n",
			"New is missing, or is another function: func New(kit kata.Kit) kata.Strategy",
		},
		{"a program", "/tmp/shop-exercise-27/main.go:6:2: import \"x\" is a program, not an importable package\n", `import "x" is a program, not an importable package`},
		{"an import", "shop.go:4:2: package sinc is not in std (/usr/local/go/src/sinc)\n", "shop.go:4:2: package sinc is not in std (/usr/local/go/src/sinc)"},
		{"nothing", "", "exit status 1"},
	} {
		if got := compiler(c.out, errors.New("exit status 1")); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestEnding: the reason why a process has ended by itself is one line.
func TestEnding(t *testing.T) {
	const stack = "panic: oh\n\ngoroutine 7 [running]:\nruntime.x()\n\t/go/x.go:1 +0x1\nlearner.example/token.(*shop).Buy(0x1)\n\t/home/me/first/shop.go:17 +0x2c\n"
	for said, want := range map[string]string{
		stack:                                 "panic: oh, at shop.go:17",
		"fatal error: all goroutines sleep\n": "fatal error: all goroutines sleep",
		"":                                    "the code ends the whole process, where Buy should return",
	} {
		if got := ending(said, "learner.example/token"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestBuiltFrom finds the sources of this program, so that an exercise in any folder is compiled
// with them.
func TestBuiltFrom(t *testing.T) {
	if folder := builtFrom(); !isModule(folder) {
		t.Errorf("%q is not the folder of the module", folder)
	}
}
