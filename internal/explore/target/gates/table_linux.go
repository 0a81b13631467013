package gates

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/oversell/oversell/internal/explore/wire"
)

// A Table holds the commands of a run, and says where each is, for example at its gate, where it waits to be released.
// The goroutines of the connections add commands and answers, and remove the commands of a connection that has ended.
// Only the scheduler moves a command on. While the gates are open, every command passes and the table is empty.
type Table struct {
	mu    *sync.Mutex
	pulse *Pulse
	shut  bool // commands must wait
	all   bool // pings and the like must wait, too, although they are usually no step
	now   Commands
	byCmd map[*wire.Command]*Op
}

// Commands says where the commands of a run are.
type Commands struct {
	Fresh       []*Op // arrived, and not yet admitted to Held
	Held        []*Op // at the gate, in the order of InOrder
	Flying      []*Op // released, and without an answer
	Uncommitted []*Op // executed but not committed, in the order of InOrder
	Answered    []*Op // the answer is not delivered yet
}

// All returns all commands.
func (c Commands) All() []*Op {
	return slices.Concat(c.Fresh, c.Held, c.Flying, c.Uncommitted, c.Answered)
}

// Where lists the commands and where they are, for an error message.
func (c Commands) Where() string {
	var all []string
	for what, list := range map[string][]*Op{"has sent": c.Fresh, "stands at": c.Held, "waits for the answer to": c.Flying, "has executed and not committed": c.Uncommitted, "is to be answered": c.Answered} {
		for _, o := range list {
			all = append(all, fmt.Sprintf("buyer %d %s %q", o.Buyer, what, o.Text))
		}
	}
	slices.Sort(all)
	if len(all) == 0 {
		return "nothing stands at a gate"
	}
	return strings.Join(all, ", ")
}

// Now returns where the commands are. The caller owns the lists.
func (t *Table) Now() Commands {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Commands{slices.Clone(t.now.Fresh), slices.Clone(t.now.Held), slices.Clone(t.now.Flying), slices.Clone(t.now.Uncommitted), slices.Clone(t.now.Answered)}
}

// IsShut reports whether commands must wait.
func (t *Table) IsShut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.shut
}

// HoldAll decides whether a ping and the like must wait, too, until the run ends. Usually they are no step, and pass.
func (t *Table) HoldAll(on bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = on
}

// Admit moves a fresh command to the held commands, unless its connection has ended.
func (t *Table) Admit(o *Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byCmd[o.Command] == o {
		t.now.Fresh = without(t.now.Fresh, o)
		t.now.Held = append(t.now.Held, o)
		InOrder(t.now.Held)
	}
}

// Arrange sorts the held commands again, after the scheduler has changed a field that InOrder compares.
func (t *Table) Arrange() {
	t.mu.Lock()
	defer t.mu.Unlock()
	InOrder(t.now.Held)
}

// LetGo sends a held command to its server.
func (t *Table) LetGo(o *Op) {
	t.mu.Lock()
	t.now.Held = without(t.now.Held, o)
	t.now.Flying = append(t.now.Flying, o)
	t.pulse.counts() // no program has received anything
	t.mu.Unlock()
	o.Let()
}

// LetGoSplit sends a held command to its server, which executes it. The server commits it when Commit is called, or
// earlier if the command has changed nothing, or if the gates open.
func (t *Table) LetGoSplit(o *Op) {
	o.Split(func() (hold bool) { return t.executed(o) })
	t.LetGo(o)
}

// Commit lets the server commit a command that LetGoSplit has sent.
func (t *Table) Commit(o *Op) {
	t.mu.Lock()
	t.now.Uncommitted = without(t.now.Uncommitted, o)
	t.now.Flying = append(t.now.Flying, o)
	o.Executed, o.Committing = false, true
	t.pulse.happened()
	t.mu.Unlock()
	o.Command.Commit()
}

// Take removes an answered command. The caller then delivers the answer.
func (t *Table) Take(o *Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Answered = without(t.now.Answered, o)
	t.remove(o)
}

// Pass lets a fresh or held command and its answer pass. The command is then no step of the run.
func (t *Table) Pass(o *Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now.Fresh, t.now.Held = without(t.now.Fresh, o), without(t.now.Held, o)
	t.remove(o)
	o.Release()
	o.Deliver()
}

// remove forgets a command when its answer goes to the program.
func (t *Table) remove(o *Op) {
	delete(t.byCmd, o.Command)
	t.pulse.happened()
	t.pulse.handed, t.pulse.handedTo = o.Conn().Program(), o.Conn().Buyer
}

// empty opens the table, and returns what was in it.
func (t *Table) empty() Commands {
	now := t.now
	t.shut, t.all, t.now, t.byCmd = false, false, Commands{}, map[*wire.Command]*Op{}
	return now
}

func (t *Table) arrived(o *Op) {
	t.byCmd[o.Command] = o
	t.now.Fresh = append(t.now.Fresh, o)
}

// executed is called when the server has executed a command of LetGoSplit. It returns whether to hold the commit.
func (t *Table) executed(o *Op) (hold bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.shut || t.byCmd[o.Command] != o || !o.Answer.Changed {
		return false
	}
	t.pulse.counts() // the program has received nothing
	t.now.Flying = without(t.now.Flying, o)
	o.Executed = true
	t.now.Uncommitted = append(t.now.Uncommitted, o)
	InOrder(t.now.Uncommitted)
	return true
}

// answered adds the answer to a command, or a message that a server has pushed.
func (t *Table) answered(c *wire.Command) {
	o := t.byCmd[c]
	switch {
	case o == nil && (!c.Push || !t.shut): // the command or message belongs to no step of this run
		return
	case o == nil:
		c.Hold()
		o = &Op{Command: c, Buyer: c.Conn().Buyer}
	}
	t.now.Flying = without(t.now.Flying, o)
	t.now.Answered = append(t.now.Answered, o)
}

// left removes the commands of a connection that has ended. It returns those that its program sent in this run.
func (t *Table) left(c *wire.Conn) (theirs []*Op) {
	is := func(o *Op) bool { return o.Conn() == c }
	for _, list := range []*[]*Op{&t.now.Fresh, &t.now.Held, &t.now.Flying, &t.now.Uncommitted, &t.now.Answered} {
		for _, o := range *list {
			if !is(o) {
				continue
			}
			delete(t.byCmd, o.Command)
			if t.shut && !o.Push {
				theirs = append(theirs, o)
			}
		}
		*list = slices.DeleteFunc(*list, is)
	}
	return theirs
}

func without(all []*Op, o *Op) []*Op {
	return slices.DeleteFunc(all, func(other *Op) bool { return other == o })
}

// InOrder sorts commands by buyer and name, with a buyer's timer commands last. A program with several threads sends in
// a different order in each run, so the order of arrival must not decide. Equal commands, such as two COMMITs, are
// sorted by the rows that they use. If even these are equal, the order of arrival decides. A program with one thread
// repeats it.
func InOrder(commands []*Op) {
	slices.SortStableFunc(commands, func(a, b *Op) int {
		return cmp.Or(cmp.Compare(a.Buyer, b.Buyer), compareBool(a.Timed, b.Timed), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Usage.Key, b.Usage.Key), a.Came.Compare(b.Came))
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
