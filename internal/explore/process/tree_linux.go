package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// A tree is a process with all its descendants or, if `below` is true, only the descendants. A process stays in the
// tree until it ends, even if its parent changes.
type tree struct {
	root  int
	below bool // the root is a keeper, not part of the program
	procs map[int]*proc
	order []*thread // sorted: threads that ran most recently come first
	whole bool      // no process or thread has ended since the last walk
	still bool      // result of the last check: the waits of all threads are known
	scan  bool      // the kernel has no lists of children (CONFIG_PROC_CHILDREN)
	wchan bool      // result of wchanTells

	leader *file // lists the root's children, which include all orphans
}

type proc struct {
	pid     int
	leader  *file // lists the children of its first thread, and of threads that have ended
	task    *file // directory of its threads
	threads map[int]*thread
}

func newTree(root int, below bool) *tree {
	return &tree{root: root, below: below, procs: map[int]*proc{}, wchan: wchanTells()}
}

func (t *tree) close() {
	for _, p := range t.procs {
		p.close()
	}
	if t.leader != nil {
		t.leader.close()
	}
	t.procs, t.order, t.leader = map[int]*proc{}, nil, nil
}

// walk finds all processes, by the children of all threads. If a process ends meanwhile, the tree is not whole.
func (t *tree) walk() error {
	t.still = false
	if t.leader == nil {
		t.leader, _ = openFile(t.root, t.root, "children")
	}
	for pid, p := range t.procs {
		if _, err := tasks(pid); gone(err) || !p.alive() {
			p.close() // a new process may have its id by now
			delete(t.procs, pid)
		}
	}
	t.arrange()
	t.whole = true
	var pids, roots []int
	if _, err := tasks(t.root); !gone(err) {
		roots = append(roots, t.root)
		if !t.below {
			pids = append(pids, t.root)
		}
	}
	for pid := range t.procs { // their parent may have changed, so search below them, too
		roots = append(roots, pid)
		pids = append(pids, pid)
	}
	for _, root := range roots {
		found, err := descendants(root)
		if err != nil {
			return err
		}
		t.scan = found.scan
		t.whole = t.whole && !found.torn
		pids = append(pids, found.pids...)
	}
	for _, pid := range pids {
		if _, err := t.meet(pid); err != nil {
			return err
		}
	}
	return nil
}

// meet finds the threads of a process. It reports whether the set of its threads has changed.
func (t *tree) meet(pid int) (found bool, err error) {
	p := t.procs[pid]
	tids, err := tasks(pid)
	if gone(err) || err == nil && len(tids) == 0 {
		t.whole = false // another process may have its children now
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("threads of process %d: %w", pid, err)
	}
	if p == nil {
		p = &proc{pid: pid, threads: map[int]*thread{}}
		p.leader, _ = openFile(pid, pid, "children")
		p.task, _ = openFile(pid, pid, "..")
		t.procs[pid] = p
	}
	listed := map[int]bool{}
	for _, tid := range tids {
		listed[tid] = true
		if p.threads[tid] != nil {
			continue
		}
		thread, err := openThread(pid, tid, t.wchan)
		if gone(err) {
			t.whole = false
			continue
		}
		if err != nil {
			return false, err
		}
		p.threads[tid] = thread
		found = true
	}
	for tid, thread := range p.threads {
		if !listed[tid] {
			thread.close()
			delete(p.threads, tid)
			found = true // the order must be rebuilt
		}
	}
	if found {
		t.arrange()
	}
	return found, nil
}

func (t *tree) arrange() {
	t.order = t.order[:0]
	for _, p := range t.procs {
		for _, thread := range p.threads {
			t.order = append(t.order, thread)
		}
	}
}

// alive reports whether the process is still the one whose files are open.
func (p *proc) alive() bool {
	for _, t := range p.threads {
		if _, err := t.count(); err == nil {
			return true
		}
	}
	return len(p.threads) == 0
}

// complete reports whether all threads of the process are known: their number is the link count of the directory minus
// two. If these threads are still alive, there is no other thread. Listing them would take many times as long.
func (p *proc) complete() bool {
	var stat unix.Stat_t
	return p.task != nil && unix.Fstat(p.task.fd, &stat) == nil && int(stat.Nlink) == 2+len(p.threads)
}

func (p *proc) close() {
	for _, f := range []*file{p.leader, p.task} {
		if f != nil {
			f.close()
		}
	}
	for _, t := range p.threads {
		t.close()
	}
}

// A family lists the processes below one process.
type family struct {
	pids []int
	torn bool // a process ended meanwhile, so others may be missing
	scan bool // the kernel has no lists of children, so every process's parent was read
}

func descendants(root int) (f family, err error) {
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		f.scan = true
		f.pids, err = scanned(root)
		return f, err
	}
	seen := map[int]bool{root: true}
	for todo := []int{root}; len(todo) > 0; todo = todo[1:] {
		tids, err := tasks(todo[0])
		if gone(err) {
			f.torn = true
			continue
		}
		if err != nil {
			return f, err
		}
		for _, tid := range tids {
			b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", todo[0], tid))
			if gone(err) {
				f.torn = true
				continue
			}
			if err != nil {
				return f, err
			}
			for _, child := range numbers(b) {
				if !seen[child] {
					seen[child] = true
					f.pids, todo = append(f.pids, child), append(todo, child)
				}
			}
		}
	}
	return f, nil
}

// scanned returns the processes below root. It reads the parent of every process.
func scanned(root int) ([]int, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, err
	}
	children := map[int][]int{}
	for _, p := range all {
		if stat, err := p.Stat(); err == nil { // otherwise, the process has ended
			children[stat.PPID] = append(children[stat.PPID], p.PID)
		}
	}
	found := children[root]
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i]]...)
	}
	return found, nil
}

func tasks(pid int) (tids []int, _ error) {
	threads, err := procfs.AllThreads(pid)
	for _, t := range threads {
		tids = append(tids, t.PID)
	}
	return tids, err
}

// gone reports whether an error means that a process or thread has ended.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

func numbers(b []byte) (all []int) {
	for field := range bytes.FieldsSeq(b) {
		if n, err := strconv.Atoi(string(field)); err == nil {
			all = append(all, n)
		}
	}
	return all
}

// A file is a file of /proc that stays open, since it is read repeatedly.
type file struct{ fd int }

func openFile(pid, tid int, name string) (*file, error) {
	path := fmt.Sprintf("/proc/%d/task/%d/%s", pid, tid, name)
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: path, Err: err}
		}
		return &file{fd}, nil
	}
}

// read reads from the beginning of the file, at most len(into) bytes.
func (f *file) read(into []byte) ([]byte, error) {
	for {
		n, err := unix.Pread(f.fd, into, 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return into[:n], nil
	}
}

func (f *file) close() { _ = unix.Close(f.fd) }
