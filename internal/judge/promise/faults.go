// Code generated from fault.All by make generate; DO NOT EDIT.

package promise

// The faults. Each affects one of two processes, or the servers of both.
const (
	Crash              Condition = "crash"               // the holder's process is killed (SIGKILL) between taking the lock and writing
	Pause              Condition = "pause"               // the holder's process is stopped (SIGSTOP) for longer than its lease, then resumes
	SlowSection        Condition = "slow-section"        // the critical section outlasts the lease while the process runs on
	ShortLease         Condition = "short-lease"         // a lease of 100 ms, over a network that needs about 80 ms for a request and its answer
	ClientGone         Condition = "client-gone"         // the buyer hangs up between its read and its write
	Connections        Condition = "connections"         // each process has two database connections, and many buyers come while one holds the lock
	RedisRestart       Condition = "redis-restart"       // Redis is killed and restarts empty
	RedisFailover      Condition = "redis-failover"      // Redis fails over to a replica that lacks the last writes
	PrimaryPartition   Condition = "primary-partition"   // the Redis primary and the holder's shop are cut off together; a replica with the lock becomes primary
	SlotMigration      Condition = "slot-migration"      // the hash slot of a held lock moves to another node of the Redis cluster
	ClusterDown        Condition = "cluster-down"        // a majority of the primaries of the Redis cluster goes down (CLUSTERDOWN)
	NodeRestart        Condition = "node-restart"        // a bare majority of the Redlock nodes has granted the lock, and one of them restarts empty
	NodesDown          Condition = "nodes-down"          // a minority of the Redlock nodes goes down, then a majority
	ClockJump          Condition = "clock-jump"          // the clock of a lock server jumps an hour ahead while the holder is in its critical section
	ClientClock        Condition = "client-clock"        // the clock of the second process is ahead of the holder's by more than a lease
	Latency            Condition = "latency"             // every answer of the lock servers is delayed by about 30 ms
	Partition          Condition = "partition"           // the holder's shop loses its connections to the lock servers
	ReleaseCut         Condition = "release-cut"         // the holder's connections break during its release, or at COMMIT without a lock: once the answer is lost, once the request
	ServerHang         Condition = "server-hang"         // the lock servers, or the database if there are none, hang (SIGSTOP) until buyers give up
	SuccessiveFailures Condition = "successive-failures" // connections are cut, lock servers restart, the database is killed, each after a recovery
	LeaderKill         Condition = "leader-kill"         // the leader of three ZooKeeper or etcd members is killed; another is elected, and the killed one returns
	LeaseRevoked       Condition = "lease-revoked"       // ZooKeeper or etcd revokes the lease of a lock holder while its process runs on
	CommitAnswerLost   Condition = "commit-answer-lost"  // a COMMIT succeeds, but its answer is dropped and the connection closes
	DBKill             Condition = "db-kill"             // the database is killed under load and restarts with its data
	DBFailover         Condition = "db-failover"         // the database is killed under load, and its synchronous replica takes over
	DBFailoverAsync    Condition = "db-failover-async"   // the database is killed under load, and a replica without the last commits takes over
	PoolerRestart      Condition = "pooler-restart"      // the connection pooler is killed under load and restarts
	DBNodeKill         Condition = "db-node-kill"        // a Galera node is killed under load and returns later
	DBNodeFreeze       Condition = "db-node-freeze"      // a Galera node is stopped (SIGSTOP) until the others continue without it, then resumes
	DBNodeCut          Condition = "db-node-cut"         // a Galera node is cut off from the others; this minority must sell nothing
	DBNodeRejoin       Condition = "db-node-rejoin"      // a Galera node loses its files and returns by state transfer while buyers continue
	DBNodeLag          Condition = "db-node-lag"         // an order is repeated under its Idempotency-Key at a node that has not applied the first sale yet
	DBClusterRestart   Condition = "db-cluster-restart"  // all nodes of the database cluster are killed under load; it restarts from the node with the latest commits
)

// Faults lists the faults in display order.
func Faults() []Condition {
	return []Condition{
		Crash,
		Pause,
		SlowSection,
		ShortLease,
		ClientGone,
		Connections,
		RedisRestart,
		RedisFailover,
		PrimaryPartition,
		SlotMigration,
		ClusterDown,
		NodeRestart,
		NodesDown,
		ClockJump,
		ClientClock,
		Latency,
		Partition,
		ReleaseCut,
		ServerHang,
		SuccessiveFailures,
		LeaderKill,
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

// Struck lists the servers that a condition affects: a strategy that needs none of
// them does not notice it. Nil: it affects every strategy.
func Struck(c Condition) []string {
	switch c {
	case ShortLease:
		return []string{"redis"}
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
	case ClientClock:
		return []string{"redis", "redlock", "zookeeper", "etcd"}
	case Latency:
		return []string{"redis", "redlock", "zookeeper", "etcd"}
	case Partition:
		return []string{"redis", "redlock", "zookeeper", "etcd"}
	case ReleaseCut:
		return []string{"redis", "redlock", "zookeeper", "etcd", "named-locks"}
	case LeaderKill:
		return []string{"zookeeper", "etcd"}
	case LeaseRevoked:
		return []string{"zookeeper", "etcd"}
	}
	return nil
}

// On returns the dialect of the databases that a condition affects; "": every one.
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

// OnRedis returns the topology of the Redis that a condition affects; "": every one.
func OnRedis(c Condition) string {
	switch c {
	case PrimaryPartition:
		return "sentinel"
	case SlotMigration:
		return "cluster"
	case ClusterDown:
		return "cluster"
	case ServerHang:
		return "single"
	case SuccessiveFailures:
		return "single"
	}
	return ""
}
