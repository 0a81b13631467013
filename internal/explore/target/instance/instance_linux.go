package instance

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/explore/target/client"
	"github.com/oversell/oversell/internal/explore/wire"
	"github.com/oversell/oversell/internal/load/pulse"
)

// An Instance is a program in its own network, with the gates that hold its commands. The Instance outlives the
// program: Kill ends the program, and Start starts it again.
type Instance struct {
	Line     string // the program's command line; "" if the program ran before the explorer
	Network  *process.Network
	Program  *process.Program // nil after Kill
	Restless bool             // the program sets brief timers again and again; package rest sets and reads this field

	app       *app.App
	buyer     int // the buyer that it serves; 0: all
	listeners []*wire.Listener
	log       *tail
	home      string // the program's own HOME directory, which Stop deletes; "": the program uses the explorer's
}

// Up reports whether the program was started and was not killed.
func (i *Instance) Up() bool { return i.Program != nil }

// Attached reports whether the program ran before the explorer, which then can neither start nor end it.
func (i *Instance) Attached() bool { return i.Line == "" }

// Dial implements client.Server.
func (i *Instance) Dial(ctx context.Context, address string) (*net.TCPConn, error) {
	return i.Network.Dial(ctx, address)
}

// Printed returns the program's output since the last call, at most newsSize bytes.
func (i *Instance) Printed() string {
	if i.log == nil {
		return ""
	}
	return i.log.news()
}

// Serves reports whether connection c to a gate belongs to this instance.
func (i *Instance) Serves(c *wire.Conn) bool { return i.buyer == c.Buyer }

// Buyers returns the numbers of the buyers that the instance serves.
func (i *Instance) Buyers() (ids []int) {
	for n := range i.app.Buyers {
		if i.buyer == 0 || i.buyer == n+1 {
			ids = append(ids, n+1)
		}
	}
	return ids
}

// Kill ends the program at once.
func (i *Instance) Kill() {
	i.Program.Stop()
	i.Program = nil
}

// A tail keeps the last output of a program.
type tail struct {
	mu    sync.Mutex
	bytes []byte
	fresh int // number of bytes at the end that the method news has not returned yet
}

// tailSize is the number of bytes that are kept, enough for a long stack trace. newsSize is enough for the lines of an
// error.
const tailSize, newsSize = 64 << 10, 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes = append(t.bytes, p...); len(t.bytes) > tailSize {
		t.bytes = bytes.Clone(t.bytes[len(t.bytes)-tailSize:])
	}
	t.fresh = min(t.fresh+len(p), len(t.bytes), newsSize)
	return len(p), nil
}

// news returns the output since the last call, at most newsSize bytes of it.
func (t *tail) news() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.bytes[len(t.bytes)-t.fresh:])
	t.fresh = 0
	return text
}

// lastLines is the number of lines of output in an error message: an exception and a part of its stack.
const lastLines = 5

// last returns the end of an error message: lines of output, joined to one line. It takes the lines next to the most
// recent exception or, without an exception, the last ones. It returns "" if there is no output.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.SplitSeq(string(t.bytes), "\n") {
		if strings.TrimSpace(line) != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	lines = around(lines, lastLines)
	for i, line := range lines {
		lines[i] = client.OneLine(line)
	}
	return "; it printed: " + strings.Join(lines, " | ")
}

// Start starts the program, and does not wait until it is ready.
func (i *Instance) Start() (err error) {
	i.log = &tail{}
	if i.Line == "" {
		if i.Program, err = process.Attach(i.app.Attach.PID); err == nil {
			err = reachable(i.app.Attach.PID)
		}
	} else {
		i.Program, err = process.Start(i.Network, process.Command{Line: i.Line, Dir: i.app.Dir, Env: i.env(), Log: i.log, PID: i.firstPID()})
	}
	if err != nil && i.Line == "" {
		return fmt.Errorf("%s: %w; pid is the number of the program's first process, as ps shows it", i.Label(), err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", i.Line, err)
	}
	return nil
}

// Label names the program in an error message.
func (i *Instance) Label() string {
	if i.Line == "" {
		return fmt.Sprintf("attach: process %d", i.app.Attach.PID)
	}
	return i.Line
}

// Said implements client.Server. For an error message, it says whether the program has ended, and its last lines of
// output.
func (i *Instance) Said() string {
	ended := ""
	if i.Up() {
		select {
		case <-i.Program.Done():
			i.Program.Stop() // after Stop, its output is complete
			ended = fmt.Sprintf("; the program has ended (%v)", i.Program.Err())
		default:
		}
	}
	return ended + i.log.last()
}

// early returns the error for a program that ended before it was ready.
func early(i *Instance) error {
	i.Program.Stop() // after Stop, its output is complete
	how, hint := i.Program.Err(), ""
	switch how.Error() {
	case "exit status 0":
		hint = "; `run:` is to stay in the foreground"
	case "exit status 126", "exit status 127": // exit codes of the shell
		hint = "; `run:` is a line for sh in " + i.app.Dir + ": is the program installed, and its path right?"
	}
	return fmt.Errorf("%s: it ended before it was ready (%w)%s%s", i.Label(), how, i.log.last(), hint)
}

// pidsEach is the difference between the first process ids of two instances.
const pidsEach = 1000

// firstPID returns the id of the program's first process. It differs between instances, as it would on one host, unless
// App.SameHosts is set. After a restart it is the same.
func (i *Instance) firstPID() int {
	if i.app.SameHosts {
		return pidsEach
	}
	return pidsEach * max(i.buyer, 1)
}

func (i *Instance) env() []string {
	all := os.Environ()
	if i.home != "" {
		all = append(all, "HOME="+i.home)
	}
	for name, value := range i.app.Env {
		all = append(all, name+"="+value)
	}
	return all
}

// Ready waits until the program answers requests.
func (i *Instance) Ready(ctx context.Context) error {
	target := i.app.Ready
	if target == "" {
		target = i.app.Buyers[max(i.buyer, 1)-1].URL
	}
	var last error
	limit, cancel := pulse.WithTimeout(ctx, i.app.ReadyWithin)
	defer cancel()
	for {
		select {
		case <-i.Program.Done():
			return early(i)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
		if last = i.answers(ctx, target); last == nil {
			if i.Line == "" {
				if err := serving(i); err != nil {
					return err
				}
			}
			return i.Program.Refresh()
		}
		if limit.Err() != nil {
			return fmt.Errorf("%s: %s does not answer within %s (%w)%s; `ready:` names what to ask, `ready-within:` how long", i.Label(), target, i.app.ReadyWithin, last, i.log.last())
		}
	}
}

// answers checks once whether the program is ready: it sends a request to the URL App.Ready or, without one, connects
// to the port. The error says why the program is not ready.
func (i *Instance) answers(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	address, err := client.HostPort(target)
	if err != nil {
		return err
	}
	c, err := i.Network.Dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.Close()
	if i.app.Ready == "" {
		return nil
	}
	_ = c.SetDeadline(time.Now().Add(time.Second))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return err
	}
	req.Close = true
	if err := req.Write(c); err != nil {
		return err
	}
	answer, err := client.ReadReply(bufio.NewReader(c), req)
	if err == nil && answer.Failed() {
		err = errors.New(answer.Text())
	}
	return err
}

// Stop ends the program and its network.
func (i *Instance) Stop() (err error) {
	if i.Program != nil {
		i.Program.Stop()
	}
	for _, l := range i.listeners {
		err = errors.Join(err, l.Close())
	}
	if i.home != "" {
		err = errors.Join(err, os.RemoveAll(i.home))
	}
	return errors.Join(err, i.Network.Close())
}

// reachable returns an error if the explorer cannot see the traffic of a process.
func reachable(pid int) error {
	own, err := process.SameNetwork(pid)
	if err == nil && !own {
		err = errors.New("it is in another network, that of a container, which cannot be observed from here; start the container with --network host")
	}
	return err
}

// serving returns an error if a running program cannot be explored. The process must be the one that answers the
// buyers, because the explorer watches its threads.
func serving(i *Instance) error {
	for _, b := range i.app.Buyers {
		address, err := client.HostPort(b.URL)
		if err != nil {
			return err
		}
		serves, err := i.Program.Serves(address)
		if err != nil {
			return fmt.Errorf("%s: %w", i.Label(), err)
		}
		if !serves {
			return fmt.Errorf("%s: it does not listen at %s; give the pid of the program that does, or of a process that started it", i.Label(), address)
		}
	}
	return nil
}
