package redis

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// An asked is a command that has no whole answer yet, as far as its answer needs it.
type asked struct {
	effect.Redis
	text   string
	gated  bool
	effect schedule.Effect
	hello  int          // the protocol that it asks for; 0: none
	db     int          // that it selects; -1: none
	begins *transaction // of MULTI
	runs   *transaction // of EXEC
	before int          // the database before it
	after  int          // and after it, unless it is refused
	mute   bool         // the program has renounced its answer

	listens string // the word that its confirmations begin with: "subscribe"; "": there are none
	left    int    // confirmations to come; 0: one for each channel that there is, or one
}

// A transaction is MULTI and what was queued since.
type transaction struct{ queue []*asked }

func newAsked(args [][]byte) *asked {
	c := effect.RedisCommand(args)
	a := &asked{Redis: c, text: commandText(args), gated: !c.Passes(), effect: c.Effect(), db: -1}
	switch a.Name {
	case "SELECT":
		if n, err := strconv.Atoi(a.Sub); err == nil {
			a.db = max(-1, n)
		}
	case "HELLO":
		a.hello, _ = strconv.Atoi(a.Sub)
	case "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE":
		a.listens, a.left = strings.ToLower(a.Name), len(args)-1
	}
	return a
}

// judge says what an answer tells of what the command has done. In doubt it has changed
// something: that only makes others ask once more.
func (a *asked) judge(v *value) (changed, failed bool) {
	switch {
	case a.runs != nil && v.kind == '*' && !v.null:
		return a.runs.judge(v)
	case a.runs != nil:
		return false, v.isError() || v.null
	case !a.gated:
		return false, v.isError()
	}
	return a.Outcome(v.tells())
}

// tells is what the value says as an answer.
func (v *value) tells() effect.RedisAnswer {
	switch {
	case v.isError() && bytes.HasPrefix(v.text, []byte("NOSCRIPT ")):
		return effect.NoScript
	case v.isError():
		return effect.Refused
	case v.null:
		return effect.Nil
	case v.isZero() && v.kind == '#':
		return effect.False
	case v.isZero():
		return effect.Zero
	}
	return effect.Value
}

// judge: EXEC has changed what one of the commands has, and it has failed where one of them
// has and nothing was changed.
func (t *transaction) judge(v *value) (changed, failed bool) {
	if v.left || len(v.items) != len(t.queue) {
		return true, false // there is more than was looked at
	}
	for i, a := range t.queue {
		c, f := a.judge(&v.items[i])
		changed, failed = changed || c, failed || f
	}
	return changed, failed && !changed
}

// effect is Reads where nothing queued writes.
func (t *transaction) effect() schedule.Effect {
	for _, a := range t.queue {
		if a.effect == schedule.Writes {
			return schedule.Writes
		}
	}
	return schedule.Reads
}

func (t *transaction) text() string {
	var b strings.Builder
	for i, a := range t.queue {
		if b.Len() > maxCommand {
			b.WriteString("; … (" + strconv.Itoa(len(t.queue)) + " commands)")
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(a.text)
	}
	return "MULTI {" + b.String() + "} EXEC"
}
