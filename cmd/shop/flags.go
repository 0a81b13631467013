package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/nearest"
	"github.com/oversell/oversell/internal/testbed/localserver"
	"github.com/oversell/oversell/internal/web"
)

// engineFlags are the flags about servers. They are the same for every command that opens servers.
type engineFlags struct {
	engine.Config
	environ error // an error in the environment variables
}

// defaultConns is the size of the pool to the database. On two cores, more connections only lengthen the queue
// inside the database.
const defaultConns = 64

// register adds the flags of a command that works on its own servers or on running servers.
func (f *engineFlags) register(c *cobra.Command) {
	f.registerOwn(c)
	env, _ := engine.FromEnviron() // registerOwn keeps the error
	addFlags(c, underServers, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.DB, "db", env.DB, "`URL` of a running database: mysql://, postgres:// or sqlite:// [SHOP_DB_URL]")
		flags.StringVar(&f.Redis, "redis", env.Redis, "with --db: Redis `URL`: redis://, redis+sentinel:// or redis+cluster:// [SHOP_REDIS_URL]")
		flags.StringSliceVar(&f.Redlock, "redlock", env.Redlock, "with --db: `URLs` of independent Redis servers [SHOP_REDLOCK_URLS]")
		flags.StringSliceVar(&f.Zookeeper, "zookeeper", env.Zookeeper, "with --db: ZooKeeper `hosts`, for example zk1:2181,zk2:2181 [SHOP_ZOOKEEPER_HOSTS]")
		flags.StringSliceVar(&f.Etcd, "etcd", env.Etcd, "with --db: etcd `hosts`, for example etcd1:2379,etcd2:2379 [SHOP_ETCD_HOSTS]")
		flags.IntVar(&f.Process, "process", f.Process, "index of this process from 0, for its first database host ["+engine.ProcessVariable+"]")
	})
}

// registerOwn adds the flags of a command that starts its servers itself.
func (f *engineFlags) registerOwn(c *cobra.Command) {
	var env engine.Config
	env, f.environ = engine.FromEnviron()
	f.Detours, f.Process = env.Detours, env.Process
	addFlags(c, underServers, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.Conns, "db-conns", defaultConns, "maximum database connections per process")
		registerEngine(flags, &f.Config)
	})
}

// registerEngine adds the flags that choose which servers a command starts.
func registerEngine(flags *pflag.FlagSet, e *engine.Config) {
	flags.StringVar(&e.Name, "engine", engine.Embedded, "servers: embedded (in this process) or local (child processes)")
	flags.StringVar(&e.LocalDB, "local-db", "", "with --engine local: "+strings.Join(localserver.DatabaseNames(), ", ")+" (default: mariadb, else mysql)")
	flags.StringVar(&e.LocalRedis, "local-redis", "", "with --engine local: "+strings.Join(localserver.RedisNames(), ", ")+" (default: single)")
}

func checkEngine(name string) error {
	return checkChoice("engine", name, engine.Embedded, engine.Local)
}

func checkLocal(e engine.Config) error {
	_, noDB := localserver.DatabaseNamed(e.LocalDB)
	_, noRedis := localserver.RedisNamed(e.LocalRedis)
	check := func(flag, name string, unknown error) error {
		switch {
		case name != "" && e.Name != engine.Local:
			return fmt.Errorf("--%s requires --engine local", flag)
		case unknown != nil:
			return fmt.Errorf("--%s: %w", flag, unknown)
		}
		return nil
	}
	return errors.Join(check("local-db", e.LocalDB, noDB), check("local-redis", e.LocalRedis, noRedis))
}

func (f *engineFlags) config(c *cobra.Command, s lockstrategy.Settings) (engine.Config, error) {
	if c.Flags().Changed("engine") {
		if err := rejectFlags(c, "cannot be combined with --engine: --db and its companions name running servers, --engine starts servers", "db", "redis", "redlock", "zookeeper", "etcd"); err != nil {
			return engine.Config{}, err
		}
		f.DB, f.Redis, f.Redlock, f.Zookeeper, f.Etcd = "", "", nil, nil, nil // flags take precedence over environment variables
	}
	if err := cmp.Or(f.environ, checkLocal(f.Config), f.checkReplicas(s.Replicas), f.checkProcess(c)); err != nil {
		return engine.Config{}, err
	}
	if f.Conns < 2 {
		return engine.Config{}, fmt.Errorf("--db-conns must be at least 2 (got %d)", f.Conns)
	}
	config := f.Config
	config.Wait, config.Lease = s.Wait, s.LeaseTTL
	return config, nil
}

func (f *engineFlags) checkProcess(c *cobra.Command) error {
	switch {
	case f.Process < 0:
		return fmt.Errorf("--process must be 0 or more (got %d)", f.Process)
	case c.Flags().Changed("process") && f.LocalDB == "" && !strings.Contains(f.DB, ","):
		return errors.New("--process selects a database host, but there is only one; name several with --db mysql://user@host1,host2,host3/database, or use --local-db galera")
	}
	return nil
}

// shopFlags are the flags of a running shop, for `shop serve` and for commands that start shops to test a
// strategy.
type shopFlags struct {
	web.Config
	admission string // adaptive or off
}

const (
	soldOutCheck = "sold-out-check"

	admission   = "admission"
	adaptive    = "adaptive"
	noAdmission = "off"
)

// register adds the flags. The parameter `open` is true for a shop that serves real buyers. Its sold-out
// check and admission control are on by default. In a test of a strategy they are off, since they would
// answer in place of the strategy.
func (f *shopFlags) register(c *cobra.Command, open bool) {
	admit := noAdmission
	if open {
		admit = adaptive
	}
	preset := lockstrategy.DefaultSettings()
	addFlags(c, underShop, func(flags *pflag.FlagSet) {
		flags.DurationVar(&f.Settings.Wait, "wait", preset.Wait, "maximum wait of a buyer before the answer busy")
		flags.DurationVar(&f.Settings.LeaseTTL, "lease", preset.LeaseTTL, "lifetime of a lock without a renewal")
		flags.DurationVar(&f.Settings.Poll, "poll", preset.Poll, "mean pause between two attempts to take a lock")
		registerFronts(flags, &f.SoldOutCheck, open, &f.admission, admit, &f.Settings.Replicas)
		flags.IntVar(&f.MaxInflight, "max-inflight", 2_000, "maximum concurrent purchases; answer busy for further buyers")
	})
}

// registerFronts adds the flags of the checks before a strategy, and of the replicas that confirm a Redis lock.
func registerFronts(flags *pflag.FlagSet, check *bool, checkByDefault bool, admit *string, admitByDefault string, replicas *int) {
	flags.BoolVar(check, soldOutCheck, checkByDefault, "one shared stock read for later buyers after a product sells out")
	flags.StringVar(admit, admission, admitByDefault, "admission control: adaptive or off")
	flags.IntVar(replicas, "redis-wait", 0, "replicas that must confirm a Redis lock (command WAIT)")
}

// checkReplicas rejects --redis-wait if this command starts a Redis without a replica to confirm a lock.
func (f *engineFlags) checkReplicas(wait int) error {
	if wait > 0 && f.DB == "" && (f.Name != engine.Local || f.LocalRedis == "" || f.LocalRedis == topology.Single) {
		return fmt.Errorf("--redis-wait %d needs a Redis with replicas; add --engine local --local-redis %s (or %s), or --db and --redis", wait, topology.Sentinel, topology.Cluster)
	}
	return nil
}

func checkRedisWait(n int) error { return checkRange("redis-wait", n, 0, 16) }

func (f *shopFlags) validate() error {
	f.Admission = f.admission == adaptive
	return cmp.Or(
		checkRedisWait(f.Settings.Replicas),
		checkRange("wait", f.Settings.Wait, time.Millisecond, maxLease+time.Minute),
		checkRange("lease", f.Settings.LeaseTTL, 10*time.Millisecond, maxLease),
		checkRange("poll", f.Settings.Poll, 100*time.Microsecond, time.Second),
		checkRange("max-inflight", f.MaxInflight, 1, 100_000),
		checkAdmission(f.admission),
	)
}

func checkAdmission(value string) error { return checkChoice(admission, value, adaptive, noAdmission) }

// checkRange returns an error unless the value of a flag is between least and most.
func checkRange[V int | int64 | time.Duration](flag string, got, least, most V) error {
	if got >= least && got <= most {
		return nil
	}
	return fmt.Errorf("--%s must be between %s and %s (got %s)", flag, shown(least), shown(most), shown(got))
}

// shown formats a flag's value as a user writes it: 1m, not 1m0s.
func shown(value any) string {
	text := fmt.Sprint(value)
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// checkChoice returns an error unless the value of a flag is one of the choices.
func checkChoice(flag, got string, choices ...string) error {
	if slices.Contains(choices, got) {
		return nil
	}
	return nearest.Unknown(flag, got, choices, "")
}

// rejectFlags returns an error if one of the flags is given. In the error, the text `why` follows the flag's
// name.
func rejectFlags(c *cobra.Command, why string, flags ...string) error {
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("--%s %s", name, why)
		}
	}
	return nil
}
