package locktest_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oversell/oversell/locktest"
)

// A flaw is one way in which the lock in memory is broken.
type flaw string

const (
	none          flaw = ""
	noExclusion   flaw = "no exclusion"           // every caller gets the lock
	localOnly     flaw = "only within a client"   // each client has its own lock
	blindRelease  flaw = "release without token"  // Unlock frees the lock of any holder
	neverRenews   flaw = "never renews"           // though it claims to
	neverSignals  flaw = "never signals"          // though it claims to
	earlySignal   flaw = "signals without a loss" // signals a loss after one renewal
	blindToServer flaw = "trusts a dead server"   // learns of a loss from the server, not from its clock
	lastFirst     flaw = "last come, first served"
	favourite     flaw = "starves other clients" // the first client's waiters go first
	forgetsWaiter flaw = "forgets a waiter"      // forgets each fifth waiter
	deaf          flaw = "deaf to its context"
	orphan        flaw = "grant to nobody" // a grant to a waiter that has hung up is never given back
	leaky         flaw = "leaves a goroutine"
)

var errLost = errors.New("the lease was lost")

// memory is a lock server in memory: first come, first served, with leases that expire.
type memory struct {
	ttl      time.Duration
	flaw     flaw
	frozen   sync.RWMutex // held for writing while the server is frozen
	commands atomic.Int64

	mu      sync.Mutex
	clients int
	token   int64
	locks   map[string]*memoryLock
}

type memoryLock struct {
	token   int64 // the holder's token; 0: free
	expires time.Time
	timer   *time.Timer
	line    []*waiter
}

type waiter struct {
	client int
	grant  chan int64
}

func newMemory(ttl time.Duration, f flaw) *memory {
	return &memory{ttl: ttl, flaw: f, locks: map[string]*memoryLock{}}
}

func (m *memory) subject() locktest.Subject {
	return locktest.Subject{
		Name: "memory", TTL: m.ttl, Renews: true, RenewEvery: m.ttl / 3, SignalsLoss: true, Fair: true,
		Connect: func(context.Context) (locktest.Client, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.clients++
			return &memoryClient{server: m, id: m.clients}, nil
		},
		Forget: func(_ context.Context, name string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.free(m.lock(name))
			return nil
		},
		Remaining: func(_ context.Context, name string) (time.Duration, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			if l := m.lock(name); l.token != 0 {
				return time.Until(l.expires), nil
			}
			return 0, nil
		},
		Waiting: func(_ context.Context, name string) (int, error) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return len(m.lock(name).line), nil
		},
		Freeze: func(context.Context) (func() error, error) {
			m.frozen.Lock()
			return func() error { m.frozen.Unlock(); return nil }, nil
		},
		Commands: func(context.Context) (int64, error) { return m.commands.Load(), nil },
	}
}

// call is one command: it waits while the server is frozen.
func (m *memory) call(do func()) {
	m.frozen.RLock()
	defer m.frozen.RUnlock()
	m.commands.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *memory) lock(name string) *memoryLock {
	if m.locks[name] == nil {
		m.locks[name] = &memoryLock{}
	}
	return m.locks[name]
}

func (m *memory) ask(name string, w *waiter) {
	l := m.lock(name)
	l.line = append(l.line, w)
	if m.flaw == noExclusion || l.token == 0 {
		m.grant(l)
	}
}

func (m *memory) grant(l *memoryLock) {
	if len(l.line) == 0 {
		return
	}
	next := 0
	switch m.flaw {
	case lastFirst:
		next = len(l.line) - 1
	case favourite:
		next = max(0, slices.IndexFunc(l.line, func(w *waiter) bool { return w.client%2 == 1 }))
	}
	w := l.line[next]
	l.line = slices.Delete(l.line, next, next+1)
	m.token++
	token := m.token
	if m.flaw == forgetsWaiter && token%5 == 0 {
		m.grant(l)
		return
	}
	l.token, l.expires = token, time.Now().Add(m.ttl)
	l.timer = time.AfterFunc(m.ttl, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if l.token == token && m.flaw != noExclusion {
			m.free(l)
		}
	})
	w.grant <- token
}

func (m *memory) free(l *memoryLock) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.token = 0
	m.grant(l)
}

func (m *memory) renew(name string, token int64) (held bool) {
	m.call(func() {
		l := m.lock(name)
		if held = l.token == token && l.timer.Stop(); held {
			l.timer.Reset(m.ttl)
			l.expires = time.Now().Add(m.ttl)
		}
	})
	return held
}

type memoryClient struct {
	server *memory
	id     int
}

func (c *memoryClient) Close() error {
	if c.server.flaw == leaky {
		go func() { select {} }()
	}
	return nil
}

func (c *memoryClient) Lock(ctx context.Context, name string) (locktest.Lease, error) {
	m := c.server
	key := name
	if m.flaw == localOnly {
		key += string(rune('0' + c.id))
	}
	w := &waiter{client: c.id, grant: make(chan int64, 1)}
	m.call(func() { m.ask(key, w) })
	hungUp := ctx.Done()
	if m.flaw == deaf {
		hungUp = nil
	}
	select {
	case token := <-w.grant:
		return newMemoryLease(m, key, token), nil
	case <-hungUp:
	}
	m.call(func() {
		l := m.lock(key)
		l.line = slices.DeleteFunc(l.line, func(o *waiter) bool { return o == w })
		select {
		case token := <-w.grant:
			if m.flaw != orphan && l.token == token {
				m.free(l)
			}
		default:
		}
	})
	return nil, ctx.Err()
}

type memoryLease struct {
	server *memory
	key    string
	token  int64
	lost   chan struct{}
	tell   func()
	stop   context.CancelFunc
	all    sync.WaitGroup
}

func newMemoryLease(m *memory, key string, token int64) *memoryLease {
	ctx, stop := context.WithCancel(context.Background())
	l := &memoryLease{server: m, key: key, token: token, lost: make(chan struct{}), stop: stop}
	l.tell = sync.OnceFunc(func() {
		if m.flaw != neverSignals {
			close(l.lost)
		}
	})
	if m.flaw != neverRenews {
		l.all.Go(func() { l.keep(ctx) })
	}
	return l
}

// keep renews every third of a TTL. The watchdog tells the holder when the
// server has not confirmed the lease for a TTL.
func (l *memoryLease) keep(ctx context.Context) {
	ttl := l.server.ttl
	watchdog := time.AfterFunc(ttl, func() {
		if l.server.flaw != blindToServer {
			l.tell()
		}
	})
	defer watchdog.Stop()
	ticker := time.NewTicker(ttl / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		begin := time.Now()
		if !l.server.renew(l.key, l.token) {
			l.tell()
			return
		}
		watchdog.Reset(ttl - time.Since(begin))
		if l.server.flaw == earlySignal {
			l.tell()
		}
	}
}

func (l *memoryLease) Lost() <-chan struct{} { return l.lost }

func (l *memoryLease) Unlock(context.Context) (err error) {
	l.stop()
	l.all.Wait()
	l.server.call(func() {
		lock := l.server.lock(l.key)
		if lock.token != l.token && l.server.flaw != blindRelease && l.server.flaw != noExclusion {
			err = errLost
			return
		}
		l.server.free(lock)
	})
	return err
}
