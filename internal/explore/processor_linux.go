package explore

import (
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bind binds the process to its current processor. If that fails, the search is only slower.
func bind() (unbind func()) {
	var before, one unix.CPUSet
	var now uint32
	_, _, errno := unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&now)), 0, 0) // #nosec G103 -- x/sys lacks this call; the variable lives until it returns
	if errno != 0 || unix.SchedGetaffinity(0, &before) != nil {
		return func() {}
	}
	one.Set(int(now))
	bindThreads(one)
	return func() { bindThreads(before) }
}

// bindThreads binds every thread of this process. It lists the threads again until no new one appears, since an unbound
// thread may start another.
func bindThreads(to unix.CPUSet) {
	seen := map[int]bool{}
	for more := true; more; {
		more = false
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return
		}
		for _, t := range threads {
			id, err := strconv.Atoi(t.Name())
			if err != nil || seen[id] {
				continue
			}
			seen[id], more = true, true
			_ = unix.SchedSetaffinity(id, &to) // an error means that the thread has ended
		}
	}
}
