package locktest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// childEnv is the environment variable with the task of a child process, as JSON.
const childEnv = "LOCKTEST_CHILD"

// Child does the work of a child process of Measure and exits. In any other process it returns at
// once. Call it first in main or TestMain, with a function that makes a Subject from its Spec. Child
// uses only Connect of that Subject.
//
//	func TestMain(m *testing.M) {
//		locktest.Child(func(spec string) (locktest.Subject, error) { return subject(spec), nil })
//		os.Exit(m.Run())
//	}
func Child(open func(spec string) (Subject, error)) {
	text, ok := os.LookupEnv(childEnv)
	if !ok {
		return
	}
	if err := serve(text, open, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve runs in the child: it reports that it is ready, waits for a line, does the task and answers with its
// counts. It ends when its input ends.
func serve(text string, open func(spec string) (Subject, error), in io.Reader, out io.Writer) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return fmt.Errorf("%s: %w", childEnv, err)
	}
	s, err := open(t.Spec)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := ready(ctx, s, t)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, "ready"); err != nil {
		return err
	}
	lines := bufio.NewReader(in)
	if _, err := lines.ReadString('\n'); err != nil {
		return fmt.Errorf("no start: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		cancel() // the parent is gone
	}()
	sum, err := contend(ctx, c, t)
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(sum)
}

// child is a crew whose contenders run in a child process.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	words *bytes.Buffer // standard error of the child
}

func startChild(ctx context.Context, _ Subject, t task) (crew, error) {
	if _, ok := os.LookupEnv(childEnv); ok {
		return nil, errors.New("this is a child process that did not call Child")
	}
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	cmd.WaitDelay = time.Second
	c := &child{cmd: cmd, words: &bytes.Buffer{}}
	cmd.Stderr = c.words
	if c.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.out = bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := c.out.ReadString('\n'); err != nil || line != "ready\n" {
		_ = c.in.Close()
		return nil, errors.Join(fmt.Errorf("it said %q, want ready", line), c.wait())
	}
	return c, nil
}

func (c *child) begin() { _, _ = fmt.Fprintln(c.in, "go") } // if the child is gone, collect returns the error

func (c *child) collect() (sum tally, err error) {
	err = json.NewDecoder(c.out).Decode(&sum)
	_ = c.in.Close()
	return sum, errors.Join(err, c.wait())
}

func (c *child) wait() error {
	if err := c.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %.600s", err, c.words)
	}
	return nil
}
