package main

import (
	"cmp"
	"errors"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/fault/failpoint"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/web"
)

type serveOptions struct {
	engines    engineFlags
	shops      shopFlags
	addr       string
	level      string
	failpoints bool
}

func serveCommand() *cobra.Command {
	var o serveOptions
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the shop, its live page, the classroom and the game",
		Long: `Serve the shop until Ctrl-C or SIGTERM; running purchases then have 10 s to finish. The live page is at
/, the classroom at /room/screen, and the game at /play. Without --db, the shop starts with 100 apples and
deletes its data at the end. On an address other than loopback, admin routes require the token
SHOP_ADMIN_TOKEN. Behind a proxy that sends reads to replicas, add --sold-out-check=false.`,
		Example: `  shop serve --engine local --addr 127.0.0.1:9090
  shop serve --db mysql://shop:secret@db:3306/shop --redis redis://cache:6379`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c) },
	}
	o.engines.register(c)
	o.shops.register(c, true)
	flags := c.Flags()
	preset := cmp.Or(os.Getenv("SHOP_ADDR"), "127.0.0.1:8080")
	flags.StringVar(&o.addr, "addr", preset, "listen `address`; port 0: any free port [SHOP_ADDR]")
	flags.StringArrayVar(&o.shops.Hosts, "allowed-host", nil, "further host `name` for requests; repeatable")
	flags.IntVar(&o.shops.MaxConnections, "max-conns", 10_000, "maximum open connections; a further one closes the longest-idle one")
	flags.BoolVar(&o.failpoints, "failpoints", false, "commands on stdin and the history on stdout, for shop verify")
	_ = flags.MarkHidden("failpoints") // fails only for an unknown flag
	flags.StringVar(&o.level, "log-level", "info", "minimum log `level`: debug, info, warn or error")
	setHelp(c, "docs/reference/http.md", "engine", "db", "redis", "addr", "allowed-host")
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
	if err := errors.Join(web.CheckHosts(o.shops.Hosts), checkRange("max-conns", o.shops.MaxConnections, 1, 1_000_000)); err != nil {
		return err
	}
	if err := web.CheckConnections(o.shops.MaxConnections); c.Flags().Changed("max-conns") && err != nil {
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
	shop.Sender, shop.Games = trial.Stage{Engine: e, Shops: shop, Conns: defaultConns}, newGames()
	defer shop.Games.Close()
	return web.New(e, shop, log).Serve(c.Context(), o.addr, os.Getenv("SHOP_ADMIN_TOKEN"), c.OutOrStdout())
}

func newLogger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, checkChoice("log-level", level, "debug", "info", "warn", "error")
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}
