package gates

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/explore/witness"
)

// OwnTraffic finds the commands that the programs send while they serve no buyer. It has a lock of its own.
type OwnTraffic struct {
	app   *app.App
	pulse *Pulse

	mu   sync.Mutex
	seen pollers
	lone *pollers  // where commands are recorded while no buyer is there; nil while a buyer may be there
	sent time.Time // time of the last command that is not ignored, or of the last pushed message
}

func (l *OwnTraffic) saw(c *wire.Command) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = time.Now()
	l.lone.saw(c.Conn().Protocol, c.Text, c.Conn().Buyer, l.sent)
}

func (l *OwnTraffic) heard() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = time.Now()
}

// Late records commands that came after the end of their run, when no buyer was there any more.
func (l *OwnTraffic) Late(commands []*Op) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range commands {
		if !o.Push {
			l.seen.saw(o.Conn().Protocol, o.Text, o.Buyer, time.Now())
		}
	}
}

// record adds the commands that arrive to the list, until the caller calls stop. The caller ensures that no buyer is
// there and that the gates are open.
func (l *OwnTraffic) record(list *pollers) (stop func()) {
	set := func(list *pollers) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.lone = list
	}
	set(list)
	return func() { set(nil) }
}

// Record records the commands that arrive, for Pollers, until the caller calls stop. The caller ensures that no buyer
// is there and that the gates are open.
func (l *OwnTraffic) Record() (stop func()) { return l.record(&l.seen) }

// Look records the programs' commands for the time `watch`. If a command has arrived only once, Look waits for its next
// arrival, for at most the same time.
func (l *OwnTraffic) Look(ctx context.Context, watch time.Duration) error {
	if watch == 0 {
		return nil
	}
	defer l.Record()()
	for begun := time.Now(); ; {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(50 * time.Millisecond):
		}
		once := slices.ContainsFunc(l.Pollers(), func(p Poller) bool { return p.EveryMS == 0 })
		if passed := time.Since(begun); passed > 2*watch || passed > watch && !once {
			return nil
		}
	}
}

// Pollers returns the recorded commands, the most frequent first.
func (l *OwnTraffic) Pollers() []Poller {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen.list()
}

// Entries returns the list for `ignore` in oversell.yaml with which no gate holds the commands of these pollers. The
// list includes the present entries. The parameter `buyers` contains the commands of the buyers.
func (l *OwnTraffic) Entries(all []Poller, buyers []Seen) []string {
	used := map[string]bool{}
	for _, s := range buyers {
		_, text := witness.CutMark(s.Text)
		if slices.ContainsFunc(all, func(p Poller) bool { return p.Server == s.Server && naming.Skeleton(p.Text) == naming.Skeleton(text) }) {
			continue // the poller's command came while the buyer was there, and does not belong to the buyer
		}
		if d, sql := effect.DialectOf(s.Server); sql {
			for _, name := range effect.Relations(text, d) {
				used[name] = true
			}
		}
	}
	taken := func(table string) bool { return used[table] || l.app.RuleOn(table) != "" }
	entries := slices.Clone(l.app.Ignore.Entries)
	for _, p := range all {
		for _, entry := range entryFor(p.Server, p.Text, taken) {
			if !slices.Contains(entries, entry) {
				entries = append(entries, entry)
			}
		}
	}
	return entries
}

// Hint adds to the details of a void (discarded) run which commands the programs send by themselves again and again,
// and the line to write in oversell.yaml.
func (l *OwnTraffic) Hint(v schedule.Void) schedule.Void {
	all := slices.DeleteFunc(l.Pollers(), func(p Poller) bool { return p.EveryMS == 0 })
	if len(all) > 0 && !v.Missed {
		v.Details += l.Advice(all)
	}
	return v
}

// Sends watches programs that do not become idle, for the time `watch` but at least a second. It names their
// commands and the line to write in oversell.yaml. If they send nothing, it returns "".
func (l *OwnTraffic) Sends(ctx context.Context, watch time.Duration) string {
	before := l.pulse.Ignored()
	_ = l.Look(ctx, max(watch, time.Second)) // the caller returns an error anyway
	all := l.Pollers()
	if len(all) == 0 && l.pulse.Ignored() > before {
		return "; the commands that `ignore` lets pass come without a pause: lengthen their period for the test"
	}
	return l.Advice(all)
}

// Advice names the most frequent poller, and the line to write in oversell.yaml.
func (l *OwnTraffic) Advice(all []Poller) string {
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("; the program sends %q by itself (%s); to let that pass, write in the file %s", naming.Short(naming.Plain(all[0].Text)), all[0].Period(), IgnoreLine(l.Entries(all, nil)))
}

// StaysQuiet waits, with the gates open, until the programs have sent nothing for the time `quiet` in oversell.yaml.
// This time begins at since, or later. Ignored commands do not end it, but a message from a server does. StaysQuiet
// waits for at most `quiet` plus patience.
func (l *OwnTraffic) StaysQuiet(ctx context.Context, since time.Time, patience time.Duration) error {
	quiet := l.app.Quiet
	if quiet == 0 {
		return nil
	}
	var seen pollers
	stop := l.record(&seen)
	defer stop()
	for begun := time.Now(); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		last := l.sent
		l.mu.Unlock()
		if last.Before(since) {
			last = since
		}
		switch now := time.Now(); {
		case now.Sub(last) >= quiet:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case l.pulse.Since(begun) > quiet+patience:
			stop() // the list of commands is complete after stop
			return fmt.Errorf("quiet: the program was never silent for %s; shorten `quiet`%s", quiet, l.Advice(seen.list()))
		}
	}
}
