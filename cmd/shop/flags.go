package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
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

// engineFlags are the same on every command that opens servers.
type engineFlags struct {
	name    string
	localDB string
	db      string
	redis   string

	localRedis string

	redlock []string
	conns   int
	process int

	zookeeper []string
	etcd      []string
}

// defaultConns is the size of the pool to the database. On two cores, more connections only lengthen the queue
// inside the database.
const defaultConns = 64

// register adds the flags of a command that works on servers of its own or on running ones.
func (f *engineFlags) register(c *cobra.Command) {
	f.registerOwn(c)
	addFlags(c, underServers, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.db, "db", os.Getenv("SHOP_DB_URL"), "`URL` of a running database: mysql://, postgres:// or sqlite:// [SHOP_DB_URL]")
		flags.StringVar(&f.redis, "redis", os.Getenv("SHOP_REDIS_URL"), "with --db: Redis `URL`: redis://, redis+sentinel:// or redis+cluster:// [SHOP_REDIS_URL]")
		flags.StringSliceVar(&f.redlock, "redlock", splitList(os.Getenv("SHOP_REDLOCK_URLS")), "with --db: `URLs` of independent Redis servers [SHOP_REDLOCK_URLS]")
		flags.StringSliceVar(&f.zookeeper, "zookeeper", splitList(os.Getenv("SHOP_ZOOKEEPER_HOSTS")), "with --db: ZooKeeper `hosts`, for example zk1:2181,zk2:2181 [SHOP_ZOOKEEPER_HOSTS]")
		flags.StringSliceVar(&f.etcd, "etcd", splitList(os.Getenv("SHOP_ETCD_HOSTS")), "with --db: etcd `hosts`, for example etcd1:2379,etcd2:2379 [SHOP_ETCD_HOSTS]")
		flags.IntVar(&f.process, "process", 0, "index of this process from 0, for its first database host ["+engine.ProcessVariable+"]")
	})
}

// registerOwn adds the flags of a command that starts its servers itself.
func (f *engineFlags) registerOwn(c *cobra.Command) {
	addFlags(c, underServers, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.conns, "db-conns", defaultConns, "maximum database connections per process")
		registerEngine(flags, &f.name, &f.localDB, &f.localRedis)
	})
}

// registerEngine adds the flags that choose which servers a command starts.
func registerEngine(flags *pflag.FlagSet, name, localDB, localRedis *string) {
	flags.StringVar(name, "engine", engine.Embedded, "servers: embedded (in this process) or local (child processes)")
	flags.StringVar(localDB, "local-db", "", "with --engine local: "+strings.Join(localserver.DatabaseNames(), ", ")+" (default: mariadb, else mysql)")
	flags.StringVar(localRedis, "local-redis", "", "with --engine local: "+strings.Join(localserver.RedisNames(), ", ")+" (default: single)")
}

// checkOwn checks --engine of a command that starts its servers itself.
func (f *engineFlags) checkOwn() error { return checkEngine(f.name) }

func checkEngine(name string) error {
	return checkChoice("engine", name, engine.Embedded, engine.Local)
}

// checkLocalRedis checks --local-redis against --engine.
func checkLocalRedis(name, engineName string) error {
	if name != "" && engineName != engine.Local {
		return errors.New("--local-redis requires --engine local")
	}
	if _, err := localserver.RedisNamed(name); err != nil {
		return fmt.Errorf("--local-redis: %w", err)
	}
	return nil
}

// checkLocalDB checks --local-db against --engine.
func checkLocalDB(name, engineName string) error {
	if name != "" && engineName != engine.Local {
		return errors.New("--local-db requires --engine local")
	}
	if _, err := localserver.DatabaseNamed(name); err != nil {
		return fmt.Errorf("--local-db: %w", err)
	}
	return nil
}

// config checks the flags against each other.
func (f *engineFlags) config(c *cobra.Command, s lockstrategy.Settings) (engine.Config, error) {
	if c.Flags().Changed("engine") {
		if err := rejectFlags(c, "cannot be combined with --engine: --db and its companions name running servers, --engine starts servers", "db", "redis", "redlock", "zookeeper", "etcd"); err != nil {
			return engine.Config{}, err
		}
		f.db, f.redis, f.redlock, f.zookeeper, f.etcd = "", "", nil, nil, nil // the command line wins over the environment
	}
	if err := errors.Join(checkLocalDB(f.localDB, f.name), checkLocalRedis(f.localRedis, f.name)); err != nil {
		return engine.Config{}, err
	}
	if err := f.checkReplicas(s.Replicas); err != nil {
		return engine.Config{}, err
	}
	if err := f.readProcess(c); err != nil {
		return engine.Config{}, err
	}
	if f.conns < 2 {
		return engine.Config{}, fmt.Errorf("--db-conns must be at least 2 (got %d)", f.conns)
	}
	detours, err := engine.ParseDetours(os.Getenv(engine.DetoursVariable))
	if err != nil {
		return engine.Config{}, fmt.Errorf("%s: %w", engine.DetoursVariable, err)
	}
	return engine.Config{
		Name: f.name, LocalDB: f.localDB, LocalRedis: f.localRedis, DB: f.db, Redis: f.redis, Redlock: f.redlock, Zookeeper: f.zookeeper, Etcd: f.etcd,
		Wait: s.Wait, Lease: s.LeaseTTL, Conns: f.conns, Detours: detours, Process: f.process,
	}, nil
}

// readProcess reads --process, or else its environment variable.
func (f *engineFlags) readProcess(c *cobra.Command) (err error) {
	if text := os.Getenv(engine.ProcessVariable); text != "" && !c.Flags().Changed("process") {
		if f.process, err = strconv.Atoi(text); err != nil {
			return fmt.Errorf("%s must be a whole number from 0 (got %q)", engine.ProcessVariable, text)
		}
	}
	switch {
	case f.process < 0:
		return fmt.Errorf("--process must be 0 or more (got %d)", f.process)
	case c.Flags().Changed("process") && f.localDB == "" && !strings.Contains(f.db, ","):
		return errors.New("--process selects a database host, but there is only one; name several with --db mysql://user@host1,host2,host3/database, or use --local-db galera")
	}
	return nil
}

// shopFlags are the flags of a shop that serves, either alone or under a rush.
type shopFlags struct {
	web.Config
	admission string // adaptive or off
}

// Names of flags, and the values of --admission.
const (
	soldOutCheck = "sold-out-check"

	admission   = "admission"
	adaptive    = "adaptive"
	noAdmission = "off"
)

// register adds the flags. open reports whether the shop serves buyers of its own. Then the sold-out check and the
// admission control are on by default. In front of a strategy under test they would answer in its place.
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
		flags.IntVar(&f.MaxInflight, "max-inflight", 2_000, "maximum concurrent purchases; further buyers get busy")
	})
}

// registerFronts adds the flags of the checks before a strategy, and of the replicas that confirm a Redis lock.
func registerFronts(flags *pflag.FlagSet, check *bool, checkByDefault bool, admit *string, admitByDefault string, replicas *int) {
	flags.BoolVar(check, soldOutCheck, checkByDefault, "one shared stock read for later buyers after a product sells out")
	flags.StringVar(admit, admission, admitByDefault, "admission control: adaptive or off")
	flags.IntVar(replicas, "redis-wait", 0, "replicas that must confirm a Redis lock (command WAIT)")
}

// checkReplicas rejects --redis-wait if this command starts a Redis without a replica, since no lock would be
// confirmed there.
func (f *engineFlags) checkReplicas(wait int) error {
	if wait > 0 && f.db == "" && (f.name != engine.Local || f.localRedis == "" || f.localRedis == topology.Single) {
		return fmt.Errorf("--redis-wait %d needs a Redis with replicas; add --engine local --local-redis %s (or %s), or --db and --redis", wait, topology.Sentinel, topology.Cluster)
	}
	return nil
}

func checkRedisWait(n int) error { return checkRange("redis-wait", n, 0, 16) }

func (f *shopFlags) validate() error {
	f.Admission = f.admission == adaptive
	return cmp.Or(
		checkRedisWait(f.Settings.Replicas),
		checkRange("wait", f.Settings.Wait, time.Millisecond, time.Minute),
		checkRange("lease", f.Settings.LeaseTTL, 10*time.Millisecond, time.Hour),
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

// shown writes a value as a user gives it: 1m, not 1m0s.
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

// rejectFlags returns an error if one of the flags is given. why follows the name of the flag.
func rejectFlags(c *cobra.Command, why string, flags ...string) error {
	for _, name := range flags {
		if f := c.Flags().Lookup(name); f != nil && f.Changed {
			return fmt.Errorf("--%s %s", name, why)
		}
	}
	return nil
}

// splitList splits "a,b". It returns nil for "".
func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
