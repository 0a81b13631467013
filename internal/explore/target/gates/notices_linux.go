package gates

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/wire"
)

// Notices tracks PostgreSQL notifications that the programs have not received yet. The server sends them when it likes,
// so a program may look idle although a notification will wake it. The explorer has a connection that listens to the
// same channels, and receives each notification at once.
type Notices struct {
	listener *app.Listener   // the explorer's own connection; nil: no PostgreSQL
	own      map[string]bool // the channels to which listener listens

	pulse    *Pulse
	mu       *sync.Mutex // guards the fields below
	channels map[*wire.Conn][]string
	owed     map[*wire.Conn]map[string]int // by connection: how many notifications with each text the server will send
	got      map[*wire.Conn]map[string]int
	since    time.Time // when the explorer last heard of a notification
}

func newNotices(p *Pulse, listener *app.Listener) *Notices {
	n := &Notices{pulse: p, mu: p.mu, listener: listener, own: map[string]bool{}, channels: map[*wire.Conn][]string{}}
	n.clear()
	return n
}

// listening matches a LISTEN. unlistening matches a command that ends one or all of them.
var (
	listening   = regexp.MustCompile(`(?i)(?:^|;)\s*LISTEN\s+("(?:[^"]|"")+"|\w+)`)
	unlistening = regexp.MustCompile(`(?i)(?:^|;)\s*(?:UNLISTEN|DISCARD\s+ALL)\b`)
)

// longestNotice is the maximum wait for a notification. If the program rolled its LISTEN back, none comes.
const longestNotice = 2 * time.Second

// arrived records the channels of a LISTEN.
func (n *Notices) arrived(c *wire.Command) {
	if c.Conn().Protocol != "postgres" {
		return
	}
	if unlistening.MatchString(c.Text) {
		n.left(c.Conn())
	}
	for _, m := range listening.FindAllStringSubmatch(c.Text, -1) {
		channel := strings.ToLower(m[1])
		if m[1][0] == '"' {
			channel = strings.ReplaceAll(m[1][1:len(m[1])-1], `""`, `"`)
		}
		if all := n.channels[c.Conn()]; !slices.Contains(all, channel) {
			n.channels[c.Conn()] = append(all, channel)
		}
	}
}

// pushed records that a notification has arrived at a program's connection.
func (n *Notices) pushed(c *wire.Command) {
	if len(n.channels[c.Conn()]) > 0 {
		add(n.got, c.Conn(), c.Text)
	}
}

// left forgets a connection that has ended, or that no longer listens.
func (n *Notices) left(c *wire.Conn) {
	delete(n.channels, c)
	delete(n.owed, c)
	delete(n.got, c)
}

func (n *Notices) clear() {
	n.owed, n.got = map[*wire.Conn]map[string]int{}, map[*wire.Conn]map[string]int{}
}

func add(to map[*wire.Conn]map[string]int, c *wire.Conn, text string) {
	if to[c] == nil {
		to[c] = map[string]int{}
	}
	to[c][text]++
}

// Begin forgets all earlier notifications.
func (n *Notices) Begin(ctx context.Context) error {
	err := n.Hear(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.clear()
	return err
}

// Hear finds out which notifications were sent since the last call.
func (n *Notices) Hear(ctx context.Context) error {
	n.mu.Lock()
	var missing []string
	for _, all := range n.channels {
		for _, channel := range all {
			if !n.own[channel] {
				missing = append(missing, channel)
			}
		}
	}
	none := len(n.channels) == 0
	n.mu.Unlock()
	if none {
		return nil
	}
	for _, channel := range missing {
		if err := n.listener.Listen(ctx, channel); err != nil {
			return err
		}
		n.own[channel] = true
	}
	sent, err := n.listener.Notified(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, one := range sent {
		for c, all := range n.channels {
			if slices.Contains(all, one.Channel) {
				add(n.owed, c, wire.Shorten("NOTIFY "+one.Channel+" "+one.Payload))
				n.since = time.Now()
			}
		}
	}
	return err
}

// Missing reports whether a program will still receive a notification.
func (n *Notices) Missing() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c, texts := range n.owed {
		for text, times := range texts {
			if n.got[c][text] < times {
				if n.pulse.Since(n.since) < longestNotice {
					return true
				}
				n.left(c)
				return false
			}
		}
	}
	return false
}
