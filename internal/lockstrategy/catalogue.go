package lockstrategy

import (
	"slices"

	"github.com/oversell/oversell/internal/lockstrategy/deps"
	"github.com/oversell/oversell/internal/purchase"
)

// Names returns the names of the catalogue in display order.
func Names() []string {
	var names []string
	for _, e := range All() {
		names = append(names, e.Name)
	}
	return names
}

// ByName returns the entry of that name, and whether there is one.
func ByName(name string) (Entry, bool) {
	all := All()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}

// Resolve returns the strategy's name for a value of ?lock=: an alias such as Y becomes the name of
// its entry. It returns any other value unchanged, whether it is a known name or not.
func Resolve(lock string) string { return Resolver()(lock) }

// Resolver returns a function like Resolve that reads the catalogue once, for many calls.
func Resolver() func(lock string) string {
	names := map[string]string{}
	for _, e := range All() {
		for _, alias := range e.Aliases {
			names[alias] = e.Name
		}
	}
	return func(lock string) string {
		if name, ok := names[lock]; ok {
			return name
		}
		return lock
	}
}

// Missing says why the dependencies d do not meet one of the entry's needs. It returns "" if they meet all.
func (e Entry) Missing(d Deps) string {
	for _, need := range e.Needs {
		switch {
		case d.Lacks[string(need)] != "":
			return d.Lacks[string(need)]
		case need == NeedsRedis && d.Redis == nil:
			return "no Redis is configured; set --redis or SHOP_REDIS_URL"
		case need == NeedsRedlock && len(d.Redlock) == 0:
			return "no Redlock nodes are configured; set --redlock or SHOP_REDLOCK_URLS"
		case need == NeedsZookeeper && d.Zookeeper == nil:
			return whyMissing(d, deps.Zookeeper, "no ZooKeeper is configured; use --engine local, or with --db set --zookeeper or SHOP_ZOOKEEPER_HOSTS")
		case need == NeedsEtcd && d.Etcd == nil:
			return whyMissing(d, deps.Etcd, "no etcd is configured; use --engine local, or with --db set --etcd or SHOP_ETCD_HOSTS")
		}
	}
	return ""
}

// whyMissing says why a server could not be started or, if no start was tried, how to configure it.
func whyMissing(d Deps, server, configure string) string {
	if d.WhyMissing != nil {
		if why := d.WhyMissing(server); why != "" {
			return why
		}
	}
	return configure
}

// AllMissing maps the name of each strategy that cannot run with d to the reason.
func AllMissing(d Deps) map[string]string {
	missing := map[string]string{}
	for _, e := range All() {
		if why := e.Missing(d); why != "" {
			missing[e.Name] = why
		}
	}
	return missing
}

// Build returns the strategies that can run with d, by name, and the result of AllMissing. The caller must
// close each strategy that is an io.Closer.
func Build(d Deps) (built map[string]purchase.Strategy, missing map[string]string) {
	built, missing = map[string]purchase.Strategy{}, AllMissing(d)
	for _, e := range All() {
		if missing[e.Name] == "" {
			built[e.Name] = e.New(d)
		}
	}
	return built, missing
}

// LockServers returns the lock servers that the named strategies use: Redis, and the other servers that
// they need. `--engine local` starts only these, since each server takes seconds to start. Without a name,
// or with an unknown name such as "all", LockServers returns nil, which means all servers.
func LockServers(strategies ...string) []string {
	needs := []string{string(NeedsRedis)}
	for _, name := range strategies {
		entry, ok := ByName(Resolve(name))
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
