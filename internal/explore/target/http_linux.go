package target

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"

	"github.com/oversell/oversell/internal/explore/wire"
)

// hostPort is where a URL's server listens.
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

func readReply(from io.Reader, req *http.Request) (reply, error) {
	r, ok := from.(*bufio.Reader)
	if !ok {
		r = bufio.NewReader(from)
	}
	answer, err := http.ReadResponse(r, req)
	if err != nil {
		return reply{}, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, bodySize))
	return reply{answer.StatusCode, string(body)}, err
}

// send sends the buyer's request to its program. The answer is counted by the floor from
// before it is read until the buyer is known to be done.
func (r *run) send(ctx context.Context, b *buyer) error {
	i := r.x.fleet.of(b.id)
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
	socket, err := wire.NewSocket(r.x.floor, c)
	if err != nil {
		return err
	}
	f := r.x.floor
	f.mu.Lock()
	b.alive, b.socket, r.current = true, socket, b.id
	f.handed = socket
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
