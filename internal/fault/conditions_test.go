package fault

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/require"
)

//go:generate go test -run "TestConditions|TestFaultsPage" -update .

// TestConditions checks that internal/judge/promise declares the same faults as All. The catalogue makes its
// promises with those constants. It cannot import this package, which would add the faults' servers and proxies
// to its dependencies.
func TestConditions(t *testing.T) {
	want, err := format.Source(conditions(All()))
	require.NoError(t, err)
	golden.Compare(t, "../judge/promise/faults.go", string(want))
}

// TestFaultsPage: docs/reference/faults.md lists every condition.
func TestFaultsPage(t *testing.T) {
	golden.Compare(t, "../../docs/reference/faults.md", string(faultsPage(All())))
}

func faultsPage(all []Fault) []byte {
	var b bytes.Buffer
	b.WriteString(`<!-- make generate, from internal/fault and internal/judge/promise -->
# Faults: what happens to a shop under each condition

This page tells readers of a [matrix](matrix/README.md) what each column means.

A *condition* is the situation of a shop in one run: an exploration, many buyers at once, or a fault. Most cells
stop a buyer that holds the lock, inject the fault, let others buy, and let the first continue. A fault without effect gives the
verdict [inconclusive](verdicts.md).

## Explorations and runs without a fault

`)
	for _, c := range promise.Columns() {
		if about := promise.About(c); about != "" {
			fmt.Fprintf(&b, "- `%s`: %s\n", c, strings.Replace(about, "sold-out check", "[sold-out check](../design/sold-out-check.md)", 1))
		}
	}
	b.WriteString(`
## Faults

A fault with servers in brackets affects only strategies that use one of them. A flag in brackets, with
` + "`--engine local`" + `, starts the servers of the fault.

`)
	var inRush []string
	for _, f := range all {
		needs := strings.Join(asStrings(f.Needs), ", ")
		if f.On != "" {
			needs = "`--local-db " + f.On + "`"
		}
		if f.OnRedis != "" {
			needs = "`--local-redis " + f.OnRedis + "`"
		}
		if f.InRush != nil {
			inRush = append(inRush, "`"+string(f.Name)+"`")
		}
		if needs != "" {
			needs = " (" + needs + ")"
		}
		fmt.Fprintf(&b, "- `%s`: %s%s\n", f.Name, f.About, needs)
	}
	fmt.Fprintf(&b, `
## Inject one fault

`+"`./shop rush --strike FAULT`"+` injects one of these faults into a burst: %s. `+"`shop verify`"+` injects all. For example:

`+"```"+`console
$ ./shop rush --strategy redis --processes 2 --strike redis-restart
...
redis: 101~ units sold of 100 stocked...
redis-restart took effect on redis (...): Redis came back without 1~ key of the product; others bought 79~ units while a buyer was stopped before its write.
`+"```"+`

`+"`./shop verify --engine local --strategy redis --fault pause`"+` runs one [cell](glossary.md#cell) of the matrix. `+"`make servers`"+` installs the servers for this, `+"`tools/install-servers.sh soak`"+` those for all faults.
`, strings.Join(inRush, ", "))
	return b.Bytes()
}

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

// The faults. Each affects one of two processes, or the servers of both.
const (
%s)

// Faults lists the faults in display order.
func Faults() []Condition {
	return []Condition{
%s	}
}

// Struck lists the servers that a condition affects: a strategy that needs none of
// them does not notice it. Nil: it affects every strategy.
func Struck(c Condition) []string {
	switch c {
%s	}
	return nil
}

// On returns the dialect of the databases that a condition affects; "": every one.
func On(c Condition) string {
	switch c {
%s	}
	return ""
}

// OnRedis returns the topology of the Redis that a condition affects; "": every one.
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
