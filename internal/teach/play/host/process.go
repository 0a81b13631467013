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

// endPatience is how long a child may take to end by itself, when its input has ended.
const endPatience = 5 * time.Second

// A process is one child, and what it says.
type process struct {
	cmd     *exec.Cmd
	answers chan child.Answer // closed at its end
	gone    chan struct{}     // closed when it has ended; why says how
	why     string

	mu    sync.Mutex // of in
	in    io.WriteCloser
	close sync.Once
}

// start starts a child.
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

// listen hands answers on until the child has ended. One that writes what is no answer, or
// closes its output, is ended: who asks next would wait for ever.
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
	_ = p.cmd.Wait() // what it was is in errors
	p.why = said(errors)
	if p.why == "" && wrong != io.EOF {
		p.why = "it wrote what is no answer"
	}
	close(p.gone)
}

// send asks the child something.
func (p *process) send(r child.Request) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return json.NewEncoder(p.in).Encode(r)
}

// ask sends a request and returns its answer. progress is told how far a search is; stop ends
// it, and then the answer is what there is.
func (p *process) ask(r child.Request, progress func(child.Progress), stop <-chan struct{}) (child.Answer, error) {
	if err := p.send(r); err != nil {
		for range p.answers { // that nobody has asked for
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
			_ = p.send(child.Request{Op: child.Stop}) // an error: it has ended, and says so above
		case <-late.C:
			p.kill()
			return child.Answer{}, errSilent
		}
	}
}

// answerPatience is longer than the explorer waits for a command that hangs.
const answerPatience = time.Minute

var errSilent = errDied{"the game's process did not answer and was ended"}

// errDied is of a game whose process is no more.
type errDied struct{ why string }

func (e errDied) Error() string { return e.why + "; begin another game" }

// ended is what the child died of.
func (p *process) ended() error {
	if p.why == "" {
		return errDied{"the game has ended"}
	}
	return errDied{"the game's process has ended: " + p.why}
}

// end has the child end, and returns when it has.
func (p *process) end() {
	p.close.Do(func() {
		_ = p.in.Close() // not under mu: of a child that reads no more a send hangs
		late := time.AfterFunc(endPatience, p.kill)
		defer late.Stop()
		for range p.answers { // whoever asks last hears of it by the end of answers
		}
		<-p.gone
	})
	<-p.gone
}

func (p *process) kill() { _ = p.cmd.Process.Kill() } // an error: it has ended

// mostSaid is how much is kept of what a child writes on stderr.
const mostSaid = 16 << 10

// said is the line that says what was wrong: that of a panic, or else the first one.
func said(l *childlog.Log) string {
	first, _, _ := strings.Cut(strings.TrimSpace(l.String()), "\n")
	return fmt.Sprintf("%.200s", strings.TrimSpace(cmp.Or(childlog.Fatal(l.String()), first)))
}
