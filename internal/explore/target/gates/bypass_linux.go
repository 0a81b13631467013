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

// A Bypass decides which commands to ignore, and records them. The user lists these commands under `ignore` in
// oversell.yaml (app.Ignore). If a transaction has only ignored commands, its BEGIN and its end pass, too. The end of
// any other transaction is a step, even if an entry of `ignore` matches it. A Bypass also records the commands that are
// never a step, such as a login.
type Bypass struct {
	mu      *sync.Mutex
	rules   app.Ignore
	own     map[*wire.Conn]bool         // the open transaction of this connection has only ignored commands
	counted map[*wire.Conn]bool         // the open transaction of this connection may have other commands, too
	flying  map[*wire.Command]time.Time // ignored commands without an answer, with their arrival times
	passed  map[Template]bool           // commands that were ignored since the gates were last closed
	expires bool                        // an ignored command has changed Redis since the last ChangedRedis
	last    *wire.Conn                  // connection with the last answer to an ignored command; nil: none
	ungated []string                    // commands that have passed since the gates were last closed, because commands of their kind are no step
}

// A Template is a command without its values. In a Redis command, however, the values stay.
type Template struct{ Protocol, Text string }

func newBypass(mu *sync.Mutex, rules app.Ignore) *Bypass {
	return &Bypass{mu: mu, rules: rules, own: map[*wire.Conn]bool{}, counted: map[*wire.Conn]bool{}, flying: map[*wire.Command]time.Time{}, passed: map[Template]bool{}}
}

// MostIgnored is the maximum number of ignored commands that a run records, since a program may send without end.
const MostIgnored = 1000

// TemplateOf returns the template of a command.
func TemplateOf(c *wire.Command) Template {
	text := c.InFull()
	if c.Conn().Protocol != "redis" {
		text = naming.Skeleton(text)
	}
	return Template{c.Conn().Protocol, text}
}

// Ignored returns the templates of the commands that were ignored since the gates were last closed, in no order. There
// are at most MostIgnored.
func (b *Bypass) Ignored() []Template {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Keys(b.passed))
}

// Ungated returns the commands that have passed since the gates were last closed, and are never a step, such as a
// login.
func (b *Bypass) Ungated() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.ungated)
}

// Unanswered returns the ignored commands that have had no answer for longer than the given time.
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

// Last returns the connection on which the last answer to an ignored command came; nil if there is none.
func (b *Bypass) Last() *wire.Conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

func (b *Bypass) clear() {
	b.ungated = nil
	clear(b.passed)
}

// passes reports whether a command that has arrived at a gate is ignored and passes.
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

// answered records the answer to a command. It reports whether the command is an ignored one.
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
