package gates

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/target/naming"
)

// pollers collects the commands that programs send while they serve no buyer. A nil *pollers collects nothing.
type pollers struct{ all []*observed }

// An observed is a Poller with the times that determine its period.
type observed struct {
	Poller
	skeleton string
	last     map[int]time.Time // by buyer: when its instance last sent the command
	gaps     []time.Duration   // times between successive commands of one instance
}

const mostPollers, mostGaps = 50, 1000

func (p *pollers) saw(server, text string, buyer int, at time.Time) {
	if p == nil {
		return
	}
	bare := naming.Skeleton(text)
	for _, one := range p.all {
		if one.Server == server && one.skeleton == bare {
			if last, before := one.last[buyer]; before && len(one.gaps) < mostGaps {
				one.gaps = append(one.gaps, at.Sub(last))
			}
			one.Times++
			one.last[buyer] = at
			return
		}
	}
	if d, sql := effect.DialectOf(server); sql && effect.Mentions(text, d).Controls {
		return // the command belongs to a transaction, whose other commands are recorded
	}
	if len(p.all) < mostPollers {
		p.all = append(p.all, &observed{Poller{Server: server, Text: text, Times: 1}, bare, map[int]time.Time{buyer: at}, nil})
	}
}

// list returns the pollers, the most frequent first.
func (p *pollers) list() (all []Poller) {
	for _, one := range p.all {
		poller := one.Poller
		if gaps := slices.Sorted(slices.Values(one.gaps)); len(gaps) > 0 {
			poller.EveryMS = float64(gaps[len(gaps)/2].Microseconds()) / 1000
		}
		all = append(all, poller)
	}
	slices.SortStableFunc(all, func(a, b Poller) int { return b.Times - a.Times })
	return all
}

// entryFor returns the entries of `ignore` that let a command pass. These are the tables of its statement. If a rule or
// a buyer uses one of the tables (`taken`), the entry is a pattern for the statement.
func entryFor(server, text string, taken func(table string) bool) (entries []string) {
	if d, sql := effect.DialectOf(server); sql {
		tables := effect.Relations(text, d)
		if m := effect.Mentions(text, d); len(tables) > 0 && !m.Undecided && !slices.ContainsFunc(tables, taken) && !slices.ContainsFunc(tables, reserved) {
			return tables
		}
	}
	return []string{patternFor(text)}
}

// reserved reports whether a table cannot be an entry of `ignore`. Other statements, too, read a table of the catalog.
// A name that needs quotes would count as a pattern.
func reserved(table string) bool {
	return strings.HasPrefix(table, "pg_") || !plainName.MatchString(table)
}

// longestPattern is the maximum number of characters of a command in a pattern.
const longestPattern = 80

// patternFor returns a regular expression that matches the command with any values.
func patternFor(text string) string {
	if all := []rune(text); len(all) > longestPattern {
		text = string(all[:longestPattern])
		text = text[:max(strings.LastIndexByte(text, ' '), 0)]
	}
	var pattern strings.Builder
	pattern.WriteByte('^')
	from := 0
	for _, at := range naming.Values(text) {
		pattern.WriteString(regexp.QuoteMeta(text[from:at[0]]) + ".*")
		from = at[1]
	}
	rest := text[from:]
	if quote := strings.IndexByte(rest, '\''); quote >= 0 { // a value that the shortening has cut
		rest = rest[:quote]
	}
	return pattern.String() + regexp.QuoteMeta(rest)
}
