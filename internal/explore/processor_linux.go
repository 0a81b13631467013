package explore

import (
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bind binds the process to the processor that it runs on now. Where the system
// does not let it, nothing is lost but speed.
func bind() (unbind func()) {
	var before, one unix.CPUSet
	var now uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&now)), 0, 0)
	if errno != 0 || unix.SchedGetaffinity(0, &before) != nil {
		return func() {}
	}
	one.Set(int(now))
	bindThreads(one)
	return func() { bindThreads(before) }
}

// bindThreads looks until it finds no thread that is not bound so: one that was
// not may have started another meanwhile.
func bindThreads(to unix.CPUSet) {
	for changed := true; changed; {
		changed = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			var now unix.CPUSet
			if err != nil || unix.SchedGetaffinity(id, &now) != nil || now == to { // or it has ended
				continue
			}
			changed = unix.SchedSetaffinity(id, &to) == nil || changed
		}
	}
}
