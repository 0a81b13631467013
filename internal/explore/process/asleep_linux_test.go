package process

import (
	"bytes"
	"io"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/tier"
)

// echo is a server whose threads answer each byte, after a while or at once.
const echo = `
import random, socket, threading, time
def serve(c):
    while b := c.recv(1):
        for _ in range(random.choice((1, 1000, 20000))): pass
        if b == b"t":
            t = threading.Thread(target=lambda: c.send(b)); t.start(); t.join()
        else:
            c.send(b)
s = socket.create_server(("127.0.0.1", 8080))
while True:
    threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`

// TestAsleep: a program that has a runnable process or thread at each moment is never asleep.
func TestAsleep(t *testing.T) {
	tier.Test(t, "busy programs take seconds to judge")
	for name, program := range map[string]string{
		"busy": `
print("begin")
while True: pass`,
		"a thread is busy": `
import threading
def busy():
    while True: pass
t = threading.Thread(target=busy); t.start(); print("begin"); t.join()`,
		"a grandchild is busy": `
import os
if os.fork() == 0:
    if os.fork() == 0:
        print("begin")
        while True: pass
    os.wait()
os.wait()`,
		// At each moment one of the two processes can run, since a writer wakes the other process before it waits.
		"two processes in turn": `
import os
(ar, aw), (br, bw) = os.pipe(), os.pipe()
child = os.fork() == 0
r, w = (ar, bw) if child else (br, aw)
if child: print("begin")
else: os.write(w, b"x")
while True: os.write(w, os.read(r, 1))`,
		// Here, a single check of each thread would find the program asleep after a few calls.
		"six processes in turn": `
import os
pipes = [os.pipe() for _ in range(6)]
for i in range(6):
    if os.fork() == 0:
        while True: os.write(pipes[(i + 1) % 6][1], os.read(pipes[i][0], 1))
os.write(pipes[0][1], b"x")
print("begin")
os.wait()`,
		"two threads in turn": `
import os, threading
(ar, aw), (br, bw) = os.pipe(), os.pipe()
def turn(r, w):
    while True: os.write(w, os.read(r, 1))
threading.Thread(target=turn, args=(ar, bw)).start()
os.write(aw, b"x"); print("begin")
turn(br, aw)`,
		"a child after the other": `
import os
print("begin")
while True:
    if os.fork() == 0: os._exit(0)
    os.wait()`,
		"a thread after the other": `
import threading
print("begin")
while True:
    t = threading.Thread(target=lambda: None); t.start(); t.join()`,
		// No process waits for another process, since each loses its parent.
		"a daemon after the other": `
import os
print("begin")
while True:
    if os.fork(): os._exit(0)`,
	} {
		t.Run(name, func(t *testing.T) {
			p, log := begin(t, nil, python(t, program))
			require.Eventually(t, "it has begun", log.has("begin"))
			looks := 0
			for stop := time.Now().Add(100 * time.Millisecond); looks < 1000 || time.Now().Before(stop); looks++ {
				if p.Asleep() {
					t.Fatalf("asleep at look %d", looks)
				}
				require.NoError(t, p.Refresh())
			}
			t.Logf("%d looks", looks)
		})
	}
}

// TestRests: a waiting process is asleep, whichever process has started it.
func TestRests(t *testing.T) {
	for name, program := range map[string]string{
		"a pipe": `
import os
print("begin"); os.read(os.pipe()[0], 1)`,
		"threads and children": `
import os, threading
r, w = os.pipe()
for i in range(3):
    if os.fork() == 0: break
for i in range(3): threading.Thread(target=os.read, args=(r, 1)).start()
print("begin"); os.read(r, 1)`,
		"a child that ended and nobody asks for": `
import os
r, w = os.pipe()
if os.fork() == 0: os._exit(0)
print("begin"); os.read(r, 1)`,
	} {
		t.Run(name, func(t *testing.T) {
			p, log := begin(t, nil, python(t, program))
			require.Eventually(t, "it has begun", log.has("begin"))
			require.Eventually(t, "it sleeps", p.Asleep)
			for range 100 {
				if !p.Asleep() {
					t.Fatal("it has woken")
				}
			}
		})
	}
}

// TestStopped: a stopped process is not asleep, since it will continue its work.
func TestStopped(t *testing.T) {
	p, log := begin(t, nil, python(t, `
import os
print("begin"); os.read(os.pipe()[0], 1)`))
	require.Eventually(t, "it has begun", log.has("begin"))
	require.Eventually(t, "it sleeps", p.Asleep)
	signal := func(s syscall.Signal) {
		t.Helper()
		for pid := range p.tree.procs {
			require.NoError(t, syscall.Kill(pid, s))
		}
	}
	signal(syscall.SIGSTOP)
	require.Eventually(t, "it is stopped", func() bool { return !p.Asleep() })
	for range 100 {
		if p.Asleep() {
			t.Fatal("it was stopped, and sleeps")
		}
	}
	signal(syscall.SIGCONT)
	require.Eventually(t, "it sleeps again", p.Asleep)
}

// TestAsleepAnswers: when a program is asleep, it has sent all its answers.
func TestAsleepAnswers(t *testing.T) {
	s := newTestNetwork(t)
	p, _ := begin(t, s, python(t, echo))
	c := dial(t, s, "127.0.0.1:8080")
	raw, err := c.SyscallConn()
	require.NoError(t, err)
	for i := range 300 {
		sent := []byte{"et"[i%2]}
		if _, err := c.Write(sent); err != nil {
			t.Fatal(err)
		}
		// The kernel may still have the byte in a queue (softirq).
		require.Eventually(t, "it has arrived", func() bool {
			left := 0
			err := raw.Control(func(fd uintptr) { left, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
			return err == nil && left == 0
		})
		require.Eventually(t, "it rests", p.Asleep)
		require.Eventually(t, "its answer has arrived", func() bool {
			n, err := s.Unacknowledged(c)
			require.NoError(t, err)
			unread := 0
			err = raw.Control(func(fd uintptr) { unread, _ = unix.IoctlGetInt(int(fd), unix.SIOCINQ) })
			return err == nil && (n == 0 || unread > 0)
		})
		got := make([]byte, 1)
		err := raw.Control(func(fd uintptr) {
			if _, err := syscall.Read(int(fd), got); err != nil {
				t.Fatalf("answer %d was not there: %v", i, err)
			}
		})
		if err != nil || !bytes.Equal(got, sent) {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// TestAsleepLog: a program that waits for space in its log's pipe is not asleep, since it wakes by itself.
func TestAsleepLog(t *testing.T) {
	read, write := io.Pipe()
	p, err := Start(nil, Command{Line: "cat /dev/zero", Log: write})
	require.NoError(t, err)
	t.Cleanup(p.Stop)
	t.Cleanup(func() { _ = read.Close() })
	if _, err := io.ReadFull(read, make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, p.Refresh())
	require.Eventually(t, "its one thread sleeps", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.tree.asleep(func() bool { return true })
	})
	if p.Asleep() {
		t.Error("asleep, with a full pipe")
	}
}

// TestUnreadable: a process that cannot be inspected is never asleep.
func TestUnreadable(t *testing.T) {
	p, _ := begin(t, nil, "sleep 987004")
	require.Eventually(t, "it sleeps", p.Asleep)
	for pid, one := range p.tree.procs {
		if !one.complete() {
			t.Errorf("the threads of %d are not known by their number", pid)
		}
	}
	none, err := os.Open(os.DevNull) // reads as empty
	require.NoError(t, err)
	defer none.Close()
	for name, spoil := range map[string]func(*thread) *file{
		"no states": func(th *thread) *file { return th.stat },
		"no calls":  func(th *thread) *file { return th.syscall },
	} {
		th := p.tree.order[0]
		f := spoil(th)
		was := f.fd
		f.fd = int(none.Fd())
		th.slept = false
		if p.Asleep() {
			t.Errorf("asleep, with %s", name)
		}
		f.fd = was
		require.Eventually(t, "it sleeps again", p.Asleep)
	}
	if n, err := p.tree.order[0].switches(); err != nil || n == 0 {
		t.Errorf("switched %d times, %v", n, err)
	}
	if n, err := switchesIn([]byte("Name:\tx\nvoluntary_ctxt_switches:\t7\n")); err == nil {
		t.Errorf("a status without counts has %d", n)
	}
	if n, err := switchesIn([]byte("Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t5\n")); err != nil || n != 12 {
		t.Errorf("got %d, %v, want 12", n, err)
	}
}

// TestScanned: without lists of children, the tree uses parent ids.
func TestScanned(t *testing.T) {
	p, log := begin(t, nil, python(t, `
import os
for i in range(3): os.fork()
print("begin"); os.read(os.pipe()[0], 1)`))
	require.Eventually(t, "all have begun", func() bool { return bytes.Count([]byte(log.String()), []byte("begin")) == 8 })
	pids, err := scanned(p.keeper.pid)
	if err != nil || len(pids) != 8 {
		t.Errorf("scanned %v, %v", pids, err)
	}
	below, err := descendants(p.keeper.pid)
	if err != nil || len(below.pids) != 8 {
		t.Errorf("listed %v, %v", below, err)
	}
	p.mu.Lock()
	p.tree.scan = true
	p.mu.Unlock()
	require.Eventually(t, "it sleeps", p.Asleep)
}
