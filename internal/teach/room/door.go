package room

import (
	"context"
	"fmt"
	"time"
)

// A door is one opening of the sale. It holds back buyers that press early, and lets them all in at the same
// moment.
type door struct {
	opens  time.Time
	opened chan struct{} // closed when the door opens
	shut   chan struct{} // closed when the door is shut
	timer  *time.Timer
}

func newDoor(after time.Duration) *door {
	d := &door{opens: time.Now().Add(after), opened: make(chan struct{}), shut: make(chan struct{})}
	if after == 0 {
		close(d.opened)
		return d
	}
	d.timer = time.AfterFunc(after, func() { close(d.opened) })
	return d
}

func (d *door) isOpen() bool {
	select {
	case <-d.opened:
		return true
	default:
		return false
	}
}

// shutNow sends the waiting buyers away. It may be called only once.
func (d *door) shutNow() {
	if d.timer != nil {
		d.timer.Stop()
	}
	close(d.shut)
}

// wait returns when the door opens, or returns errShut if the door is shut before that.
func (d *door) wait(ctx context.Context) error {
	select {
	case <-d.opened:
		return nil
	case <-d.shut:
		return fmt.Errorf("%w: the leader shut it before you were in", errShut)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
