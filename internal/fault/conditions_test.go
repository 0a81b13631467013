package fault

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"os"
	"strings"
	"testing"
)

//go:generate go test -run TestConditions -update .

var update = flag.Bool("update", false, "write internal/judge/promise/faults.go")

// TestConditions checks that internal/judge/promise has the same faults as All. The catalogue makes
// its promises with those constants. It cannot import this package, which would add the faults'
// servers and proxies to its dependencies.
func TestConditions(t *testing.T) {
	const file = "../judge/promise/faults.go"
	want, err := format.Source(conditions(All()))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the faults say (%v): run make generate", file, err)
	}
}

// conditions returns the Go code that declares the faults.
func conditions(all []Fault) []byte {
	var constants, list, struck, on, onRedis bytes.Buffer
	for _, f := range all {
		name := constant(string(f.Name))
		fmt.Fprintf(&constants, "\t%s Condition = %q // %s\n", name, f.Name, f.About)
		fmt.Fprintf(&list, "\t\t%s,\n", name)
		if len(f.Needs) > 0 {
			fmt.Fprintf(&struck, "\tcase %s:\n\t\treturn %#v\n", name, asStrings(f.Needs))
		}
		if f.On != "" {
			fmt.Fprintf(&on, "\tcase %s:\n\t\treturn %q\n", name, f.On)
		}
		if f.OnRedis != "" {
			fmt.Fprintf(&onRedis, "\tcase %s:\n\t\treturn %q\n", name, f.OnRedis)
		}
	}
	return fmt.Appendf(nil, `// Code generated from fault.All by make generate; DO NOT EDIT.

package promise

// The faults. Each strikes one of two processes, or the servers of both.
const (
%s)

// Faults lists the faults in display order.
func Faults() []Condition {
	return []Condition{
%s	}
}

// Struck lists the servers that a condition strikes: a strategy that needs none of
// them does not notice it. Nil: it strikes every strategy.
func Struck(c Condition) []string {
	switch c {
%s	}
	return nil
}

// On is the dialect of the databases that a condition strikes; "": every one.
func On(c Condition) string {
	switch c {
%s	}
	return ""
}

// OnRedis is the topology of the Redis that a condition strikes; "": every one.
func OnRedis(c Condition) string {
	switch c {
%s	}
	return ""
}
`, &constants, &list, &struck, &on, &onRedis)
}

// constant returns the Go name of a condition: DBKill for db-kill.
func constant(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "-") {
		if word == "db" {
			word = "DB"
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func asStrings[S ~string](all []S) []string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = string(s)
	}
	return texts
}
