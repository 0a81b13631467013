package dialect

// Galera is the name of a Galera cluster of MariaDB. Its dialect is MySQL's, but a transaction at one node may not
// see the latest commits of another node. So the catalogue of strategies lists Galera separately.
const Galera = "galera"

// Lacks returns the capabilities that a database lacks, with the reasons. engine.Engine.Lacks adds those that
// only show when the server is open.
func Lacks(database string) map[string]string {
	if Kind(database) != Galera {
		return nil
	}
	return map[string]string{
		NamedLocks: "GET_LOCK locks a name on one node only, so two nodes of a Galera cluster grant the same name at once; use another strategy",
	}
}

// WhyUnexplored says why the explorer (`shop explore`) cannot control the order of the steps on a database. It
// returns "" if the explorer can.
func WhyUnexplored(database string) string {
	if Kind(database) != Galera {
		return ""
	}
	return "a Galera node applies the commits of other nodes at a moment that nothing can choose; use --local-db mariadb"
}
