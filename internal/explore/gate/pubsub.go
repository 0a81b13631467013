package gate

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net"
	"sync"
	"time"
)

// PubSub counts what is on its way to the subscribers: a buyer that waits for a
// message stands still only when none is. A message is through when its reader
// has come back for the next one.
type PubSub struct {
	mu       sync.Mutex
	taps     map[*tap]struct{}
	sent     int         // messages that Redis said it has sent, in this run
	received int         // of those, the ones that were read
	moment   int         // grows with each read, and each SUBSCRIBE
	heard    map[int]int // messages by the owner of the connection, see Heard
}

// tap is a connection that is looked at.
type tap struct {
	net.Conn
	all   *PubSub
	owner int // the buyer; 0: of all

	// Guarded by all.mu.
	asked, confirmed int  // SUBSCRIBE
	reading          bool // its reader waits for more
	tail             []byte
}

func newPubSub() *PubSub { return &PubSub{taps: map[*tap]struct{}{}, heard: map[int]int{}} }

func (p *PubSub) dialer(owner int, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: timeout}
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		t := &tap{Conn: conn, all: p, owner: owner}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taps[t] = struct{}{}
		return t, nil
	}
}

// Begin forgets what an earlier run has left.
func (p *PubSub) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent, p.received = 0, 0
	clear(p.heard)
}

// Heard is how many messages have come since it was asked last, by the owner of the
// connection that they came by: a buyer, or 0.
func (p *PubSub) Heard() map[int]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	heard := maps.Clone(p.heard)
	clear(p.heard)
	return heard
}

// Quiet reports whether every message and every confirmation has reached the
// goroutine that waits for it. moment is another one whenever something has come since.
func (p *PubSub) Quiet() (quiet bool, moment int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.taps {
		if t.asked > 0 && (t.confirmed < t.asked || !t.reading) {
			return false, p.moment
		}
	}
	return p.received >= p.sent, p.moment
}

// Count is how many messages were sent in this run.
func (p *PubSub) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// Used reports whether a connection has subscribed.
func (p *PubSub) Used() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.taps {
		if t.asked > 0 {
			return true
		}
	}
	return false
}

// Listens: a connection of the owner has subscribed.
func (p *PubSub) Listens(owner int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.taps {
		if t.asked > 0 && t.owner == owner {
			return true
		}
	}
	return false
}

// Notified notes that so many listeners were sent a message.
func (p *PubSub) Notified(listeners int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent += listeners
}

var (
	subscribe    = []byte("$9\r\nsubscribe\r\n")
	message      = []byte("$7\r\nmessage\r\n")
	longestFrame = len(subscribe)
)

// Write is net.Conn.Write.
func (t *tap) Write(b []byte) (int, error) {
	if n := bytes.Count(b, subscribe); n > 0 {
		var words int
		_, _ = fmt.Sscanf(string(b), "*%d", &words)
		t.all.mu.Lock()
		t.asked += max(1, words-1)
		t.all.moment++
		t.all.mu.Unlock()
	}
	return t.Conn.Write(b)
}

// Read is net.Conn.Read.
func (t *tap) Read(b []byte) (int, error) {
	t.all.mu.Lock()
	t.reading = true
	t.all.mu.Unlock()
	n, err := t.Conn.Read(b)
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.reading = false
	if t.asked > 0 {
		t.all.moment++
		t.count(b[:n])
	}
	return n, err
}

// count counts the frames of what was read. A frame may come in two reads. What is
// kept of the last one is shorter than a frame, so none is counted twice.
func (t *tap) count(read []byte) {
	seen := append(t.tail, read...)
	t.confirmed += bytes.Count(seen, subscribe)
	if n := bytes.Count(seen, message); n > 0 {
		t.all.received += n
		t.all.heard[t.owner] += n
	}
	keep := 0
	for i := max(0, len(seen)-longestFrame+1); i < len(seen); i++ {
		if bytes.HasPrefix(subscribe, seen[i:]) || bytes.HasPrefix(message, seen[i:]) {
			keep = len(seen) - i
			break
		}
	}
	t.tail = append([]byte(nil), seen[len(seen)-keep:]...)
}

// Close is net.Conn.Close.
func (t *tap) Close() error {
	t.all.mu.Lock()
	delete(t.all.taps, t)
	t.all.mu.Unlock()
	return t.Conn.Close()
}
