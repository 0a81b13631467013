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

// A Request is a request of the scan, with the observations of a run of this request alone.
type Request struct {
	Name     string   `json:"name"`
	Line     string   `json:"request"` // METHOD URL
	Answer   string   `json:"answer"`  // "" if there is none
	Commands int      `json:"commands"`
	Reads    []string `json:"reads"` // tables and keys that it reads or locks
	Writes   []string `json:"writes"`
	Problem  string   `json:"problem,omitempty"` // reason why the scan does not explore all pairs of this request, and what to do
	NotRun   bool     `json:"not_run,omitempty"` // the budget ended before the scan reached this request

	request app.Request
	uses    target.Footprint
	ignored target.Footprint // tables and keys of the commands that oversell.yaml ignores
	usable  bool             // the scan can explore pairs with the request
	refused bool             // the program refused this request in a run alone, so the scan does not know all that it uses
}

// A Pair is two simultaneous requests, of two buyers.
type Pair struct {
	Requests   [2]string       `json:"requests"`
	Conflicts  []string        `json:"conflicts"` // tables and keys that one request writes or locks, and the other uses
	LeftOut    bool            `json:"left_out"`
	NotRun     bool            `json:"not_run,omitempty"` // the scan ended before it reached this pair
	Verdict    verdict.Verdict `json:"verdict"`           // "" for a pair that is left out
	Why        string          `json:"why"`               // "" for the verdict holds
	Schedules  int             `json:"schedules"`
	Complete   bool            `json:"complete"`
	Violations int             `json:"violations"`
	Seconds    float64         `json:"seconds"`
	Replay     string          `json:"replay,omitempty"` // the command that shows the witness, with --save
	Search     *explore.Report `json:"search,omitempty"` // the search of the pair, with its witness

	of         [2]int
	suspicious bool // one request writes data that the other reads without a lock and then writes
	commands   int  // number of commands of both requests
}

// Name returns the pair for people.
func (p Pair) Name() string {
	if p.of[0] == p.of[1] {
		return p.Requests[0] + " twice"
	}
	return strings.Join(p.Requests[:], " and ")
}

// Explored reports whether the scan has explored the pair.
func (p Pair) Explored() bool { return !p.LeftOut && !p.NotRun }

// Races reports whether a search has found a race.
func (p Pair) Races() bool { return p.Verdict.IsBreak() }

// inconclusive records why the search of the pair is not complete, unless it has found a race.
func (p *Pair) inconclusive(why string) {
	if !p.Races() {
		p.Verdict, p.Why = verdict.Inconclusive, why
	}
}

// pairs returns all pairs of the usable requests: first the pairs to explore, the most suspicious
// first, then the pairs that are left out.
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

// pair decides whether two requests can conflict, from the tables and keys that each uses when it runs alone. Each
// request behaves as it does alone until one of its commands reads data that the other request has written, or
// meets one of its locks. Until then, the runs alone show every command of both. Two reads never conflict, nor do
// two checks of a foreign key. Two commands that oversell.yaml ignores do not conflict either: its key `ignore`
// declares that their order does not matter. An ignored command can conflict with any other command.
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

// among returns a function that reports whether one of the given resources (tables and keys) covers its argument.
func among(all []target.Resource) func(target.Resource) bool {
	return func(one target.Resource) bool { return slices.ContainsFunc(all, one.Covers) }
}

// meet returns the resources that one request writes or locks, and the other uses.
func meet(one, other target.Footprint) []target.Resource {
	used := among(slices.Concat(other.Reads, other.Locks, other.Writes))
	return slices.DeleteFunc(slices.Concat(one.Writes, one.Locks), func(r target.Resource) bool { return !used(r) })
}

// leftOut returns a line for each request and each reason. It names the requests with which that request
// cannot conflict.
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

// mostNamed is the maximum number of requests in a line, and of lines in a list.
const mostNamed = 5
