package target

import (
	"context"
	"fmt"
	"time"
)

// staysQuiet waits, with the gates open, until the programs have sent nothing for `quiet` of the file.
// Ignored commands do not count, but a message that a server pushes does. since is the earliest beginning
// of that time.
func (l *ownTraffic) staysQuiet(ctx context.Context, since time.Time) error {
	quiet := l.x.app.Quiet
	if quiet == 0 {
		return nil
	}
	f := l.x.gateTable
	var seen pollers
	l.begin(&seen)
	defer l.end()
	for deadline := time.Now().Add(quiet + l.x.patience); ; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		last := f.sent
		f.mu.Unlock()
		if last.Before(since) {
			last = since
		}
		switch now := time.Now(); {
		case now.Sub(last) >= quiet:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case now.After(deadline):
			l.end() // nothing changes seen any more
			return fmt.Errorf("quiet: the program was never silent for %s; shorten `quiet`%s", quiet, l.advice(seen.list()))
		}
	}
}
