package dialect

// A Galera cluster of MariaDB: the dialect is MySQL's, and what a transaction has read may
// be behind what another node has committed. The catalogue promises otherwise there.
const (
	Galera          = "galera"            // the shop's processes write to different nodes
	GaleraOneWriter = "galera-one-writer" // all of them to one node, while it lives
)

// Lacks says what a database as the promises name it cannot do, and why, by capability.
// What only an open server shows is not here, see engine.Engine.Lacks.
func Lacks(database string) map[string]string {
	if Kind(database) != Galera {
		return nil
	}
	return map[string]string{
		NamedLocks: "GET_LOCK is one node's own: two nodes of a Galera cluster grant the same name at once; use another strategy",
	}
}

// WhyUnexplored says why the explorer cannot decide the order of the steps on a database;
// "" where it can.
func WhyUnexplored(database string) string {
	if Kind(database) != Galera {
		return ""
	}
	return "on a Galera cluster each node applies by itself what the others have committed, and nothing holds it up between two steps; use --local-db mariadb"
}
