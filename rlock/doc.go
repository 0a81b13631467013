// Package rlock is a lock that processes share through Redis. It has the semantics and the wire format of RLock
// in the Java library Redisson. So a Java service and a Go service can exclude each other. The lock is
// reentrant, a watchdog renews it, and waiters do not poll.
//
//	lease, err := client.NewLock("stock").Lock(ctx)
//	if err != nil {
//		return err
//	}
//	defer lease.Unlock(context.WithoutCancel(ctx))
//	return sell(lease.Context())
//
// A lock called n has these keys in Redis. If n itself contains a "{", the keys have no braces around n.
//
//	n                                hash    {"uuid:id": holds}, PEXPIRE    <- the lock
//	redisson_lock__channel:{n}       channel '0' when the lock is free      <- waiters listen
//	redisson_lock_token:{n}          string  the last token                 <- fenced locks
//	redisson_lock_queue:{n}          list    uuid:id, the next one first    <- fair locks
//	redisson_lock_timeout:{n}        zset    uuid:id -> ms since 1970       <- fair locks
//	redisson_lock__channel:{n}:uuid:id       '0' when it is the waiter's turn
//
// uuid names the Client, id the Holder.
//
// # Waiting
//
// Of all waiters in one process, only the one at the front asks Redis. It does so when a message arrives, when
// the subscription is made or remade, and when the lock must have expired. So after a lost message, it asks
// when the TTL ends. The holder hands the lock directly to the next waiter of its process. After a few times in
// a row (HandOvers), it offers the lock to all processes.
//
// # Redis Cluster and Sentinel
//
// A Client takes any redis.UniversalClient. On a cluster the keys of a lock must be in one slot. That
// holds for a name without braces, and for a name with a part in braces, such as "shop:{stock}". For
// any other name, the error is ErrBadSlots.
//
// The scripts send messages with PUBLISH, not SPUBLISH, so messages reach every node. On a cluster of
// Redis 7 or later, Redisson uses SPUBLISH. There, the waiters of Redisson and of this package do not
// wake each other: they ask again when the lock must have expired.
//
// Set MaxRetries to -1 in the go-redis client. Otherwise it repeats a command after a missing answer; the
// cluster client does so with any MaxRetries. Most scripts of this package may be sent twice. For the others,
// the package tells go-redis not to repeat them.
//
// After a failover a lock may be gone. The option Replicas makes each grant wait until replicas have stored it.
//
// # Limits
//
// The lock is a lease. A process may be paused for longer than the lease lasts, by garbage collection, swap
// or a suspended machine. If it then writes, it writes without the lock, however often it checked the context
// before. The lock is also lost in a failover to a replica that does not have it. If such a write does harm,
// use NewFencedLock, and let the target of the write refuse old tokens.
//
// Sources: github.com/redisson/redisson/wiki, "Distributed locks and synchronizers", and the classes named at
// each constructor; redis.io/docs, "Distributed Locks with Redis" and "Redis Pub/Sub".
package rlock
