package explore

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// pubsub counts what is on its way to the subscribers: a buyer that waits for a
// message stands still only when none is. A message is through when its reader
// has come back for the next one.
type pubsub struct {
	mu       sync.Mutex
	taps     map[*tap]struct{}
	told     int // messages that Redis said it has sent, in this run
	received int // of those, the ones that were read
	moment   int // grows with each read, and each SUBSCRIBE
}

// tap is a connection that is looked at.
type tap struct {
	net.Conn
	all *pubsub

	// Guarded by all.mu.
	asked, confirmed int  // SUBSCRIBE
	reading          bool // its reader waits for more
	tail             []byte
}

func (p *pubsub) dialer(timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		d := net.Dialer{Timeout: timeout}
		conn, err := d.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		t := &tap{Conn: conn, all: p}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taps[t] = struct{}{}
		return t, nil
	}
}

// begin forgets what an earlier run has left.
func (p *pubsub) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told, p.received = 0, 0
}

// quiet reports whether every message and every confirmation has reached who
// waits for it. moment is another one whenever something has come since.
func (p *pubsub) quiet() (quiet bool, moment int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.taps {
		if t.asked > 0 && (t.confirmed < t.asked || !t.reading) {
			return false, p.moment
		}
	}
	return p.received >= p.told, p.moment
}

// count is how many messages were sent in this run.
func (p *pubsub) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// used: somebody has subscribed, and is about to be closed.
func (p *pubsub) used() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for t := range p.taps {
		if t.asked > 0 {
			return true
		}
	}
	return false
}

func (p *pubsub) tell(listeners int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told += listeners
}

// published reads from an answer how many listeners there were: that of
// PUBLISH, and of the scripts that publish and say so.
func (p *pubsub) published(args []any, cmd redis.Cmder, s *scripts) {
	answer := strings.Fields(strings.Trim(reply(cmd, cmd.Err()), "[]"))
	listeners := 0
	switch strings.ToUpper(fmt.Sprint(args[0])) {
	case "PUBLISH":
		if len(answer) == 1 {
			_, _ = fmt.Sscan(answer[0], &listeners)
		}
	case "EVAL", "EVALSHA":
		if strings.HasPrefix(s.name(args), "Gives back one hold") && len(answer) == 2 {
			_, _ = fmt.Sscan(answer[1], &listeners)
		}
	}
	p.tell(max(0, listeners))
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
		// A frame may come in two reads. The overlap is shorter than a frame, so
		// none is counted twice.
		seen := append(t.tail, b[:n]...)
		t.confirmed += bytes.Count(seen, subscribe)
		t.all.received += bytes.Count(seen, message)
		keep := 0
		for i := max(0, len(seen)-longestFrame+1); i < len(seen); i++ {
			if bytes.HasPrefix(subscribe, seen[i:]) || bytes.HasPrefix(message, seen[i:]) {
				keep = len(seen) - i
				break
			}
		}
		t.tail = append([]byte(nil), seen[len(seen)-keep:]...)
	}
	return n, err
}

// Close is net.Conn.Close.
func (t *tap) Close() error {
	t.all.mu.Lock()
	delete(t.all.taps, t)
	t.all.mu.Unlock()
	return t.Conn.Close()
}
