package redis

import (
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// effect says whether a command waits at the gate, and what it can do to the server. sub is
// its first argument, in capitals like name. A command that nobody knows writes.
func effect(name, sub string) (gated bool, _ schedule.Effect) {
	switch {
	case passes(name, sub):
		return false, schedule.Local
	case reads(name, sub):
		return true, schedule.Reads
	}
	return true, schedule.Writes
}

// passes: it belongs to the connection alone, or asks what is the same in all orders.
func passes(name, sub string) bool {
	switch name {
	case "HELLO", "AUTH", "RESET", "QUIT", "PING", "ECHO", "SELECT", "INFO", "COMMAND", "TIME",
		"READONLY", "READWRITE", "ASKING", "MEMORY", "LOLWUT", "ROLE", "LASTSAVE",
		"MULTI", "DISCARD", "UNWATCH",
		"SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE":
		return true
	case "CLIENT": // these are felt by other clients
		return sub != "KILL" && sub != "UNBLOCK" && sub != "PAUSE" && sub != "UNPAUSE"
	case "CONFIG":
		return sub == "GET" || sub == "HELP"
	case "SCRIPT": // a script that is there before EVALSHA asks for it changes what a loser does, but nobody's data
		return sub == "LOAD" || sub == "EXISTS" || sub == "HELP"
	case "CLUSTER":
		switch sub {
		case "SLOTS", "SHARDS", "NODES", "INFO", "MYID", "KEYSLOT", "LINKS", "REPLICAS", "HELP":
			return true
		}
	case "ACL":
		return sub == "WHOAMI" || sub == "CAT" || sub == "HELP"
	case "MODULE", "LATENCY", "SLOWLOG":
		return sub == "LIST" || sub == "GET" || sub == "LEN" || sub == "LATEST" || sub == "HELP"
	}
	return false
}

// reads: it changes nothing, and waits for nobody. Those that answer by chance (RANDOMKEY,
// SRANDMEMBER) are not among them: two of them would change places, and no run could be
// repeated. Neither is PFCOUNT, which writes what it has counted.
func reads(name, sub string) bool {
	switch name {
	case "GET", "MGET", "GETRANGE", "SUBSTR", "STRLEN", "LCS", "GETBIT", "BITCOUNT", "BITPOS", "BITFIELD_RO",
		"EXISTS", "TTL", "PTTL", "EXPIRETIME", "PEXPIRETIME", "TYPE", "DUMP", "KEYS", "SCAN", "DBSIZE", "SORT_RO",
		"HGET", "HGETALL", "HMGET", "HEXISTS", "HLEN", "HKEYS", "HVALS", "HSTRLEN", "HSCAN", "HTTL", "HPTTL",
		"LLEN", "LRANGE", "LINDEX", "LPOS",
		"SCARD", "SISMEMBER", "SMISMEMBER", "SMEMBERS", "SSCAN", "SINTER", "SINTERCARD", "SUNION", "SDIFF",
		"ZRANGE", "ZRANGEBYSCORE", "ZRANGEBYLEX", "ZREVRANGE", "ZREVRANGEBYSCORE", "ZREVRANGEBYLEX",
		"ZCARD", "ZCOUNT", "ZLEXCOUNT", "ZSCORE", "ZMSCORE", "ZRANK", "ZREVRANK", "ZSCAN",
		"ZINTER", "ZINTERCARD", "ZUNION", "ZDIFF",
		"GEODIST", "GEOHASH", "GEOPOS", "GEOSEARCH", "GEORADIUS_RO", "GEORADIUSBYMEMBER_RO",
		"XLEN", "XRANGE", "XREVRANGE", "XREAD", "XINFO", "XPENDING",
		"EVAL_RO", "EVALSHA_RO", "FCALL_RO",
		"OBJECT", "PUBSUB", "WATCH":
		return true
	case "FUNCTION":
		return sub == "LIST" || sub == "DUMP" || sub == "STATS" || sub == "HELP"
	}
	return false
}

// isScript: it runs code, which may have written whatever it answers.
func isScript(name string) bool {
	switch name {
	case "EVAL", "EVALSHA", "EVAL_RO", "EVALSHA_RO", "FCALL", "FCALL_RO":
		return true
	}
	return false
}

// zeroMeansNothing: the answer 0 proves that it has changed nothing.
func zeroMeansNothing(name string) bool {
	switch name {
	case "SETNX", "MSETNX", "HSETNX", "DEL", "UNLINK", "COPY", "MOVE", "RENAMENX",
		"EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT", "PERSIST",
		"SADD", "SREM", "SMOVE", "HDEL", "ZREM", "ZREMRANGEBYRANK", "ZREMRANGEBYSCORE", "ZREMRANGEBYLEX",
		"LREM", "LINSERT", "LPUSHX", "RPUSHX", "XDEL", "XACK", "XTRIM":
		return true
	}
	return false
}

// nilMeansNothing: the answer nil proves that it has changed nothing. Of SET, see judge.
func nilMeansNothing(name string) bool {
	switch name {
	case "GETDEL", "GETEX", "LPOP", "RPOP", "LMPOP", "LMOVE", "RPOPLPUSH", "SPOP", "ZMPOP",
		"BLPOP", "BRPOP", "BLMPOP", "BLMOVE", "BRPOPLPUSH", "BZPOPMIN", "BZPOPMAX", "BZMPOP":
		return true
	}
	return false
}

// changesNothing: it is gated as one that writes because it waits for others.
func changesNothing(name string) bool {
	return name == "XREAD" || name == "WAIT" || name == "WAITAOF"
}

// unframed says why a command is refused; "": it is not.
func unframed(name, sub, word string) string {
	switch name {
	case "MONITOR", "SYNC", "PSYNC":
		return "the program sends " + name + " to redis, after which answers cannot be told apart: leave it out for the test"
	case "SCRIPT":
		if sub == "DEBUG" && !strings.EqualFold(word, "NO") {
			return "the program debugs a script in redis (SCRIPT DEBUG): leave it out for the test"
		}
	}
	return ""
}
