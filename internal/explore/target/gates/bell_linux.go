package gates

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A bell wakes the scheduler when something happens at the gates, or after a time. While no goroutine can run, Go
// rounds a timer up to 1 ms, since its poller counts in milliseconds. So the bell uses a timerfd (timerfd_create(2)).
// Any goroutine may ring; only one at a time may wait.
type bell struct {
	rung  chan struct{}
	timer *os.File
	fd    int // descriptor of timer
}

func newBell() (*bell, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	b := &bell{make(chan struct{}, 1), os.NewFile(uintptr(fd), "timer"), fd}
	go func() {
		var count [8]byte
		for {
			if _, err := b.timer.Read(count[:]); err != nil {
				return // closed
			}
			b.ring()
		}
	}()
	return b, nil
}

// ring ends the current wait. If there is none, it ends the next wait at once.
func (b *bell) ring() {
	select {
	case b.rung <- struct{}{}:
	default:
	}
}

// wait returns when the bell rings, or after the time d. If the bell has rung since the last wait, it returns at once.
// It may also return early. If d is not positive, it does not wait.
func (b *bell) wait(d time.Duration) {
	if d <= 0 {
		return
	}
	select {
	case <-b.rung:
		return
	default:
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
	if unix.TimerfdSettime(b.fd, 0, &at, nil) != nil {
		time.Sleep(d)
		return
	}
	<-b.rung
}

func (b *bell) close() error { return b.timer.Close() }
