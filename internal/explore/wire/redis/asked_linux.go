package redis

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/explore/schedule"
)

// An asked is a command without a complete answer. Its fields tell Receive how to read the answer.
type asked struct {
	effect.Redis
	text   string
	gated  bool
	effect schedule.Effect
	hello  int          // the protocol version that a HELLO asks for; 0: none
	db     int          // the database that it selects; -1: none
	begins *transaction // the transaction that a MULTI begins
	runs   *transaction // the transaction that an EXEC runs
	before int          // number of the database before the command
	after  int          // the database after the command, unless Redis refuses it
	mute   bool         // the program does not want its answer

	listens string // the word at the start of its confirmations, such as "subscribe"; "" if it has none
	left    int    // number of confirmations to come; 0: one for each current channel, at least one
}

// A transaction is a MULTI with the commands queued since.
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

// judge decides from the answer whether the command has changed something, and whether it has failed.
// In doubt, judge reports a change. That only makes polling buyers ask once more.
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

// judge decides for an EXEC, the end of a MULTI. It reports a change if a queued command changed
// something, and a failure if a queued command failed and none changed anything.
func (t *transaction) judge(v *value) (changed, failed bool) {
	if v.left || len(v.items) != len(t.queue) {
		return true, false // the answer has more values than were read
	}
	for i, a := range t.queue {
		c, f := a.judge(&v.items[i])
		changed, failed = changed || c, failed || f
	}
	return changed, failed && !changed
}

// effect returns Writes if a queued command writes, and Reads otherwise.
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
