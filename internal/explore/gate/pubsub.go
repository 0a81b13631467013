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

// PubSub counts the messages in transit to subscribers. A buyer that waits for a message is blocked only if no message
// is in transit. A message has arrived when its reader asks for the next message.
type PubSub struct {
	mu       sync.Mutex
	taps     map[*tap]struct{}
	sent     int         // number of messages that Redis has sent in this run
	received int         // number of these messages that a reader has read
	moment   int         // increases with each read and each SUBSCRIBE
	heard    map[int]int // messages since the last call of Heard, by the owner of the connection
}

type tap struct {
	net.Conn
	all   *PubSub
	owner int // the buyer; 0: all buyers

	// Guarded by all.mu.
	asked, confirmed int  // number of channels in SUBSCRIBE commands, and number of confirmations
	reading          bool // a reader waits for more data
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

// Begin clears the counts of an earlier run.
func (p *PubSub) Begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent, p.received = 0, 0
	clear(p.heard)
}

// Heard returns the number of messages since its last call, by owner of the connection. Owner 0 means all buyers.
func (p *PubSub) Heard() map[int]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	heard := maps.Clone(p.heard)
	clear(p.heard)
	return heard
}

// Quiet reports whether every message and every confirmation has reached the goroutine that waits for it. If two calls
// return the same `moment`, nothing has arrived in between.
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

// Count returns how many messages were sent in this run.
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

// Listens reports whether a connection of the owner has subscribed.
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

// Notified records that a message was sent to a number of listeners.
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

// Write implements net.Conn.
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

// Read implements net.Conn.
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

// count counts the frames that were read. It keeps the beginning of an incomplete frame for the next read. That
// beginning is shorter than a frame, so no frame is counted twice.
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

// Close implements net.Conn.
func (t *tap) Close() error {
	t.all.mu.Lock()
	delete(t.all.taps, t)
	t.all.mu.Unlock()
	return t.Conn.Close()
}
