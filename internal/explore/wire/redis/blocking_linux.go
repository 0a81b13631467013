package redis

import (
	"bufio"
	"bytes"

	"github.com/oversell/oversell/internal/explore/wire"
)

// Blocking reports whether the server may let a command of this protocol wait: BLPOP, XREAD
// BLOCK, WAIT and their like, but not within MULTI, where they never wait. While it waits
// CLIENT LIST shows the connection's id with the flag b, and CLIENT UNBLOCK id TIMEOUT ends
// it as its own timeout would have. It may be called at any time by any goroutine.
func Blocking(o *wire.Command) bool {
	if !o.Gated {
		return false
	}
	r := reader{from: bufio.NewReader(bytes.NewReader(o.Raw))}
	q, err := r.request()
	if err != nil {
		return false
	}
	_, _, blocks := timeout(q.args)
	return blocks
}
