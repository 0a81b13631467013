package wire

// A Splitter is a Session that can execute a command and commit it in two steps, as Command.Split asks.
type Splitter interface {
	// Opens returns the bytes that begin a transaction. The connection sends them before current. Receive
	// hides the server's answer to them from the program, and then calls current.Begun. In the answer to
	// current, it clears the flag of an open transaction, since the program has not opened one.
	Opens(current *Command) []byte
	// Commits returns the bytes that commit the transaction. Receive returns the end of the server's answer
	// as a Message without bytes. If the server refuses the commit, current.Answer becomes the refusal.
	Commits(current *Command) []byte
}

// A Step is the part of a split command that its server executes now.
type Step byte

// The steps, in their order. A command that is not split stays Whole.
const (
	Whole    Step = iota
	Begins        // the server begins the session's own transaction
	Executes      // the server executes the command
	Commits       // the server commits the session's transaction
)

// A split is the state of a split command. The sending and the receiving goroutine use it alternately.
type split struct {
	step     Step
	executed func() (hold bool) // the parameter of Split
	commit   chan struct{}      // closed by Commit
}

// Split divides a command with Autocommits into two steps: the server executes it, and commits it later.
// Between the steps, the command holds its locks, and no other connection sees its changes. After the first
// step, the connection calls the function `executed`. If that returns true, the second step waits for
// Commit. Call Split before Let.
func (o *Command) Split(executed func() (hold bool)) {
	o.split = split{step: Begins, executed: executed, commit: make(chan struct{})}
}

// Step returns the step of a split command, for its session.
func (o *Command) Step() Step { return o.split.step }

// Begun says that the transaction that Opens began is open. The session calls it.
func (o *Command) Begun() { o.split.step = Executes }

// Commit starts the second step. Call it once, and only after the function `executed` has returned true.
func (o *Command) Commit() { close(o.split.commit) }

// finish makes the second step of a command, if it has two.
func (c *Conn) finish(o *Command) error {
	if o.split.step == Whole {
		return nil
	}
	if o.split.executed() {
		if err := await(o.split.commit, c.gone); err != nil {
			return err
		}
	}
	o.split.step = Commits
	return c.exchange(o, c.session.(Splitter).Commits(o))
}
