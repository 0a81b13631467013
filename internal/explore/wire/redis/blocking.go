package redis

import (
	"math"
	"strconv"
	"strings"
)

// forEver is the command with a timeout that no clock reaches. One that Redis will refuse
// stays as it is.
func forEver(q *request) []byte {
	i, seconds, blocks := timeout(q.args)
	if !blocks || i >= len(q.args) {
		return q.raw
	}
	text := string(q.args[i])
	if seconds {
		t, err := strconv.ParseFloat(text, 64)
		if err != nil || !(t > 0 && t*1000 < math.MaxInt64) {
			return q.raw
		}
	} else if t, err := strconv.ParseInt(text, 10, 64); err != nil || t <= 0 {
		return q.raw
	}
	return q.with(i, "0")
}

// endless: a blocking command that asks for a wait without end, by 0.
func endless(q *request) bool {
	i, _, blocks := timeout(q.args)
	if !blocks || i >= len(q.args) {
		return false
	}
	t, err := strconv.ParseFloat(string(q.args[i]), 64)
	return err == nil && t == 0
}

// timeout finds the argument that says how long a command may wait, in seconds or in
// milliseconds.
func timeout(args [][]byte) (i int, seconds, blocks bool) {
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
