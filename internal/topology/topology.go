// Package topology has the names of the ways in which Redis is built: the catalogue
// promises by them, the engine finds out which it is, and faults strike some.
package topology

// The topologies.
const (
	Single   = "single"   // one server
	Sentinel = "sentinel" // a primary and its replicas, watched by sentinels that fail over
	Cluster  = "cluster"  // several primaries that share the keys by slot, each with replicas
)

// All lists them in display order.
func All() []string { return []string{Single, Sentinel, Cluster} }
