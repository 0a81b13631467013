package target

import (
	"fmt"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/target/gates"
)

// TestTokens: each command of a buyer at the gates has its own token. With letters, a command keeps its token, and no
// command gets the letter of one at its server. A timer's command gets one of the last letters.
func TestTokens(t *testing.T) {
	x, address := testRunner(t, &app.App{})
	fmt.Fprintln(dial(t, address), "SELECT 1")
	command := when(t, x.programs.Gates, func(now gates.Commands) bool { return len(now.Fresh) > 0 }).Fresh[0].Command
	ops := func(n int, o gates.Op) (all []*gates.Op) {
		for range n {
			one := o
			one.Command = command
			all = append(all, &one)
		}
		return all
	}
	ours, lettered, timed, others := gates.Op{Buyer: 1}, gates.Op{Buyer: 1, Letter: 'b'}, gates.Op{Buyer: 1, Timed: true}, gates.Op{Buyer: 2}
	const tooMany = "a buyer has more than 17 commands at the gates"
	for name, c := range map[string]struct {
		letters      bool
		flying, held []*gates.Op
		want         string
	}{
		"one":                       {held: ops(1, ours), want: "1"},
		"several":                   {held: ops(3, ours), want: "1a 1b 1c"},
		"and a timer's":             {held: append(ops(1, ours), ops(2, timed)...), want: "1 1p 1q"},
		"17":                        {held: append(ops(15, ours), ops(2, timed)...), want: "1a 1b 1c 1d 1e 1f 1g 1h 1i 1j 1k 1l 1m 1n 1o 1p 1q"},
		"18":                        {held: append(ops(16, ours), ops(2, timed)...), want: tooMany},
		"letters: one":              {letters: true, held: ops(1, ours), want: "1a"},
		"letters: a new one":        {letters: true, held: append(ops(1, lettered), ops(2, ours)...), want: "1b 1a 1c"},
		"letters: one is flying":    {letters: true, flying: ops(1, lettered), held: ops(2, ours), want: "1a 1c"},
		"letters: another buyer's":  {letters: true, flying: ops(1, gates.Op{Buyer: 2, Letter: 'a'}), held: append(ops(1, ours), ops(1, others)...), want: "1a"},
		"letters: and a timer's":    {letters: true, held: append(ops(1, ours), ops(1, timed)...), want: "1a 1q"},
		"letters: the last is free": {letters: true, flying: distinct(ops(16, ours)), held: ops(1, ours), want: "1q"},
		"letters: a timer's last":   {letters: true, flying: distinct(ops(16, ours)), held: append(ops(1, ours), ops(1, timed)...), want: tooMany},
		"letters: none is free":     {letters: true, flying: distinct(ops(9, ours)), held: ops(10, ours), want: tooMany},
	} {
		r := &choices{letters: c.letters}
		r.letter(c.held, append(c.flying, c.held...))
		moves, err := movesOf(&client.Buyer{ID: 1}, c.held)
		var tokens []string
		for _, m := range moves {
			tokens = append(tokens, m.Token)
		}
		if void, is := schedule.AsVoid(err); is {
			tokens = []string{void.Why}
		}
		expect.Equal(t, strings.Join(tokens, " "), c.want, name)
	}
}

// distinct gives each command a letter of its own.
func distinct(all []*gates.Op) []*gates.Op {
	for i, o := range all {
		o.Letter = 'a' + rune(i)
	}
	return all
}
