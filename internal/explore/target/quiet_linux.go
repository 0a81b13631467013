package target

import (
	"context"
	"fmt"
	"time"
)

// staysQuiet waits, with the gates open, until the programs have sent nothing for `quiet` of the file. A
// message that a server pushes to them counts, too. since is the earliest beginning of that time.
func (l *lookout) staysQuiet(ctx context.Context, since time.Time) error {
	quiet := l.x.app.Quiet
	if quiet == 0 {
		return nil
	}
	f := l.x.floor
	for deadline := time.Now().Add(quiet + l.x.patience); ; time.Sleep(time.Millisecond) {
		f.mu.Lock()
		last := f.sent
		f.mu.Unlock()
		if last.at.Before(since) {
			last.at = since
		}
		switch now := time.Now(); {
		case now.Sub(last.at) >= quiet:
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case now.After(deadline):
			all := []Poller{{Text: last.text, Server: last.server}}
			return fmt.Errorf("quiet: the program was never silent for %s; it last sent %q; shorten `quiet`, or let that pass with %s", quiet, short(last.text), ignoreLine(l.entries(all, nil)))
		}
	}
}
