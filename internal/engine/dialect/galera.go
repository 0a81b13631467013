package dialect

// Galera is the name of a Galera cluster of MariaDB. Its dialect is MySQL's, but a transaction may
// read data that is older than the commits of another node. The catalogue has separate promises for
// it.
const Galera = "galera"

// Lacks returns the capabilities that a database lacks, with the reasons. engine.Engine.Lacks also contains
// those that only an open server shows.
func Lacks(database string) map[string]string {
	if Kind(database) != Galera {
		return nil
	}
	return map[string]string{
		NamedLocks: "GET_LOCK locks a name on one node only, so two nodes of a Galera cluster grant the same name at once; use another strategy",
	}
}

// WhyUnexplored says why the explorer cannot control the order of the steps on a database; "" if it
// can.
func WhyUnexplored(database string) string {
	if Kind(database) != Galera {
		return ""
	}
	return "a Galera node applies the commits of other nodes at a moment that nothing can choose; use --local-db mariadb"
}
