package host

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/teach/childlog"
	"github.com/oversell/oversell/internal/teach/play/child"
)

// endPatience is how long a child may take to end after the end of its input.
const endPatience = 5 * time.Second

// A process is one child and its answers.
type process struct {
	cmd     *exec.Cmd
	answers chan child.Answer // closed after the last answer
	gone    chan struct{}     // closed when the child has ended; the field why has the reason
	why     string

	mu    sync.Mutex // guards in
	in    io.WriteCloser
	close sync.Once
}

func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, answers: make(chan child.Answer), gone: make(chan struct{})}
	errors := &childlog.Log{Most: mostSaid}
	cmd.Stderr = errors
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go p.listen(out, errors)
	return p, nil
}

// listen passes answers on until the child has ended. It ends a child that writes an invalid answer
// or closes its output, since the next request would wait forever.
func (p *process) listen(out io.Reader, errors *childlog.Log) {
	var wrong error
	for answers := json.NewDecoder(out); ; {
		var a child.Answer
		if wrong = answers.Decode(&a); wrong != nil {
			break
		}
		p.answers <- a
	}
	p.kill()
	close(p.answers)
	_ = p.cmd.Wait() // its stderr, in errors, has the reason
	p.why = said(errors)
	if p.why == "" && wrong != io.EOF {
		p.why = "it wrote what is no answer"
	}
	close(p.gone)
}

func (p *process) send(r child.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return json.NewEncoder(p.in).Encode(r)
}

// ask sends a request and returns its answer. It calls the function `progress` during a search. If the caller
// closes the channel `stop`, the search ends and the answer is the result so far.
func (p *process) ask(r child.Request, progress func(child.Progress), stop <-chan struct{}) (child.Answer, error) {
	if err := p.send(r); err != nil {
		for range p.answers { // discard answers without a request
		}
		<-p.gone
		return child.Answer{}, p.ended()
	}
	late := time.NewTimer(answerPatience + r.Effort.Budget)
	defer late.Stop()
	for {
		select {
		case a, more := <-p.answers:
			switch {
			case !more:
				<-p.gone
				return a, p.ended()
			case a.Progress == nil:
				return a, nil
			case progress != nil:
				progress(*a.Progress)
			}
		case <-stop:
			stop = nil
			_ = p.send(child.Request{Op: child.Stop}) // an error means that the child has ended; the case above reports that
		case <-late.C:
			p.kill()
			return child.Answer{}, errSilent
		}
	}
}

// answerPatience limits the wait for an answer. It is longer than the explorer waits for a command that hangs.
const answerPatience = time.Minute

var errSilent = errDied{"the game's process did not answer and was ended"}

type errDied struct{ why string }

func (e errDied) Error() string { return e.why + "; begin another game" }

func (p *process) ended() error {
	if p.why == "" {
		return errDied{"the game has ended"}
	}
	return errDied{"the game's process has ended: " + p.why}
}

// end makes the child end and returns when it has.
func (p *process) end() {
	p.close.Do(func() {
		_ = p.in.Close() // without locking mu: a send holds it as long as the child does not read
		late := time.AfterFunc(endPatience, p.kill)
		defer late.Stop()
		for range p.answers { // discard answers until the channel is closed
		}
		<-p.gone
	})
	<-p.gone
}

func (p *process) kill() { _ = p.cmd.Process.Kill() } // an error means that the child has ended

// mostSaid is how many bytes of a child's stderr are kept.
const mostSaid = 16 << 10

// said returns the line of stderr with the reason: the line of a panic, or else the first line.
func said(l *childlog.Log) string {
	first, _, _ := strings.Cut(strings.TrimSpace(l.String()), "\n")
	return fmt.Sprintf("%.200s", strings.TrimSpace(cmp.Or(childlog.Fatal(l.String()), first)))
}
