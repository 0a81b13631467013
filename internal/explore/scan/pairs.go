package scan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/target"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// A Request is a request of the scan, and what it did alone.
type Request struct {
	Name     string   `json:"name"`
	Line     string   `json:"request"` // METHOD URL
	Answer   string   `json:"answer"`  // "" if there is none
	Commands int      `json:"commands"`
	Reads    []string `json:"reads"` // tables and keys, with those that it locks
	Writes   []string `json:"writes"`
	Problem  string   `json:"problem,omitempty"` // why not all of its pairs are explored, and what to do
	NotRun   bool     `json:"not_run,omitempty"` // the budget was spent before its turn

	request app.Request
	uses    target.Footprint
	ignored target.Footprint // of the commands that the file ignores
	usable  bool             // a pair with it can be explored
	refused bool             // alone it is refused, so not all that it uses is known
}

// A Pair is two requests at once, from two buyers.
type Pair struct {
	Requests   [2]string       `json:"requests"`
	Conflicts  []string        `json:"conflicts"` // tables and keys that one writes or locks, and the other uses
	LeftOut    bool            `json:"left_out"`
	NotRun     bool            `json:"not_run,omitempty"` // the scan ended before its turn
	Verdict    verdict.Verdict `json:"verdict"`           // "" if it was left out
	Why        string          `json:"why"`               // "" if it holds
	Schedules  int             `json:"schedules"`
	Complete   bool            `json:"complete"`
	Violations int             `json:"violations"`
	Seconds    float64         `json:"seconds"`
	Replay     string          `json:"replay,omitempty"` // the command that shows the witness, with --save
	Search     *explore.Report `json:"search,omitempty"` // of the pair, with its witness

	of         [2]int
	suspicious bool // one writes what the other has read without a lock, and then writes
	commands   int  // of both requests
}

// Name returns the pair for people.
func (p Pair) Name() string {
	if p.of[0] == p.of[1] {
		return p.Requests[0] + " twice"
	}
	return strings.Join(p.Requests[:], " and ")
}

// Explored reports whether the pair had its turn.
func (p Pair) Explored() bool { return !p.LeftOut && !p.NotRun }

// Races reports whether a search has found a race.
func (p Pair) Races() bool { return p.Verdict != "" && p.Verdict.IsBreak() }

// inconclusive records why the pair was not explored to its end. A race that was found stays one.
func (p *Pair) inconclusive(why string) {
	if !p.Races() {
		p.Verdict, p.Why = verdict.Inconclusive, why
	}
}

// pairs returns all pairs of the usable requests: those to explore, the most suspicious first, and then those that are
// left out.
func pairs(requests []Request) (all []Pair) {
	for i, a := range requests {
		for j := i; j < len(requests); j++ {
			if b := requests[j]; a.usable && b.usable {
				all = append(all, pair([2]int{i, j}, a, b))
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Pair) int {
		rank := func(p Pair) int {
			switch {
			case p.LeftOut:
				return 2
			case p.suspicious:
				return 0
			}
			return 1
		}
		return cmp.Or(rank(a)-rank(b), a.commands-b.commands)
	})
	return all
}

// pair decides whether two requests can conflict, from what each uses alone. That suffices: both requests do what they
// do alone until the first command that meets the other. It reads what the other has written, or meets a lock, and then
// it waits, is refused, skips rows or ends in a deadlock. Both commands are known from the runs alone. Two reads never
// meet, and neither do two checks of a foreign key. If an ignored command of one may meet a step of the other, the search
// of the pair says so; two ignored commands are never steps, and the owner vouches for them.
func pair(of [2]int, a, b Request) Pair {
	p := Pair{Requests: [2]string{a.Name, b.Name}, Conflicts: []string{}, of: of, commands: a.Commands + b.Commands}
	var conflicts []target.Resource
	for _, both := range [][2]target.Footprint{{a.uses, b.uses}, {a.ignored, b.uses}, {a.uses, b.ignored}} {
		conflicts = slices.Concat(conflicts, meet(both[0], both[1]), meet(both[1], both[0]))
	}
	for _, r := range conflicts {
		if text := r.String(); !slices.Contains(p.Conflicts, text) {
			p.Conflicts = append(p.Conflicts, text)
		}
	}
	slices.Sort(p.Conflicts)
	switch {
	case a.refused && b.refused:
		p.LeftOut, p.Why = true, "both are refused alone"
	case len(conflicts) == 0 && (a.uses.Empty() || b.uses.Empty()):
		p.LeftOut, p.Why = true, "one of them uses no table and no key"
	case len(conflicts) == 0 && slices.ContainsFunc(a.uses.Reads, among(b.uses.Reads)):
		p.LeftOut, p.Why = true, "both only read what they share"
	case len(conflicts) == 0:
		p.LeftOut, p.Why = true, "no table and no key in common"
	}
	p.suspicious = slices.ContainsFunc(a.uses.Writes, among(b.uses.Naive)) || slices.ContainsFunc(b.uses.Writes, among(a.uses.Naive))
	return p
}

// among reports whether a resource is among those of a footprint.
func among(all []target.Resource) func(target.Resource) bool {
	return func(one target.Resource) bool { return slices.ContainsFunc(all, one.Covers) }
}

// meet returns what one request writes or locks, and the other uses.
func meet(one, other target.Footprint) []target.Resource {
	used := among(slices.Concat(other.Reads, other.Locks, other.Writes))
	return slices.DeleteFunc(slices.Concat(one.Writes, one.Locks), func(r target.Resource) bool { return !used(r) })
}

// leftOut returns a line for each request and reason: the requests with which it cannot conflict.
func leftOut(all []Pair) (lines []string) {
	type group struct{ request, why string }
	var order []group
	others := map[group][]string{}
	for _, p := range all {
		if !p.LeftOut {
			continue
		}
		g := group{p.Requests[0], p.Why}
		if others[g] == nil {
			order = append(order, g)
		}
		name := p.Requests[1]
		if p.of[0] == p.of[1] {
			name = "itself"
		}
		others[g] = append(others[g], name)
	}
	for _, g := range order {
		with := others[g]
		text := strings.Join(with[:min(len(with), mostNamed)], ", ")
		if more := len(with) - mostNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, fmt.Sprintf("%s with %s: %s", g.request, text, g.why))
	}
	return lines
}

// mostNamed is the number of requests in a line, and of lines in a list.
const mostNamed = 5
