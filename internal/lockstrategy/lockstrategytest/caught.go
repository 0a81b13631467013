package lockstrategytest

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// rounds is how often the suite repeats a check that must fail for a broken strategy. If the check passes
// each time, the suite reports an error.
const rounds = 50

// caughtBy returns the message with which a check must fail for the strategy on this database, and whether
// it must fail. The parameter `tests` is the condition whose promise the check tests.
func caughtBy(w *world, check string, tests promise.Condition) (reason string, broken bool) {
	if tests != "" && w.entry.Promised(tests, w.engine.Database) == verdict.Holds {
		return "", false // the strategy is promised to hold on this database, so it must pass
	}
	reason, broken = w.entry.CaughtBy[check]
	return reason, broken
}

func mustCatch(t *testing.T, w *world, c check, reason string) {
	t.Helper()
	for range rounds {
		p := &probe{TB: t}
		p.run(func() { c.run(p, w) })
		if p.failed {
			if said := strings.Join(p.said, "; "); !regexp.MustCompile(reason).MatchString(said) {
				t.Errorf("caught, but for another reason than %q: %s", reason, said)
			}
			return
		}
	}
	t.Errorf("%d times not caught; it must be: %s", rounds, reason)
}

// A probe is a testing.TB that records a failure instead of reporting it.
type probe struct {
	testing.TB
	mu     sync.Mutex
	failed bool
	said   []string
}

// run calls f, and returns when f has returned or has ended by a Fatal.
func (p *probe) run(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

func (p *probe) fail(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = true
	p.said = append(p.said, text)
}

func (p *probe) Error(args ...any)                 { p.fail(fmt.Sprint(args...)) }
func (p *probe) Errorf(format string, args ...any) { p.fail(fmt.Sprintf(format, args...)) }
func (p *probe) Fatal(args ...any)                 { p.fail(fmt.Sprint(args...)); runtime.Goexit() }
func (p *probe) Fatalf(format string, args ...any) {
	p.fail(fmt.Sprintf(format, args...))
	runtime.Goexit()
}
