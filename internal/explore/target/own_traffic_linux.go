package target

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/witness"
)

// ownTraffic finds out what the programs send by themselves.
type ownTraffic struct {
	x     *Runner
	seen  pollers
	watch time.Duration // how long Check waits for it without a buyer
}

// Watch makes Check wait that long without a buyer, for Check.Pollers. Without it, Check has only what
// the programs sent in the half second in which they were found idle. Call it before Check.
func (x *Runner) Watch(d time.Duration) { x.ownTraffic.watch = d }

// begin starts to record in a list, which gateTable.mu guards, and end stops it. In between no buyer is there,
// and the gates are open.
func (l *ownTraffic) begin(list *pollers) {
	l.x.gateTable.mu.Lock()
	l.x.gateTable.lone = list
	l.x.gateTable.mu.Unlock()
}

func (l *ownTraffic) end() {
	l.x.gateTable.mu.Lock()
	l.x.gateTable.lone = nil
	l.x.gateTable.mu.Unlock()
}

// look waits for l.watch, and up to twice as long if something that was seen did not come again.
func (l *ownTraffic) look(ctx context.Context) error {
	if l.watch == 0 {
		return nil
	}
	l.begin(&l.seen)
	defer l.end()
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		once := slices.ContainsFunc(l.pollers(), func(p Poller) bool { return p.Every == 0 })
		if passed := time.Since(begun); passed > 2*l.watch || passed > l.watch && !once {
			return nil
		}
	}
}

// pollers returns what was seen.
func (l *ownTraffic) pollers() []Poller {
	l.x.gateTable.mu.Lock()
	defer l.x.gateTable.mu.Unlock()
	return l.seen.list()
}

// entries returns what `ignore` of the file needs, with its present entries, so that those commands
// pass. buyers are the commands of the buyers.
func (l *ownTraffic) entries(all []Poller, buyers []Seen) []string {
	used := map[string]bool{}
	for _, s := range buyers {
		_, text := witness.CutMark(s.Text)
		if slices.ContainsFunc(all, func(p Poller) bool { return p.Server == s.Server && naming.Skeleton(p.Text) == naming.Skeleton(text) }) {
			continue // it came while the buyer was there
		}
		if d, sql := effect.DialectOf(s.Server); sql {
			for _, name := range effect.Relations(text, d) {
				used[name] = true
			}
		}
	}
	taken := func(table string) bool { return used[table] || l.x.app.RuleOn(table) != "" }
	entries := slices.Clone(l.x.app.Ignore.Entries)
	for _, p := range all {
		for _, entry := range entryFor(p.Server, p.Text, taken) {
			if !slices.Contains(entries, entry) {
				entries = append(entries, entry)
			}
		}
	}
	return entries
}

// hint adds to a void run what the programs send by themselves again and again, and what to write in the
// file.
func (l *ownTraffic) hint(v schedule.Void) schedule.Void {
	all := slices.DeleteFunc(l.pollers(), func(p Poller) bool { return p.Every == 0 })
	if len(all) > 0 && !v.Missed {
		v.Details += l.advice(all)
	}
	return v
}

// sends watches programs that do not become idle, and names what they send, with what to write in the
// file; "" if they send nothing.
func (l *ownTraffic) sends(ctx context.Context) string {
	l.watch = max(l.watch, time.Second)
	f := l.x.gateTable
	before := f.own.Load()
	_ = l.look(ctx) // the caller returns an error anyway
	all := l.pollers()
	if len(all) == 0 && f.own.Load() > before {
		return "; the commands that `ignore` lets pass come without a pause: lengthen their period for the test"
	}
	return l.advice(all)
}

// advice names the most frequent poller, and says what to write in the file.
func (l *ownTraffic) advice(all []Poller) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("; the program sends %q by itself (%s); to let that pass, write in the file %s", naming.Short(naming.Plain(all[0].Text)), all[0].every(), ignoreLine(l.entries(all, nil)))
}
