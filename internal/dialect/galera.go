package dialect

// A Galera cluster of MariaDB: the dialect is MySQL's, and what a transaction has read may
// be behind what another node has committed. The catalogue promises otherwise there.
const (
	Galera          = "galera"            // the shop's processes write to different nodes
	GaleraOneWriter = "galera-one-writer" // all of them to one node, while it lives
)
