package target

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/oversell/oversell/internal/explore/app"
	"github.com/oversell/oversell/internal/explore/wire"
)

// hostPort returns the address of a URL's server.
func hostPort(target string) (string, error) {
	u, err := url.Parse(target)
	if err != nil {
		return "", err
	}
	port := u.Port()
	if port == "" {
		port = "80"
	}
	return net.JoinHostPort(u.Hostname(), port), nil
}

// A reply is the answer to a buyer.
type reply struct {
	status int
	body   string
}

// The maximum number of characters that are shown of an answer. An answer of 5xx shows more, since it
// describes the failure.
const (
	longestReply  = 60
	longestFailed = 300
)

// mostMasked is the length of an answer in bytes that is looked at for people.
const mostMasked = 4000

// text returns a reply in one line: "200 bought".
func (r reply) text() string { return r.masked(func(text string) string { return text }) }

// masked is text after mask has replaced the values that differ between runs.
func (r reply) masked(mask func(text string) string) string {
	longest := longestReply
	if r.failed() {
		longest = longestFailed
	}
	body := []rune(mask(oneLine(r.body[:min(len(r.body), mostMasked)])))
	if len(body) > longest {
		body = append(body[:longest], '…')
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.status, string(body)))
}

// failed reports whether the program itself reports a failure.
func (r reply) failed() bool { return r.status >= http.StatusInternalServerError }

// breaks reports whether the reply is a failure. Status 503 is a refusal, not a failure.
func (r reply) breaks() bool { return r.failed() && r.status != http.StatusServiceUnavailable }

// count adds a buyer to t. The buyer got the answer r, or err instead of an answer.
func count(t *app.Told, r reply, err error, sold app.Sale) {
	switch {
	case err == nil && sold.Acknowledged(r.status, r.body):
		t.Sold++
	case err != nil || r.breaks():
		t.Failed++
	}
}

// bodySize is the maximum size of an answer in bytes.
const bodySize = 1 << 20

// readReply reads a complete answer.
func readReply(from *bufio.Reader, req *http.Request) (reply, error) {
	answer, err := http.ReadResponse(from, req)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodySize))
	return reply{answer.StatusCode, string(body)}, err
}

// send sends the buyer's request to its program. The gate table counts the answer as on its way until the
// buyer is known to be done.
func (r *run) send(ctx context.Context, b *buyer) error {
	i := r.x.instances.of(b.id)
	req, err := request(ctx, r.x.app.Buyers[b.id-1])
	if err != nil {
		return err
	}
	address, err := hostPort(req.URL.String())
	if err != nil {
		return err
	}
	c, err := i.space.Dial(ctx, address)
	if err != nil {
		return voided("a buyer does not reach the program", "buyer %d: %v%s", b.id, err, i.said())
	}
	socket, err := wire.NewSocket(r.x.gateTable, c)
	if err != nil {
		return err
	}
	f := r.x.gateTable
	f.mu.Lock()
	b.alive, b.socket, r.current = true, socket, b.id
	f.handed, f.handedTo = socket, b.id
	r.markRunnable(b.id)
	f.happened()
	f.mu.Unlock()
	if err := req.Write(socket); err != nil {
		return voided("a buyer cannot send its request", "buyer %d: %v", b.id, err)
	}
	go func() {
		defer close(b.answered)
		answer, err := readReply(socket.R, req)
		f.mu.Lock()
		b.reply, b.err = answer, err
		b.alive, b.told = false, true
		f.handed = nil
		f.happened()
		f.mu.Unlock()
		socket.Done()
		_ = socket.Close()
	}()
	return nil
}

// request builds a buyer's request from the file.
func request(ctx context.Context, b app.Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, b.Method, b.URL, strings.NewReader(b.Body))
	if err != nil {
		return nil, err
	}
	for name, value := range b.Header {
		req.Header.Set(name, value)
	}
	req.Close = true
	return req, nil
}
