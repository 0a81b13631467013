package pulse

import (
	"testing"
	"time"

	"github.com/oversell/oversell/internal/expect"
)

func TestWithin(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	d := Delays{{at(100), at(200)}, {at(300), at(600)}, {at(900), at(1000)}}
	for _, c := range []struct{ from, to, ms int }{
		{0, 2000, 500}, {0, 100, 0}, {200, 300, 0}, {150, 350, 100}, {400, 500, 100}, {100, 200, 100}, {1000, 2000, 0}, {500, 400, 0},
	} {
		expect.Equal(t, d.Within(at(c.from), at(c.to)), time.Duration(c.ms)*time.Millisecond, "from", c.from, "to", c.to, "ms")
	}
	expect.Equal(t, d.Longest(), 300*time.Millisecond, "the longest")
	expect.Equal(t, d.Mostly(at(0), at(1001)), "", "less than half")
	expect.Equal(t, d.Mostly(at(0), at(0)), "", "no time")
	expect.Equal(t, d.Mostly(at(0), at(1000)), "this process got no processor for 0.5 of 1.0 s", "half")
	if got := (*Pulse)(nil).Delays(); got.Within(at(0), at(2000)) != 0 || got.Longest() != 0 {
		t.Errorf("a nil pulse has %v", got)
	}
}

// TestSince: a minute in which the pulse did not read the clock does not count.
func TestSince(t *testing.T) {
	start := time.Now().Add(-time.Minute)
	p := &Pulse{last: start}
	for _, before := range []time.Duration{0, time.Second} {
		if since := p.Since(start.Add(-before)); since < before || since > before+time.Second/2 {
			t.Errorf("%s since %s before that minute", since, before)
		}
	}
}
