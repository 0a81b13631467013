package own

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newNap uses a kernel timer. The Go runtime rounds a sleep in an idle process up to a millisecond. With that, a search
// would spend most of its time in sleeps.
func newNap() *nap {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil { // the system has no such timer
		return plainNap()
	}
	n := &nap{over: make(chan struct{}, 1)}
	timer := os.NewFile(uintptr(fd), "timerfd")
	n.start = func(d time.Duration) {
		_ = unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(d.Nanoseconds())}, nil)
	}
	n.close = func() { _ = timer.Close() }
	go func() {
		for times := make([]byte, 8); ; n.end() {
			if _, err := timer.Read(times); err != nil {
				return
			}
		}
	}()
	return n
}
