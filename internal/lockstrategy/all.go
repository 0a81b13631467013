package lockstrategy

// All returns the entries of all lock strategies in display order. Each entry is in the file of its strategy.
func All() []Entry {
	all := entries()
	for i := range all {
		all[i] = onGalera(all[i])
		all[i].Texts = described()[all[i].Name]
	}
	return all
}

func entries() []Entry {
	return []Entry{
		noneEntry(),
		transactionEntry(),
		earlyUnlockEntry(),
		mutexEntry(),
		queueEntry(),
		forUpdateEntry(),
		optimisticEntry(),
		conditionalEntry(),
		checkAfterEntry(),
		serializableEntry(),
		namedLockEntry(),
		setnxEntry(),
		setnxExpireEntry(),
		getsetEntry(),
		setnxTTLEntry(),
		tokenGetDelEntry(),
		redisEntry(),
		watchdogEntry(),
		redissonEntry(),
		multilockEntry(),
		redlockEntry(),
		fencedEntry(),
		redisGetSetEntry(),
		redisWatchEntry(),
		redisDecrEntry(),
		redisLuaEntry(),
		zookeeperEntry(),
		etcdEntry(),
		etcdFencedEntry(),
		coalescedEntry(),
		bucketedEntry(),
		unitRowsEntry(),
	}
}
