// Code generated from fault.All by make generate; DO NOT EDIT.

package promise

// The faults. Each strikes one of two processes, or the servers of both.
const (
	Crash            Condition = "crash"              // SIGKILL of the holder between acquire and write
	Pause            Condition = "pause"              // SIGSTOP of the holder for longer than its lease, then SIGCONT
	SlowSection      Condition = "slow-section"       // the section outlives the lease, and the process runs on
	ClientGone       Condition = "client-gone"        // the buyer hangs up in the middle of its buy
	RedisRestart     Condition = "redis-restart"      // killed, and back empty
	RedisFailover    Condition = "redis-failover"     // to a replica that lacks what was written last
	PrimaryPartition Condition = "primary-partition"  // the primary and the holder's shop are cut off together; a replica that has the lock is elected
	SlotMigration    Condition = "slot-migration"     // the slot of a held lock moves to another node
	ClusterDown      Condition = "cluster-down"       // a majority of the primaries is gone: CLUSTERDOWN
	NodeRestart      Condition = "node-restart"       // one Redlock node of a bare majority comes back empty
	NodesDown        Condition = "nodes-down"         // a minority of the Redlock nodes, then a majority
	ClockJump        Condition = "clock-jump"         // a lock server's clock
	Latency          Condition = "latency"            // between the shops and their lock servers
	Partition        Condition = "partition"          // between the holder's shop and its lock servers
	LeaseRevoked     Condition = "lease-revoked"      // the coordinator takes the lease away from a process that runs on
	CommitAnswerLost Condition = "commit-answer-lost" // a COMMIT takes place, its answer is dropped, and the connection closes
	DBKill           Condition = "db-kill"            // SIGKILL of the database under load, then back with its data
	DBFailover       Condition = "db-failover"        // SIGKILL of the database under load; its synchronous replica is promoted
	DBFailoverAsync  Condition = "db-failover-async"  // the same, and the replica lacks the last commits
	PoolerRestart    Condition = "pooler-restart"     // SIGKILL of the connection pooler under load, then back
	DBNodeKill       Condition = "db-node-kill"       // SIGKILL of a node of the cluster under load; the others go on, and it comes back
	DBNodeFreeze     Condition = "db-node-freeze"     // SIGSTOP of a node of the cluster until the others go on without it, then SIGCONT
	DBNodeCut        Condition = "db-node-cut"        // a node of the cluster is cut off from the others: a minority, which sells nothing
	DBNodeRejoin     Condition = "db-node-rejoin"     // a node of the cluster that has lost its files comes back by state transfer while buyers go on
	DBNodeLag        Condition = "db-node-lag"        // an order is sent again under its Idempotency-Key, at a node that has not applied its sale yet
	DBClusterRestart Condition = "db-cluster-restart" // SIGKILL of all nodes of the cluster under load, then bootstrapped from the one that has seen most
)

// Faults lists the faults in display order.
func Faults() []Condition {
	return []Condition{
		Crash,
		Pause,
		SlowSection,
		ClientGone,
		RedisRestart,
		RedisFailover,
		PrimaryPartition,
		SlotMigration,
		ClusterDown,
		NodeRestart,
		NodesDown,
		ClockJump,
		Latency,
		Partition,
		LeaseRevoked,
		CommitAnswerLost,
		DBKill,
		DBFailover,
		DBFailoverAsync,
		PoolerRestart,
		DBNodeKill,
		DBNodeFreeze,
		DBNodeCut,
		DBNodeRejoin,
		DBNodeLag,
		DBClusterRestart,
	}
}

// Struck lists the servers that a condition strikes: a strategy that needs none of
// them does not notice it. Nil: it strikes every strategy.
func Struck(c Condition) []string {
	switch c {
	case RedisRestart:
		return []string{"redis"}
	case RedisFailover:
		return []string{"redis"}
	case PrimaryPartition:
		return []string{"redis"}
	case SlotMigration:
		return []string{"redis"}
	case ClusterDown:
		return []string{"redis"}
	case NodeRestart:
		return []string{"redlock"}
	case NodesDown:
		return []string{"redlock"}
	case ClockJump:
		return []string{"redis", "redlock"}
	case Latency:
		return []string{"redis", "redlock", "zookeeper", "etcd"}
	case Partition:
		return []string{"redis", "redlock", "zookeeper", "etcd"}
	case LeaseRevoked:
		return []string{"zookeeper", "etcd"}
	}
	return nil
}

// On is the dialect of the databases that a condition strikes; "": every one.
func On(c Condition) string {
	switch c {
	case DBFailover:
		return "postgres"
	case DBFailoverAsync:
		return "postgres"
	case PoolerRestart:
		return "postgres"
	case DBNodeKill:
		return "galera"
	case DBNodeFreeze:
		return "galera"
	case DBNodeCut:
		return "galera"
	case DBNodeRejoin:
		return "galera"
	case DBNodeLag:
		return "galera"
	case DBClusterRestart:
		return "galera"
	}
	return ""
}

// OnRedis is the topology of the Redis that a condition strikes; "": every one.
func OnRedis(c Condition) string {
	switch c {
	case PrimaryPartition:
		return "sentinel"
	case SlotMigration:
		return "cluster"
	case ClusterDown:
		return "cluster"
	}
	return ""
}
