package target

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/process"
	"github.com/oversell/oversell/internal/explore/wire"
)

// An instance is a program in its network, together with its gates.
type instance struct {
	app       *app.App
	line      string // empty: the program runs already
	buyer     int    // 0: serves all buyers
	space     *process.Space
	listeners []*wire.Listener
	program   *process.Program
	log       *tail
	due       window // of its next timer at the last point
	restless  bool   // it sets brief timers without end, see mostBrief
	home      string // its own HOME, deleted with it; "": that of this process
}

// up reports whether the program runs and was not killed.
func (i *instance) up() bool { return i.program != nil }

// serves reports whether a connection to a gate belongs to the instance.
func (i *instance) serves(c *wire.Conn) bool { return i.buyer == c.Buyer }

// buyers returns the numbers of the buyers that the instance serves.
func (i *instance) buyers() (ids []int) {
	for n := range i.app.Buyers {
		if i.buyer == 0 || i.buyer == n+1 {
			ids = append(ids, n+1)
		}
	}
	return ids
}

// kill ends the program at once.
func (i *instance) kill() {
	i.program.Stop()
	i.program = nil
}

// A tail keeps the last output of a program.
type tail struct {
	mu    sync.Mutex
	bytes []byte
	fresh int // number of bytes at the end that news has not returned yet
}

// tailSize is in bytes, enough for the lines of an error.
const tailSize = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bytes = append(t.bytes, p...); len(t.bytes) > tailSize {
		t.bytes = bytes.Clone(t.bytes[len(t.bytes)-tailSize:])
	}
	t.fresh = min(t.fresh+len(p), len(t.bytes))
	return len(p), nil
}

// news returns the output since the last call, at most tailSize bytes of it.
func (t *tail) news() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.bytes[len(t.bytes)-t.fresh:])
	t.fresh = 0
	return text
}

// lastLines is the number of output lines in an error: the end of a stack trace and its message.
const lastLines = 5

// last returns the last lines of output in one line, for an error; "" if there are none.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var lines []string
	for line := range strings.SplitSeq(string(t.bytes), "\n") {
		if line = oneLine(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "; it printed: " + strings.Join(lines[max(0, len(lines)-lastLines):], " | ")
}

// oneLine makes a text valid and replaces each run of white space by one space.
func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "\uFFFD")), " ")
}

// start starts the program. The program is not ready yet.
func (i *instance) start() (err error) {
	i.log = &tail{}
	if i.line == "" {
		if i.program, err = process.Attach(i.app.Attach.PID); err == nil {
			err = reachable(i.app.Attach.PID)
		}
	} else {
		i.program, err = process.Start(i.space, process.Command{Line: i.line, Dir: i.app.Dir, Env: i.env(), Log: i.log})
	}
	if err != nil && i.line == "" {
		return fmt.Errorf("%s: %w; pid is the number of the program's first process, as ps shows it", i.label(), err)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", i.line, err)
	}
	return nil
}

// label names the program in an error.
func (i *instance) label() string {
	if i.line == "" {
		return fmt.Sprintf("attach: process %d", i.app.Attach.PID)
	}
	return i.line
}

// said describes a program for an error: whether it has ended, and its last lines of output.
func (i *instance) said() string {
	ended := ""
	if i.up() {
		select {
		case <-i.program.Done():
			i.program.Stop() // its output is complete then
			ended = fmt.Sprintf("; the program has ended (%v)", i.program.Err())
		default:
		}
	}
	return ended + i.log.last()
}

// early returns an error for a program that ended before it was ready.
func (i *instance) early() error {
	i.program.Stop() // its output is complete then
	how, hint := i.program.Err(), ""
	switch how.Error() {
	case "exit status 0":
		hint = "; `run:` is to stay in the foreground"
	case "exit status 126", "exit status 127": // exit codes of the shell
		hint = "; `run:` is a line for sh in " + i.app.Dir + ": is the program installed, and its path right?"
	}
	return fmt.Errorf("%s: it ended before it was ready (%w)%s%s", i.label(), how, i.log.last(), hint)
}

func (i *instance) env() []string {
	all := os.Environ()
	if i.home != "" {
		all = append(all, "HOME="+i.home)
	}
	for name, value := range i.app.Env {
		all = append(all, name+"="+value)
	}
	return all
}

// ready polls until the program serves.
func (i *instance) ready(ctx context.Context) error {
	target := i.app.Ready
	if target == "" {
		target = i.app.Buyers[max(i.buyer, 1)-1].URL
	}
	var last error
	for deadline := time.Now().Add(i.app.ReadyWithin); ; {
		select {
		case <-i.program.Done():
			return i.early()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
		if last = i.answers(ctx, target); last == nil {
			if i.line == "" {
				if err := i.serving(); err != nil {
					return err
				}
			}
			return i.program.Refresh()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: %s does not answer within %s (%w)%s; `ready:` names what to ask, `ready-within:` how long", i.label(), target, i.app.ReadyWithin, last, i.log.last())
		}
	}
}

// answers requests Ready or, if the file names none, connects to the port. The error says why the
// program is not ready.
func (i *instance) answers(ctx context.Context, target string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	address, err := hostPort(target)
	if err != nil {
		return err
	}
	c, err := i.space.Dial(ctx, address)
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
	answer, err := readReply(bufio.NewReader(c), req)
	if err == nil && answer.failed() {
		err = errors.New(answer.text())
	}
	return err
}

// stop ends the program and its network.
func (i *instance) stop() (err error) {
	if i.program != nil {
		i.program.Stop()
	}
	for _, l := range i.listeners {
		err = errors.Join(err, l.Close())
	}
	if i.home != "" {
		err = errors.Join(err, os.RemoveAll(i.home))
	}
	return errors.Join(err, i.space.Close())
}
