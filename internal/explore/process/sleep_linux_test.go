package process

import (
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/oversell/oversell/internal/require"
)

// sleeps is a server with an idle loop and a pool of threads that wait with time-outs. A request says how to wait. Another
// sleep follows until the client stops it, so that even a slow machine observes one.
const sleeps = `
import os, queue, select, socket, threading, time
q = queue.Queue()
def pool():
    while True:
        try: q.get(timeout=0.3)()
        except queue.Empty: pass
for i in range(4): threading.Thread(target=pool, daemon=True).start()
never = os.pipe()[0]
ways = {
    b"a": lambda: time.sleep(0.3),
    b"b": lambda: threading.Event().wait(0.3),
    b"c": lambda: select.select([], [], [], 0.3),
    b"d": lambda: os.system("exec sleep 0.3"),
    b"e": lambda: poll(300),
    b"f": lambda: [time.sleep(0.001) for i in range(200)],
    b"p": lambda: in_pool(lambda: time.sleep(0.3)),
    b"q": lambda: in_pool(lambda: None),
    b"r": lambda: os.read(never, 1),
    b"s": lambda: time.sleep(60),
    b"t": lambda: poll(60000),
}
def poll(ms):
    p = select.poll(); p.register(never); p.poll(ms)
def in_pool(f):
    done = threading.Lock(); done.acquire()
    q.put(lambda: (f(), done.release()))
    done.acquire()
def serve(c):
    while b := c.recv(1):
        ways[b]()
        if b in b"abcdefp":
            while not select.select([c], [], [], 0)[0]: ways[b]()
            c.recv(1)
        c.send(b)
s = socket.create_server(("127.0.0.1", 8080))
p = select.poll(); p.register(s)
while True:
    if p.poll(500): threading.Thread(target=serve, args=(s.accept()[0],), daemon=True).start()
`

// asleepNow waits until Asleep returns true, since idle loops wake from time to time.
func asleepNow(t *testing.T, p *Program) {
	t.Helper()
	require.Eventually(t, "it sleeps", p.Asleep)
}

func baseline(t *testing.T, p *Program) {
	t.Helper()
	for range 20 {
		asleepNow(t, p)
		p.Baseline()
		time.Sleep(5 * time.Millisecond) // meanwhile, the program's loops run
	}
}

// TestSleeps: a process that waits only for time sleeps, unless it always waits like that. A process that waits for
// something else does not.
func TestSleeps(t *testing.T) {
	t.Parallel()
	s := newTestNetwork(t)
	p, _ := begin(t, s, python(t, sleeps))
	c := dial(t, s, "127.0.0.1:8080")
	ask := func(c io.ReadWriter, way string) {
		t.Helper()
		if _, err := io.WriteString(c, way); err != nil {
			t.Fatal(err)
		}
	}
	answered := func(c io.ReadWriter) {
		t.Helper()
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	ask(c, "q")
	answered(c)
	asleepNow(t, p)
	if !p.Sleeping(5 * time.Second) {
		t.Error("without a baseline each timed wait is a sleep")
	}
	baseline(t, p)
	idle := func(what string) {
		t.Helper()
		for range 20 {
			sleeps, sure := false, false
			require.Eventually(t, "every wait is read", func() bool { // the pool's threads wake in between
				asleepNow(t, p)
				sleeps, sure = p.sleeping(5*time.Second, false)
				return sure
			})
			if sleeps {
				waits, known := p.tree.waits()
				t.Errorf("%s: nobody sleeps (%v): %+v, when idle %+v", what, known, waits, p.idle.most)
				return
			}
		}
	}
	idle("idle")
	for _, way := range []string{"a", "b", "c", "d", "e", "f", "p"} {
		ask(c, way)
		// At the first check, the request may not have reached the program.
		require.Eventually(t, way+" sleeps", func() bool { return p.Asleep() && p.Sleeping(5*time.Second) })
		if way == "a" || way == "f" { // 0.3 s, 1 ms
			require.Eventually(t, way+" wakes soon, or does not", func() bool { return p.Asleep() && p.Wakes(5*time.Millisecond) == (way == "f") })
		}
		ask(c, ".")
		answered(c)
		idle("after " + way)
	}
	for range 20 {
		ask(c, "q") // any thread of the pool may serve it
		answered(c)
		idle("the pool")
	}
	for _, way := range []string{"r", "s", "t"} {
		other := dial(t, s, "127.0.0.1:8080")
		ask(other, way)
		require.Eventually(t, "the request is there", func() bool {
			return p.Asleep() && len(p.tree.order) >= 1+4+1 // main, pool, serve
		})
		idle(way)
	}
}

// TestSleep checks which waits count as sleeps.
func TestSleep(t *testing.T) {
	futex := func(tid int, depth, word uint64) wait {
		return wait{tid: tid, at: place{kind: "worker", call: 202, pc: 7, depth: depth}, sp: uint64(tid)<<12 + depth, word: word, left: time.Second}
	}
	loop := func(kind string, left time.Duration) wait {
		return wait{tid: 1, at: place{kind: kind, call: 7, loop: true}, left: left}
	}
	for _, c := range []struct {
		name      string
		idle, now []wait
		want      bool
	}{
		{"nobody", nil, nil, false},
		{"the first", nil, []wait{futex(1, 16, 8)}, true},
		{"the same", []wait{futex(1, 16, 8)}, []wait{futex(1, 16, 8)}, false},
		{"another of the pool", []wait{futex(1, 16, 8)}, []wait{futex(2, 16, 16)}, false},
		{"one more", []wait{futex(1, 16, 8)}, []wait{futex(1, 16, 8), futex(2, 16, 16)}, true},
		{"as many as there were", []wait{futex(1, 16, 8), futex(2, 16, 16)}, []wait{futex(3, 16, 8), futex(2, 16, 16)}, false},
		{"deeper in the program", []wait{futex(1, 16, 8)}, []wait{futex(1, 48, 8)}, true},
		{"a loop's", []wait{loop("main", time.Second)}, []wait{loop("main", 900*time.Millisecond)}, false},
		{"shorter than a loop's", []wait{loop("main", time.Second)}, []wait{loop("main", 899*time.Millisecond)}, true},
		{"in another kind of thread", []wait{loop("main", time.Second)}, []wait{loop("worker", time.Second)}, true},
		{"a long one", nil, []wait{loop("main", time.Minute)}, false},
		{"how long nobody knows", nil, []wait{loop("main", -1)}, true},
		{"not known in a loop", []wait{loop("main", time.Second)}, []wait{loop("main", -1)}, true},
		{"two loops, one other", []wait{loop("main", time.Second)}, []wait{loop("main", time.Millisecond), loop("main", time.Second)}, true},
	} {
		var i idle
		i.note(c.idle)
		if got := i.sleep(c.now, 5*time.Second); got != c.want {
			t.Errorf("%s: got %v", c.name, got)
		}
	}
}

// TestSleepsTimer: a wait for a timer descriptor counts as a sleep.
func TestSleepsTimer(t *testing.T) {
	t.Parallel()
	s := newTestNetwork(t)
	p, _ := begin(t, s, python(t, `
import ctypes, os, select, socket, struct
libc = ctypes.CDLL(None)
timer = libc.timerfd_create(1, 0)
s = socket.create_server(("127.0.0.1", 8080))
c = s.accept()[0]
e = select.epoll(); e.register(timer); e.register(c, select.EPOLLIN)
while True:
    for fd, _ in e.poll():
        if fd != timer: sleeps = c.recv(1) == b"x"
        else: os.read(timer, 8)
        if sleeps: libc.timerfd_settime(timer, 0, struct.pack("qqqq", 0, 0, 0, 300000000), None)
        elif fd == timer: c.send(b"x")
`))
	c := dial(t, s, "127.0.0.1:8080")
	baseline(t, p)
	require.Eventually(t, "it has nothing to do", func() bool { return p.Asleep() && !p.Sleeping(time.Minute) })
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	require.Eventually(t, "its timer is near, and not as near as a millisecond", func() bool {
		return p.Asleep() && p.Sleeping(time.Minute) && !p.Sleeping(time.Millisecond)
	})
	if _, err := c.Write([]byte(".")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	require.Eventually(t, "its timer has fired", func() bool { return p.Asleep() && !p.Sleeping(time.Minute) })
}

// TestWait parses the kernel's description of a thread's wait.
func TestWait(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the numbers of its calls are amd64's")
	}
	for in, want := range map[string]bool{
		"running\n":             false,
		"":                      false,
		"-1 0x7ffe 0x7f00\n":    false,
		"0 0x0 0x1 0x1 0x0 0x0": false, // truncated
		"0 0x0 0x1 0x1 0x0 0x0 0x0 0x7ffe 0x7f\n":                  false, // read
		"281 0xe 0x7f 0x400 0xffffffff 0x0 0x8 0x7ffe 0x7f\n":      false, // epoll_pwait without a time-out
		"281 0xe 0x7f 0x400 0x64 0x0 0x8 0x7ffe 0x7f\n":            true,
		"7 0x7f 0x1 0x1f4 0x0 0x0 0x0 0x7ffe 0x7f\n":               true,
		"202 0x56 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe 0x7f\n":      false, // futex without a time-out
		"202 0x56 0x189 0x0 0x7ffe 0x0 0xffffffff 0x7ffe 0x7f\n":   true,
		"202 0x56 0x81 0x1 0x7ffe 0x0 0xffffffff 0x7ffe 0x7f\n":    false, // FUTEX_WAKE
		"230 0x1 0x1 0x7ffe 0x0 0x0 0x0 0x7ffe 0x7f\n":             true,  // clock_nanosleep
		"219 0x1 0x1 0x7ffe 0x0 0x0 0x0 0x7ffe 0x7f\n":             true,  // restart_syscall
		"219 0x1 0x1 0x7ffe 0x0 0x0 0x0 0x7ffe 0x7f 0x1 0x2 0x3\n": false,
	} {
		th := &thread{}
		th.size = copy(th.call[:], in)
		if _, timed := th.wait(); timed != want {
			t.Errorf("%q: %v", in, timed)
		}
	}
	th := &thread{}
	for _, line := range []string{"7 0x7f 0x1 0x1f4 0x0 0x0 0x0 0x7ffe 0x7f", "219 0x7f 0x1 0x1f4 0x0 0x0 0x0 0x7ffe 0x7f"} {
		th.size = copy(th.call[:], line)
		if w, timed := th.wait(); !timed || w.left != 500*time.Millisecond || w.at.call != 7 {
			t.Errorf("%s: %+v", line, w)
		}
	}
	th.size = copy(th.call[:], "219 0x7f 0x1 0x1f5 0x0 0x0 0x0 0x7ffe 0x7f")
	if w, timed := th.wait(); !timed || w.left != -1 {
		t.Errorf("another call is %+v", w)
	}
}
