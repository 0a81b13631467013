package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/teach/room"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// ShutdownTimeout is how long running buys may take to finish.
const ShutdownTimeout = 10 * time.Second

// ErrUnfinished means that the shop stopped before it had answered all buyers.
var ErrUnfinished = errors.New("some buys did not finish")

// Serve serves at addr until ctx ends, then lets running buys finish. It prints its address as the first line
// on stdout. If addr is not a loopback address, admin routes require the token.
func (s *Shop) Serve(ctx context.Context, addr, token string, stdout io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w; --addr gives another address, such as 127.0.0.1:0", err)
	}
	if token == "" && !isLoopback(l.Addr()) {
		s.log.Warn("SHOP_ADMIN_TOKEN is not set, and this address is not loopback: the leader's controls are off, and restocks, sales and crowds are refused; start it as SHOP_ADMIN_TOKEN=... shop serve --addr " + addr)
	}
	if name, _, err := net.SplitHostPort(addr); err == nil && (isLoopback(l.Addr()) || len(s.config.Hosts) > 0) {
		s.config.Hosts = append(s.config.Hosts, name) // a name of this machine
	}
	server := s.Server(l.Addr(), token)
	defer s.Work(context.WithoutCancel(ctx))() // the background work goes on until the last buy has ended
	if s.runs != nil {
		defer s.runs.Close()
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	announce(stdout, l.Addr(), token)
	if s.config.Failpoints != nil {
		go s.config.Failpoints.Obey(os.Stdin)
	}
	s.log.Info("serving", "addr", l.Addr().String(), "engine", s.engine.Name, "database", s.engine.Server)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.log.Info("stopping: letting running buys finish", "patience", ShutdownTimeout)
	if s.runs != nil {
		go s.runs.Close() // ends a burst of buyers that the live page has started
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), ShutdownTimeout)
	defer cancel()
	_ = l.Close()
	<-ended // before Shutdown, which would close the listener again and report that as its error
	s.connections.finish()
	if err := server.Shutdown(ending); err != nil {
		return fmt.Errorf("%w within %s: %w", ErrUnfinished, ShutdownTimeout, errors.Join(err, server.Close()))
	}
	return nil
}

// announce prints the addresses of the shop. The first one works on this machine. If other machines can reach
// the shop, the addresses for them follow.
func announce(out io.Writer, addr net.Addr, token string) {
	here := addr.String()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() { // browsers cannot open an unspecified address
		here = net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	fmt.Fprintf(out, "%shttp://%s\n", localserver.Listening, here)
	if isLoopback(addr) {
		return
	}
	pages, err := room.Pages(addr)
	if err != nil || len(pages) == 0 {
		fmt.Fprintln(out, "phones: this machine has no address that they could open")
	}
	for i, page := range pages {
		fmt.Fprintf(out, "%s %s\n", []string{"phones open", "or, if that does not load,"}[min(i, 1)], page)
	}
	if token != "" {
		fmt.Fprintf(out, "the leader opens http://%s/room/screen, and types the token there once\n", here)
	}
}

// Server returns a server with the time-outs that a public port needs. The event streams of the live page
// have no write time-out, and end when the server shuts down.
func (s *Shop) Server(addr net.Addr, token string) *http.Server {
	server := &http.Server{
		Handler:           s.handler(addr, token),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      s.config.Settings.Wait + 20*time.Second, // time for a wait and for a COMMIT that hangs
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnState:         s.connections.changed,
		ConnContext:       purchase.RememberReturns(s.connections.spare),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(s.watch.hub.Close)
	if games := s.config.Games; games != nil {
		server.RegisterOnShutdown(games.Close) // also ends the event streams of the games' pages
	}
	return server
}
