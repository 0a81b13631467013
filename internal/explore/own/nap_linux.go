package own

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newNap uses a timer of the kernel's: where the process has nothing else to do the
// runtime makes a millisecond of a shorter sleep, and most of a search would be that.
func newNap() *nap {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil { // not on this system
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
