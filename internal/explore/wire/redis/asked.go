package redis

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// An asked is a command that has no whole answer yet, as far as its answer needs it.
type asked struct {
	name   string
	text   string
	gated  bool
	effect schedule.Effect
	hello  int          // the protocol that it asks for; 0: none
	db     int          // that it selects; -1: none
	old    bool         // SET with GET: it answers with the old value
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
	a := &asked{name: argument(args, 0), text: commandText(args), db: -1}
	a.gated, a.effect = effect(a.name, argument(args, 1))
	switch a.name {
	case "XREAD":
		if _, _, blocks := timeout(args); blocks {
			a.effect = schedule.Writes
		}
	case "SELECT":
		if n, err := strconv.Atoi(argument(args, 1)); err == nil {
			a.db = max(-1, n)
		}
	case "HELLO":
		a.hello, _ = strconv.Atoi(argument(args, 1))
	case "SET":
		for _, option := range args[min(3, len(args)):] {
			a.old = a.old || bytes.EqualFold(option, []byte("GET"))
		}
	case "SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE":
		a.listens, a.left = strings.ToLower(a.name), len(args)-1
	}
	return a
}

// argument is one in capitals, "" where there is none. Longer ones than any word of Redis'
// are cut.
func argument(args [][]byte, i int) string {
	if i >= len(args) {
		return ""
	}
	return strings.ToUpper(string(args[i][:min(len(args[i]), maxWord)]))
}

// judge says what an answer tells of what the command has done. In doubt it has changed
// something: that only makes others ask once more.
func (a *asked) judge(v *value) (changed, failed bool) {
	refused := v.isError()
	switch {
	case a.runs != nil && v.kind == '*' && !v.null:
		return a.runs.judge(v)
	case !a.gated:
		return false, refused
	case isScript(a.name):
		unknown := strings.HasPrefix(a.name, "EVALSHA") && bytes.HasPrefix(v.text, []byte("NOSCRIPT "))
		return a.effect != schedule.Reads && !(refused && unknown), refused || v.null || v.isZero()
	case a.effect == schedule.Reads, changesNothing(a.name), refused, a.runs != nil:
		return false, refused || v.null || v.kind == '#' && v.isZero()
	case v.null && (a.name == "GETSET" || a.old):
		return true, false // there was none before
	case v.null:
		return !nilMeansNothing(a.name) && a.name != "SET", true
	case v.isZero() && zeroMeansNothing(a.name):
		return false, true
	}
	return true, v.kind == '#' && v.isZero()
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
