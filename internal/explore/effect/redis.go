package effect

import (
	"bytes"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// A Redis is a command of Redis. Its words determine its possible effect. Its answer tells whether that
// effect has happened.
type Redis struct {
	Name, Sub string // its name and its first argument, in capitals

	old    bool // SET with GET: it answers with the old value
	blocks bool // it may wait for another client
}

// RedisCommand classifies a command by its words. The first word is the command's name.
func RedisCommand(args [][]byte) Redis {
	c := Redis{Name: RedisWord(args, 0), Sub: RedisWord(args, 1)}
	if c.Name == "SET" {
		c.old = slices.ContainsFunc(args[min(3, len(args)):], func(option []byte) bool { return bytes.EqualFold(option, []byte("GET")) })
	}
	_, _, c.blocks = RedisTimeout(args)
	return c
}

// longestWord is longer than any keyword of Redis, in bytes.
const longestWord = 60

// RedisWord returns an argument in capitals, or "" if there is none. It truncates a long argument.
func RedisWord(args [][]byte, i int) string {
	if i >= len(args) {
		return ""
	}
	return strings.ToUpper(string(args[i][:min(len(args[i]), longestWord)]))
}

// Effect returns Local, Reads or Writes. An unknown command counts as Writes.
func (c Redis) Effect() schedule.Effect {
	switch {
	case c.Passes():
		return schedule.Local
	case c.reads() && !c.blocks:
		return schedule.Reads
	}
	return schedule.Writes
}

// Passes reports whether the command need not wait at the gate, where commands wait for their turn.
// Such a command affects only the connection, or its answer is the same in all schedules.
func (c Redis) Passes() bool {
	switch c.Name {
	case "HELLO", "AUTH", "RESET", "QUIT", "PING", "ECHO", "SELECT", "INFO", "COMMAND", "TIME",
		"READONLY", "READWRITE", "ASKING", "LOLWUT", "ROLE", "LASTSAVE",
		"MULTI", "DISCARD", "UNWATCH",
		"SUBSCRIBE", "UNSUBSCRIBE", "PSUBSCRIBE", "PUNSUBSCRIBE", "SSUBSCRIBE", "SUNSUBSCRIBE":
		return true
	case "MEMORY":
		return c.Sub != "USAGE" // MEMORY USAGE reads a key
	case "CLIENT": // other clients notice these
		return c.Sub != "KILL" && c.Sub != "UNBLOCK" && c.Sub != "PAUSE" && c.Sub != "UNPAUSE"
	case "CONFIG":
		return c.Sub == "GET" || c.Sub == "HELP"
	case "SCRIPT": // LOAD changes no data, only whether an EVALSHA finds its script
		return c.Sub == "LOAD" || c.Sub == "EXISTS" || c.Sub == "HELP"
	case "CLUSTER":
		switch c.Sub {
		case "SLOTS", "SHARDS", "NODES", "INFO", "MYID", "KEYSLOT", "LINKS", "REPLICAS", "HELP":
			return true
		}
	case "ACL":
		return c.Sub == "WHOAMI" || c.Sub == "CAT" || c.Sub == "HELP"
	case "MODULE", "LATENCY", "SLOWLOG":
		return c.Sub == "LIST" || c.Sub == "GET" || c.Sub == "LEN" || c.Sub == "LATEST" || c.Sub == "HELP"
	}
	return false
}

// readers are commands that change nothing and wait for no other client. They exclude commands with a
// random answer (RANDOMKEY, SRANDMEMBER): a run that swaps two of them could not be repeated. They also
// exclude PFCOUNT, which stores its count.
var readers = set(`GET MGET GETRANGE SUBSTR STRLEN LCS GETBIT BITCOUNT BITPOS BITFIELD_RO
	EXISTS TTL PTTL EXPIRETIME PEXPIRETIME TYPE DUMP KEYS SCAN DBSIZE SORT_RO
	HGET HGETALL HMGET HEXISTS HLEN HKEYS HVALS HSTRLEN HSCAN HTTL HPTTL
	LLEN LRANGE LINDEX LPOS
	SCARD SISMEMBER SMISMEMBER SMEMBERS SSCAN SINTER SINTERCARD SUNION SDIFF
	ZRANGE ZRANGEBYSCORE ZRANGEBYLEX ZREVRANGE ZREVRANGEBYSCORE ZREVRANGEBYLEX
	ZCARD ZCOUNT ZLEXCOUNT ZSCORE ZMSCORE ZRANK ZREVRANK ZSCAN ZINTER ZINTERCARD ZUNION ZDIFF
	GEODIST GEOHASH GEOPOS GEOSEARCH GEORADIUS_RO GEORADIUSBYMEMBER_RO
	XLEN XRANGE XREVRANGE XREAD XINFO XPENDING EVAL_RO EVALSHA_RO FCALL_RO OBJECT PUBSUB WATCH MEMORY`)

func (c Redis) reads() bool {
	return readers[c.Name] || c.Name == "FUNCTION" && (c.Sub == "LIST" || c.Sub == "DUMP" || c.Sub == "STATS" || c.Sub == "HELP")
}

var scripts = set("EVAL EVALSHA EVAL_RO EVALSHA_RO FCALL FCALL_RO")

// IsScript reports whether the command runs code. A script may have written, whatever its answer is.
func (c Redis) IsScript() bool { return scripts[c.Name] }

// A RedisAnswer is a class of answers. It tells whether the command can have changed the server.
type RedisAnswer int

const (
	Value RedisAnswer = iota
	Nil               // nil of any kind
	Zero
	False    // RESP3's false
	Refused  // an error
	NoScript // an error: the server does not know the script
)

// Outcome reports two things: whether the command may have changed data that others can see or wait
// for, and whether it has failed. It has failed if Redis refused it, or if it found nothing.
func (c Redis) Outcome(a RedisAnswer) (changed, failed bool) {
	nothing := a == Nil || a == False || a == Refused || a == NoScript
	switch {
	case c.Passes():
		return false, a == Refused || a == NoScript
	case c.IsScript():
		return c.Effect() != schedule.Reads && a != NoScript, nothing || a == Zero
	case c.reads(), onlyWaits[c.Name], a == Refused, a == NoScript:
		return false, nothing
	case a == Nil && (c.Name == "GETSET" || c.old):
		return true, false // nil here means that there was no old value
	case a == Nil:
		return !nilMeansNothing[c.Name] && c.Name != "SET", true
	case (a == Zero || a == False) && zeroMeansNothing[c.Name]:
		return false, true
	}
	return true, a == False
}

// zeroMeansNothing are commands whose answer 0 proves that they have changed nothing.
var zeroMeansNothing = set(`SETNX MSETNX HSETNX DEL UNLINK COPY MOVE RENAMENX EXPIRE PEXPIRE EXPIREAT PEXPIREAT PERSIST
	SADD SREM SMOVE HDEL ZREM ZREMRANGEBYRANK ZREMRANGEBYSCORE ZREMRANGEBYLEX
	LREM LINSERT LPUSHX RPUSHX XDEL XACK XTRIM`)

// nilMeansNothing are commands whose answer nil proves that they have changed nothing. SET is not among
// them, since its options decide.
var nilMeansNothing = set(`GETDEL GETEX LPOP RPOP LMPOP LMOVE RPOPLPUSH SPOP ZMPOP
	BLPOP BRPOP BLMPOP BLMOVE BRPOPLPUSH BZPOPMIN BZPOPMAX BZMPOP`)

// onlyWaits are commands that count as writes only because they wait for other clients.
var onlyWaits = set("XREAD WAIT WAITAOF")

// RedisTimeout returns the position i of a blocking command's time-out, which is in seconds or milliseconds.
func RedisTimeout(args [][]byte) (i int, seconds, blocks bool) {
	switch strings.ToUpper(string(args[0])) {
	case "BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX", "BRPOPLPUSH", "BLMOVE":
		return max(1, len(args)-1), true, true
	case "BLMPOP", "BZMPOP":
		return 1, true, true
	case "WAIT":
		return 2, false, true
	case "WAITAOF":
		return 3, false, true
	case "XREAD", "XREADGROUP":
		for i := 1; i < len(args); i++ {
			switch strings.ToUpper(string(args[i])) {
			case "BLOCK":
				return i + 1, false, true
			case "COUNT":
				i++
			case "GROUP":
				i += 2
			case "STREAMS":
				return 0, false, false
			}
		}
	}
	return 0, false, false
}
