package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/web"
)

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
	flags.StringArrayVar(&o.shops.Hosts, "allowed-host", nil, "a further name that requests may be for (Host), may be repeated; on a loopback address all but its own names are refused, elsewhere only where this is given")
	flags.IntVar(&o.conns, "max-conns", 10_000, "connections at once, where the machine has the files; one more ends the one that has waited longest for a request, or for a refusal that is held up")
	flags.BoolVar(&o.failpoints, "failpoints", false, "obey hold and go on stdin, write the history to stdout: for shop verify")
	_ = flags.MarkHidden("failpoints") // it is there
	flags.IntVar(&o.shops.Gather, "gather", 0, "let so many first buyers of a product in at the same moment: for shop verify --race")
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
	if err := errors.Join(checkHosts(o.shops.Hosts), checkConnections(o.conns, c.Flags().Changed("max-conns"))); err != nil {
		return err
	}
	config, err := o.engines.config(c, o.shops.Settings)
	if err != nil {
		return err
	}
	if o.failpoints {
		o.shops.Failpoints = failpoint.New(c.OutOrStdout())
		config.WrapDB = o.shops.Failpoints.Connector
	}
	e, err := engine.Open(c.Context(), config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for _, warning := range web.Warnings(c.Context(), e, o.shops.Settings.Replicas) {
		log.Warn(warning)
	}
	if why := o.shops.Uncheck(e); why != "" {
		if c.Flags().Changed(soldOutCheck) {
			return errors.New(why)
		}
		log.Warn(why)
	}
	shop := o.shops.Config
	shop.MaxConnections, shop.Sender, shop.Games = web.Affordable(o.conns), trial.Stage{Engine: e, Shops: shop, Conns: defaultConns}, newGames()
	defer shop.Games.Close()
	return web.New(e, shop, log).Serve(c.Context(), o.addr, os.Getenv("SHOP_ADMIN_TOKEN"), c.OutOrStdout())
}

// checkHosts checks what --allowed-host was given.
func checkHosts(names []string) error {
	for _, name := range names {
		if _, err := netip.ParseAddr(name); err == nil {
			continue
		}
		if name == "" || len(name) > 253 || strings.ContainsAny(name, "/:*[]@ \t\r\n,?#") {
			return fmt.Errorf("--allowed-host is %q; give a name such as shop.example, without scheme, port and wildcard", name)
		}
	}
	return nil
}

// checkConnections checks --max-conns.
func checkConnections(most int, given bool) error {
	if most < 1 || most > 1_000_000 {
		return fmt.Errorf("--max-conns is %d; 1 to 1000000 are allowed", most)
	}
	if can := web.Affordable(most); given && can < most {
		return fmt.Errorf("--max-conns is %d, and this process may open %d files: %d are allowed; ulimit -n raises it", most, web.OpenFiles(), can)
	}
	return nil
}

func newLogger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level is %q; give debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}
