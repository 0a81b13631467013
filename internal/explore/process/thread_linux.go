package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// A thread is a thread of the program, with the results of the last checks.
type thread struct {
	pid, tid int
	kind     string // name without digits, which is the same for the members of a pool

	schedstat, syscall, stat, wchan, children *file

	ran   uint64 // how often it had been switched in at the last check
	slept bool   // it slept at the last read of `ran`, and all threads that it had started by then are known
	ended bool   // the thread has ended
	call  [192]byte
	size  int       // length of the line in call, from /proc/.../syscall
	timed [9]uint64 // the fields of that line for the last wait with a time-out
}

// openThread opens the files of a thread in /proc. If the thread ends meanwhile, gone(err) is true.
func openThread(pid, tid int, wchan bool) (*thread, error) {
	t := &thread{pid: pid, tid: tid}
	err := t.open(wchan)
	if err == nil {
		return t, nil
	}
	t.close()
	leaves, missing := leaving(pid, tid)
	switch {
	case missing != nil:
		return nil, missing
	case gone(err):
		return nil, fmt.Errorf("this kernel does not show what threads wait for, so the search cannot tell when a program is idle: %v", err)
	case errors.Is(err, fs.ErrPermission) && leaves: // the files of an ending thread belong to root (proc_pid(5))
		return nil, unix.ESRCH
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("what process %d waits for may not be read (%w): run this as root, or have the program started by it", pid, err)
	}
	return nil, err
}

// open opens and reads all files that will be read.
func (t *thread) open(wchan bool) (err error) {
	if t.schedstat, err = openFile(t.pid, t.tid, "schedstat"); err != nil {
		return err
	}
	if t.stat, err = openFile(t.pid, t.tid, "stat"); err != nil {
		return err
	}
	if _, err = t.count(); err != nil {
		return err
	}
	if _, err = t.resting(); err != nil || t.ended {
		return err // an ended thread has nothing else to read
	}
	if t.syscall, err = openFile(t.pid, t.tid, "syscall"); err != nil {
		return err
	}
	if wchan {
		t.wchan, _ = openFile(t.pid, t.tid, "wchan")
	}
	t.children, _ = openFile(t.pid, t.tid, "children")
	_, err = t.blocked()
	return err
}

// leaving reports whether a thread is about to end (flag PF_EXITING in /proc/PID/stat, include/linux/sched.h). It
// fails if the thread has ended.
func leaving(pid, tid int) (bool, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
	if err != nil {
		return false, unix.ESRCH
	}
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // state, parent, group, session, tty, its group, flags
	if len(f) < 7 {
		return false, unix.ESRCH
	}
	flags, err := strconv.ParseUint(string(f[6]), 10, 64)
	return err == nil && flags&4 != 0, nil
}

func (t *thread) close() {
	for _, f := range []*file{t.schedstat, t.syscall, t.stat, t.wchan, t.children} {
		if f != nil {
			f.close()
		}
	}
}

// count returns how often the thread has been switched in (/proc/PID/task/TID/schedstat, third number;
// sched-stats.rst in the kernel's documentation).
func (t *thread) count() (uint64, error) {
	var buf [96]byte
	b, err := t.schedstat.read(buf[:])
	if err != nil {
		return 0, err
	}
	b = bytes.TrimSuffix(b, []byte("\n"))
	var n uint64
	for _, c := range b[bytes.LastIndexByte(b, ' ')+1:] {
		n = n*10 + uint64(c-'0')
	}
	if n > 0 {
		return n, nil
	}
	return t.switches()
}

// switches returns how often the thread has been switched out, for kernels without the count of schedstat.
func (t *thread) switches() (uint64, error) {
	f, err := openFile(t.pid, t.tid, "status")
	if err != nil {
		return 0, err
	}
	defer f.close()
	var buf [4096]byte
	b, err := f.read(buf[:])
	if err != nil {
		return 0, err
	}
	return switchesIn(b)
}

func switchesIn(status []byte) (sum uint64, err error) {
	for _, name := range []string{"\nvoluntary_ctxt_switches:\t", "\nnonvoluntary_ctxt_switches:\t"} {
		_, after, found := bytes.Cut(status, []byte(name))
		value, _, _ := bytes.Cut(after, []byte("\n"))
		n, err := strconv.ParseUint(string(value), 10, 64)
		if !found || err != nil {
			return 0, errors.New("this kernel counts no context switches of threads, so the search cannot tell when a program is idle")
		}
		sum += n
	}
	return sum, nil
}

// blocked reports whether the thread waits, and records its system call. The kernel answers only if the thread is off
// its processor and off the run queue, and does not run meanwhile (task_current_syscall in lib/syscall.c). The state
// alone is not enough: it also says "sleeping" for a thread that is about to check again whether it must sleep. Another
// processor may already be waking the thread; the method `resting` detects that.
func (t *thread) blocked() (bool, error) {
	b, err := t.syscall.read(t.call[:])
	if err != nil {
		return false, err
	}
	t.size = len(b)
	return len(b) > 0 && b[0] != 'r', nil // "running" means that it is not blocked
}

// resting reports whether only the awaited event can wake the thread from its state. It excludes D, a wait for a disk. It
// excludes T and t, stopped by Ctrl-Z or a debugger: such a thread continues its work. It also sets the thread's kind.
func (t *thread) resting() (bool, error) {
	var buf [128]byte
	b, err := t.stat.read(buf[:]) // id (name) state ...
	if err != nil {
		return false, err
	}
	begin, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if begin < 0 || end < begin || end+2 >= len(b) {
		return false, nil
	}
	t.kind = string(bytes.TrimRight(b[begin+1:end], "0123456789-_# "))
	switch b[end+2] {
	case 'Z', 'X':
		t.ended = true
		return true, nil
	case 'S', 'I':
		return true, nil
	}
	return false, nil
}

// asleep reports whether the thread has not been woken. The thread must have been blocked, and not switched in since.
func (t *thread) asleep() (bool, error) {
	if t.wchan != nil { // contains the name of a function only if the thread is blocked; takes a fifth of the time
		var buf [64]byte
		if b, err := t.wchan.read(buf[:]); err != nil || len(b) > 0 && b[0] != '0' {
			return err == nil, err
		}
	}
	return t.resting()
}

// wchanTells reports whether the kernel shows a wchan only for threads that are blocked and not yet woken
// (get_wchan in kernel/sched/core.c, since Linux 5.16).
func wchanTells() bool {
	var name unix.Utsname
	if unix.Uname(&name) != nil {
		return false
	}
	major, minor := 0, 0
	_, err := fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor)
	return err == nil && (major > 5 || major == 5 && minor >= 16)
}

// memory reads memory of the thread's process (process_vm_readv(2)).
func (t *thread) memory(at uint64, into []byte) bool {
	if len(into) == 0 {
		return true
	}
	local := []unix.Iovec{{Base: &into[0]}}
	local[0].SetLen(len(into))
	n, err := unix.ProcessVMReadv(t.tid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(into)}}, 0)
	return err == nil && n == len(into)
}
