package main

import (
	"cmp"
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

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/teach/room"
	"github.com/oversell/oversell/internal/testbed/localserver"
)

// shutdownTimeout is how long running buys may take to finish.
const shutdownTimeout = 10 * time.Second

// errUnfinished: the shop has cut off buyers, which is no clean end.
var errUnfinished = errors.New("some buys did not finish")

// serveOptions are the flags of serve.
type serveOptions struct {
	engines    engineFlags
	shops      shopFlags
	addr       string
	level      string
	conns      int
	failpoints bool
}

func serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the shop and its live page",
		Long: `Serve the shop and its live page until Ctrl-C or SIGTERM; buys in flight have
10 s to finish.

The page at / sends crowds as shop rush does, to shop processes of its own on the
same servers, strikes them with faults, and keeps the last 50 runs until the shop
ends. A crowd clears the records of the product that it buys.

On another address than loopback, PUT /product/:name and what sends crowds ask for
Authorization: Bearer $SHOP_ADMIN_TOKEN. On loopback it asks for nothing, and so
every request must be for a name of this machine or of --allowed-host.

/room is a page for phones, with one button; /room/screen is for the projector.
Phones reach it on a network's address (--addr 0.0.0.0:8080); the screen shows
which, as a QR code. The leader needs the token there, and the buyers do not.

Once a product was sold out, who comes too late is refused by what an unlocked
read says, before a strategy takes a lock. Behind a proxy that sends reads to
replicas give --sold-out-check=false.

Whoever reaches the shop may play at /play, without a token: each game is a process
of its own, 30 at once.

When more buyers of a product come than can be served in time, the others are
told busy at once, and when to come back (--admission).

The embedded and the local engine start empty and throw their data away. The
migrations put 100 apples on sale.`,
		Example: `  shop serve
  shop serve --engine local --addr 127.0.0.1:9090
  SHOP_DB_URL=mysql://shop:secret@db:3306/shop SHOP_REDIS_URL=redis://cache:6379 shop serve`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	o.engines.register(c)
	o.shops.register(c, true)
	flags := c.Flags()
	preset := cmp.Or(os.Getenv("SHOP_ADDR"), "127.0.0.1:8080")
	flags.StringVar(&o.addr, "addr", preset, "address to listen on; port 0 takes a free one [SHOP_ADDR]")
	flags.StringArrayVar(&o.shops.hosts, "allowed-host", nil, "a further name that requests may be for (Host), may be repeated; on a loopback address all but its own names are refused, elsewhere only where this is given")
	flags.IntVar(&o.conns, "max-conns", defaultConnections, "connections at once, where the machine has the files; one more ends the one that has waited longest for a request, or for a refusal that is held up")
	flags.BoolVar(&o.failpoints, "failpoints", false, "obey hold and go on stdin, write the history to stdout: for shop verify")
	_ = flags.MarkHidden("failpoints") // it is there
	flags.IntVar(&o.shops.gather, "gather", 0, "let so many first buyers of a product in at the same moment: for shop verify --race")
	_ = flags.MarkHidden("gather")
	flags.StringVar(&o.level, "log-level", "info", "debug (a line a request), info, warn or error")
	return c
}

func (o *serveOptions) run(c *cobra.Command) (err error) {
	log, err := newLogger(c.ErrOrStderr(), o.level)
	if err != nil {
		return err
	}
	if err := o.shops.validate(); err != nil {
		return err
	}
	if err := errors.Join(checkHosts(o.shops.hosts), checkConnections(o.conns, c.Flags().Changed("max-conns"))); err != nil {
		return err
	}
	config, err := o.engines.config(c, o.shops.settings)
	if err != nil {
		return err
	}
	if o.failpoints {
		o.shops.failpoints = failpoint.New(c.OutOrStdout())
		config.WrapDB = o.shops.failpoints.Connector
	}
	e, err := engine.Open(c.Context(), config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for _, warning := range e.Warnings {
		log.Warn(warning)
	}
	if warning := warnOfReplicas(c.Context(), e, o.shops.settings.Replicas); warning != "" {
		log.Warn(warning)
	}
	if why := o.shops.unchecked(e); why != "" {
		if c.Flags().Changed(soldOutCheck) {
			return errors.New(why)
		}
		log.Warn(why)
	}
	s := newShop(e, o.shops, log)
	s.connections = newConnections(affordable(o.conns))
	s.games = newGames()
	defer s.games.Close()
	return serve(c.Context(), s, o.addr, os.Getenv("SHOP_ADMIN_TOKEN"), c.OutOrStdout())
}

// serve runs the shop until ctx ends, and then lets running buys finish.
func serve(ctx context.Context, s *shop, addr, token string, stdout io.Writer) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("listen: %w; --addr gives another address, such as 127.0.0.1:0", err)
	}
	if token == "" && !isLoopback(l.Addr()) {
		s.log.Warn("SHOP_ADMIN_TOKEN is not set, and this address is not loopback: the leader's controls are off, and nobody can restock, put on sale or send a crowd; start it as SHOP_ADMIN_TOKEN=... shop serve --addr " + addr)
	}
	if name, _, err := net.SplitHostPort(addr); err == nil && (isLoopback(l.Addr()) || len(s.flags.hosts) > 0) {
		s.flags.hosts = append(s.flags.hosts, name) // a name of this machine
	}
	server := s.server(l.Addr(), token)
	defer s.work(context.WithoutCancel(ctx))() // until the last buy has ended
	defer s.runs.Close()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	announce(stdout, l.Addr(), token)
	if s.flags.failpoints != nil {
		go s.flags.failpoints.Obey(os.Stdin)
	}
	s.log.Info("serving", "addr", l.Addr().String(), "engine", s.engine.Name, "database", s.engine.Server)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.log.Info("stopping: letting running buys finish", "patience", shutdownTimeout)
	go s.runs.Close() // a rush of the page's ends meanwhile
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	_ = l.Close()
	<-ended // before Shutdown, which would close the listener again and report that as its error
	s.connections.finish()
	if err := server.Shutdown(ending); err != nil {
		return fmt.Errorf("%w within %s: %w", errUnfinished, shutdownTimeout, errors.Join(err, server.Close()))
	}
	return nil
}

// announce says where the shop is: in the first line an address that this machine can open, and
// where others can reach it, what they open.
func announce(out io.Writer, addr net.Addr, token string) {
	here := addr.String()
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() { // which no browser opens
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

// server has the time-outs that a public port needs. The live page's streams
// lift the write time-out for themselves and end with the shutdown.
func (s *shop) server(addr net.Addr, token string) *http.Server {
	server := &http.Server{
		Handler:           s.handler(addr, token),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      s.flags.settings.Wait + 20*time.Second, // and a COMMIT that hangs
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ConnState:         s.connections.changed,
		ConnContext:       purchase.RememberReturns(s.connections.spare),
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	server.RegisterOnShutdown(s.watch.hub.Close)
	if s.games != nil {
		server.RegisterOnShutdown(s.games.Close) // with them their pages' streams end
	}
	return server
}

func newLogger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level is %q; give debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}
