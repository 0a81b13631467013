package wire

// A Splitter is a Session that can execute a command and commit it in two steps, see Command.Split.
type Splitter interface {
	// Opens returns the bytes that begin a transaction, to be sent before current. Receive keeps the
	// server's answer to them from the program. The answer to current says that no transaction is open.
	Opens(current *Command) []byte
	// Commits returns the bytes that end that transaction. Receive returns the end of the server's answer
	// as a Message without bytes. If the server refuses the commit, current.Answer becomes the refusal.
	Commits(current *Command) []byte
}

// A split is the state of a command that is two steps.
type split struct {
	executed func() (hold bool) // see Split; nil: the command is one step
	commit   chan struct{}      // closed by Commit
	second   bool               // the first step is over; used by the two goroutines in turn
}

// Split makes two steps of a command that Autocommits: its server executes it, and later commits it. To
// every connection of the server that is a command that takes long: it has read and written, it has its
// locks, and its changes are invisible. executed is called with the answer after the first step. If it
// returns true, the second step waits for Commit. Call Split before Let.
func (o *Command) Split(executed func() (hold bool)) {
	o.split = split{executed: executed, commit: make(chan struct{})}
}

// Commit starts the second step. Call it once, after executed has returned true.
func (o *Command) Commit() { close(o.split.commit) }

// half reports whether the server is executing the first of two steps.
func (o *Command) half() bool { return o.split.executed != nil && !o.split.second }

// finish makes the second step of a command, if it has two.
func (c *Conn) finish(o *Command) error {
	if o.split.executed == nil {
		return nil
	}
	if o.split.executed() {
		if err := await(o.split.commit, c.gone); err != nil {
			return err
		}
	}
	o.split.second = true
	return c.exchange(o, c.session.(Splitter).Commits(o))
}
