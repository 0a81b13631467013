package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/topology"
	"github.com/oversell/oversell/internal/lockstrategy"
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

// defaultConns is the size of the pool to the database. On two cores more
// connections only lengthen the line inside the database.
const defaultConns = 64

func (f *engineFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.name, "engine", engine.Embedded, "embedded (SQLite and Redis in process) or local (private MariaDB, MySQL, PostgreSQL or Galera, Redis and, where installed, ZooKeeper and etcd)")
	registerLocalDB(c, &f.localDB)
	registerLocalRedis(c, &f.localRedis)
	flags.StringVar(&f.db, "db", os.Getenv("SHOP_DB_URL"), "a database that runs already: mysql://user:password@host:3306/database (several nodes of a cluster: host:3306,host:3306; ?writers=one for all processes at the first that lives), postgres://user:password@host:5432/database or sqlite:///file [SHOP_DB_URL]")
	flags.StringVar(&f.redis, "redis", os.Getenv("SHOP_REDIS_URL"), "with --db: redis://[:password@]host:6379, redis+sentinel://host:26379,host,host/mymaster or redis+cluster://host:6379,host,host [SHOP_REDIS_URL]")
	flags.StringSliceVar(&f.redlock, "redlock", splitList(os.Getenv("SHOP_REDLOCK_URLS")), "with --db: independent Redis nodes, URL,URL,... [SHOP_REDLOCK_URLS]")
	flags.StringSliceVar(&f.zookeeper, "zookeeper", splitList(os.Getenv("SHOP_ZOOKEEPER_HOSTS")), "with --db: a ZooKeeper ensemble, host:2181,... [SHOP_ZOOKEEPER_HOSTS]")
	flags.StringSliceVar(&f.etcd, "etcd", splitList(os.Getenv("SHOP_ETCD_HOSTS")), "with --db: an etcd cluster, host:2379,... [SHOP_ETCD_HOSTS]")
	flags.IntVar(&f.process, "process", 0, "the number of this process, from 0: with several hosts in --db it begins at host number modulo hosts ["+engine.ProcessVariable+"]")
	flags.IntVar(&f.conns, "db-conns", defaultConns, "connections to the database, at most")
}

// registerOwn adds the flags of a command that starts its servers.
func (f *engineFlags) registerOwn(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.name, "engine", engine.Embedded, "embedded (SQLite and Redis in process) or local (private servers)")
	flags.IntVar(&f.conns, "db-conns", defaultConns, "connections of each process to the database")
	registerLocalDB(c, &f.localDB)
	registerLocalRedis(c, &f.localRedis)
}

// checkOwn says what is wrong with --engine of such a command.
func (f *engineFlags) checkOwn() error {
	if f.name != engine.Embedded && f.name != engine.Local {
		return fmt.Errorf("--engine is %q; this command starts its servers: %s or %s", f.name, engine.Embedded, engine.Local)
	}
	return nil
}

// registerLocalDB adds --local-db.
func registerLocalDB(c *cobra.Command, to *string) {
	var names []string
	for _, d := range localserver.DatabaseServers() {
		names = append(names, d.Name)
	}
	c.Flags().StringVar(to, "local-db", "", "with --engine local: "+strings.Join(names, ", ")+"; unless given, MariaDB, or MySQL where the machine has only that")
}

// registerLocalRedis adds --local-redis.
func registerLocalRedis(c *cobra.Command, to *string) {
	var names []string
	for _, r := range localserver.RedisServers() {
		names = append(names, r.Name+" ("+r.About+")")
	}
	c.Flags().StringVar(to, "local-redis", "", "with --engine local: "+strings.Join(names, ", ")+"; unless given, single")
}

// checkLocalRedis checks --local-redis against --engine.
func checkLocalRedis(name, engineName string) error {
	if name != "" && engineName != engine.Local {
		return errors.New("--local-redis is for --engine local")
	}
	if _, err := localserver.RedisNamed(name); err != nil {
		return fmt.Errorf("--local-redis %w", err)
	}
	return nil
}

// checkLocalDB checks --local-db against --engine.
func checkLocalDB(name, engineName string) error {
	if name != "" && engineName != engine.Local {
		return errors.New("--local-db is for --engine local")
	}
	if _, err := localserver.DatabaseNamed(name); err != nil {
		return fmt.Errorf("--local-db %w", err)
	}
	return nil
}

// lockServersOf returns the lock servers that --engine local starts for strategies, which take
// seconds: Redis, and what the strategies need. It returns nil, for all servers, if the strategies
// are "all" or are not named.
func lockServersOf(strategies ...string) []string {
	needs := []string{string(lockstrategy.NeedsRedis)}
	for _, name := range strategies {
		entry, ok := lockstrategy.ByName(lockstrategy.Resolve(name))
		if !ok {
			return nil
		}
		for _, need := range entry.Needs {
			needs = append(needs, string(need))
		}
	}
	if len(strategies) == 0 {
		return nil
	}
	return needs
}

// config checks the flags against each other.
func (f *engineFlags) config(c *cobra.Command, s lockstrategy.Settings) (engine.Config, error) {
	if c.Flags().Changed("engine") {
		for _, flag := range []string{"db", "redis", "redlock", "zookeeper", "etcd"} {
			if c.Flags().Changed(flag) {
				return engine.Config{}, fmt.Errorf("--engine starts servers and --%s names running ones: give one of them", flag)
			}
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
		return engine.Config{}, fmt.Errorf("--db-conns is %d; at least 2 are needed", f.conns)
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
			return fmt.Errorf("%s is %q; give a number from 0", engine.ProcessVariable, text)
		}
	}
	switch {
	case f.process < 0:
		return fmt.Errorf("--process is %d; give a number from 0", f.process)
	case c.Flags().Changed("process") && f.localDB == "" && !strings.Contains(f.db, ","):
		return errors.New("--process chooses among the hosts of a cluster, and there is one; give --db mysql://...@host,host,host/database, or --local-db galera")
	}
	return nil
}

// shopFlags are those of a shop that serves, behind a rush or by itself.
type shopFlags struct {
	web.Config
	admission string // adaptive or off
}

// Flags of a shop, and what --admission may be.
const (
	soldOutCheck = "sold-out-check"

	admission   = "admission"
	adaptive    = "adaptive"
	noAdmission = "off"
)

// register adds the flags. open is whether the shop is open to everybody: then the sold-out
// check and the admission are on unless told otherwise. Where strategies are judged they
// would answer for them.
func (f *shopFlags) register(c *cobra.Command, open bool) {
	admit := noAdmission
	if open {
		admit = adaptive
	}
	preset := lockstrategy.DefaultSettings()
	flags := c.Flags()
	flags.DurationVar(&f.Settings.Wait, "wait", preset.Wait, "how long a buyer waits, for whatever it is, before it is told busy")
	flags.DurationVar(&f.Settings.LeaseTTL, "lease", preset.LeaseTTL, "how long a lock outlives a silent holder")
	flags.DurationVar(&f.Settings.Poll, "poll", preset.Poll, "mean pause between two tries for a lock that somebody holds")
	registerRedisWait(c, &f.Settings.Replicas)
	flags.BoolVar(&f.SoldOutCheck, soldOutCheck, open, "once a product was sold out, read its stock, once for all who come meanwhile, and refuse who comes too late before a strategy takes a lock")
	flags.StringVar(&f.admission, admission, admit, "adaptive tells buyers of a product busy at once where they could not be served in time; off lets all in")
	flags.IntVar(&f.MaxInflight, "max-inflight", 2_000, "buys in flight at once; more are told busy")
}

// registerRedisWait adds --redis-wait.
func registerRedisWait(c *cobra.Command, to *int) {
	c.Flags().IntVar(to, "redis-wait", 0, "a lock counts when so many replicas of Redis have it (WAIT); else it is given back: of "+strings.Join(web.Confirming(), ", "))
}

// checkReplicas: where this command starts a Redis without a replica, no lock would ever
// count.
func (f *engineFlags) checkReplicas(wait int) error {
	if wait > 0 && f.db == "" && (f.name != engine.Local || f.localRedis == "" || f.localRedis == topology.Single) {
		return fmt.Errorf("--redis-wait is %d, and this Redis has no replica; give --engine local --local-redis %s or %s, or --db and --redis", wait, topology.Sentinel, topology.Cluster)
	}
	return nil
}

func checkRedisWait(n int) error {
	if n < 0 || n > 16 {
		return fmt.Errorf("--redis-wait is %d; 0 to 16 replicas are allowed", n)
	}
	return nil
}

func (f *shopFlags) validate() error {
	f.Admission = f.admission == adaptive
	if err := checkRedisWait(f.Settings.Replicas); err != nil {
		return err
	}
	switch {
	case f.Settings.Wait < time.Millisecond || f.Settings.Wait > time.Minute:
		return fmt.Errorf("--wait is %s; 1ms to 1m are allowed", f.Settings.Wait)
	case f.Settings.LeaseTTL < 10*time.Millisecond || f.Settings.LeaseTTL > time.Hour:
		return fmt.Errorf("--lease is %s; 10ms to 1h are allowed", f.Settings.LeaseTTL)
	case f.Settings.Poll < 100*time.Microsecond || f.Settings.Poll > time.Second:
		return fmt.Errorf("--poll is %s; 100us to 1s are allowed", f.Settings.Poll)
	case f.MaxInflight < 1 || f.MaxInflight > 100_000:
		return fmt.Errorf("--max-inflight is %d; 1 to 100000 are allowed", f.MaxInflight)
	}
	return checkAdmission(f.admission)
}

func checkAdmission(value string) error {
	if value != adaptive && value != noAdmission {
		return fmt.Errorf("--%s is %q; give %s or %s", admission, value, adaptive, noAdmission)
	}
	return nil
}

// splitList splits "a,b"; "" is no element.
func splitList(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, ",")
}
