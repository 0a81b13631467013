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

// ByName finds an entry.
func ByName(name string) (Entry, bool) {
	all := All()
	i := slices.IndexFunc(all, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, false
	}
	return all[i], true
}

// Resolve turns what stands in ?lock= into a strategy's name: an alias, such as Y,
// into the name of the entry that has it. Any other text is returned as it is,
// known or not.
func Resolve(lock string) string { return Resolver()(lock) }

// Resolver is Resolve for many calls: it reads the catalogue once.
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

// Missing says what the entry needs and d has not, or "".
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
			return absent(d, deps.Zookeeper, "no ZooKeeper is configured; use --engine local, or with --db set --zookeeper or SHOP_ZOOKEEPER_HOSTS")
		case need == NeedsEtcd && d.Etcd == nil:
			return absent(d, deps.Etcd, "no etcd is configured; use --engine local, or with --db set --etcd or SHOP_ETCD_HOSTS")
		}
	}
	return ""
}

// absent is why a server could not be started, or else what to configure.
func absent(d Deps, server, configure string) string {
	if d.Absent != nil {
		if why := d.Absent(server); why != "" {
			return why
		}
	}
	return configure
}

// AllMissing says of each strategy that d lacks a server for why it cannot run.
func AllMissing(d Deps) map[string]string {
	missing := map[string]string{}
	for _, e := range All() {
		if why := e.Missing(d); why != "" {
			missing[e.Name] = why
		}
	}
	return missing
}

// Build constructs the strategies whose servers d has, by name, and says of
// the others why not. A strategy that is an io.Closer must be closed.
func Build(d Deps) (built map[string]purchase.Strategy, missing map[string]string) {
	built, missing = map[string]purchase.Strategy{}, AllMissing(d)
	for _, e := range All() {
		if missing[e.Name] == "" {
			built[e.Name] = e.New(d)
		}
	}
	return built, missing
}
