package gates

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/explore/target/naming"
	"github.com/oversell/oversell/internal/explore/wire"
)

// A Bypass decides which commands to ignore (see app.Ignore), and records them. It also records the commands that are
// never a step, such as a login. A transaction of only ignored commands passes as a whole, with its BEGIN and its end.
// The end of any other transaction is a step, even if an entry of `ignore` matches it.
type Bypass struct {
	mu      *sync.Mutex
	rules   app.Ignore
	own     map[*wire.Conn]bool         // its open transaction has only ignored commands
	counted map[*wire.Conn]bool         // its open transaction may have other commands
	flying  map[*wire.Command]time.Time // arrival times of ignored commands without an answer yet
	passed  map[Template]bool           // commands that were ignored since Close
	expires bool                        // an ignored command has changed Redis since the last ChangedRedis
	last    *wire.Conn                  // connection with the last answer to an ignored command; nil: none
	ungated []string                    // commands that have passed since Close because they are no step
}

// A Template is a command without its values; a Redis command keeps its values.
type Template struct{ Protocol, Text string }

func newBypass(mu *sync.Mutex, rules app.Ignore) *Bypass {
	return &Bypass{mu: mu, rules: rules, own: map[*wire.Conn]bool{}, counted: map[*wire.Conn]bool{}, flying: map[*wire.Command]time.Time{}, passed: map[Template]bool{}}
}

// MostIgnored bounds the commands that are recorded in a run, since a poller may send without end.
const MostIgnored = 1000

// TemplateOf returns the template of a command.
func TemplateOf(c *wire.Command) Template {
	text := c.InFull()
	if c.Conn().Protocol != "redis" {
		text = naming.Skeleton(text)
	}
	return Template{c.Conn().Protocol, text}
}

// Ignored returns the templates of the ignored commands since Close, at most MostIgnored, in no order.
func (b *Bypass) Ignored() []Template {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.passed))
}

// Ungated returns the commands that have passed since Close because they are no step.
func (b *Bypass) Ungated() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ungated)
}

// Unanswered returns the ignored commands that have waited for their answer longer than the given time.
func (b *Bypass) Unanswered(longer time.Duration) (all []*wire.Command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for c, since := range b.flying {
		if time.Since(since) > longer {
			all = append(all, c)
		}
	}
	return all
}

// ChangedRedis reports whether an ignored command has changed Redis since the last call.
func (b *Bypass) ChangedRedis() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	changed := b.expires
	b.expires = false
	return changed
}

// Last returns the connection that received the last answer to an ignored command; nil if there is none.
func (b *Bypass) Last() *wire.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

func (b *Bypass) clear() {
	b.ungated = nil
	clear(b.passed)
}

// passes reports whether a command that has arrived at a gate passes.
func (b *Bypass) passes(c *wire.Command) bool {
	if len(b.rules.Entries) == 0 || !c.Gated || !b.ignores(c) {
		return false
	}
	b.flying[c] = time.Now()
	return true
}

func (b *Bypass) ignores(c *wire.Command) bool {
	conn, text := c.Conn(), c.InFull()
	if d, sql := effect.DialectOf(conn.Protocol); sql {
		m := effect.Mentions(text, d)
		switch {
		case m.Controls && m.Begins && !m.Ends && c.Effect == schedule.Local && !c.Ends: // no transaction is open
			b.own[conn] = true
			delete(b.counted, conn)
			return true
		case m.Controls && b.own[conn]:
			if c.Ends {
				delete(b.own, conn)
			}
			return true
		}
		if c.Ends {
			defer func() { delete(b.own, conn); delete(b.counted, conn) }()
		}
	}
	if c.Ends && b.counted[conn] || !b.rules.Names(conn.Protocol, text) {
		b.counted[conn] = true
		delete(b.own, conn)
		return false
	}
	if !b.counted[conn] {
		b.own[conn] = true
	}
	if len(b.passed) < MostIgnored {
		b.passed[TemplateOf(c)] = true
	}
	return true
}

// answered records the answer to a command that has passed, and reports whether the command is ignored.
func (b *Bypass) answered(c *wire.Command) bool {
	_, is := b.flying[c]
	delete(b.flying, c)
	if is {
		b.last = c.Conn()
	}
	b.expires = b.expires || is && c.Answer.Changed && c.Conn().Protocol == "redis"
	return is
}

func (b *Bypass) left(conn *wire.Conn) {
	delete(b.own, conn)
	delete(b.counted, conn)
	if b.last == conn {
		b.last = nil
	}
	maps.DeleteFunc(b.flying, func(c *wire.Command, _ time.Time) bool { return c.Conn() == conn })
}
