package gate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/effect"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
)

type command struct {
	name   string // in capitals
	args   []any  // including the name
	keys   []string
	script redisscript.Description // for EVAL and EVALSHA, set by scripts.describe
}

func parse(args []any) command {
	c := command{name: strings.ToUpper(fmt.Sprint(args[0])), args: args}
	switch c.name {
	case "EVAL", "EVALSHA":
		n := 0
		if len(args) > 2 {
			_, _ = fmt.Sscan(fmt.Sprint(args[2]), &n)
		}
		c.keys = c.words(3)[:min(n, max(0, len(args)-3))]
	case "DEL", "EXISTS", "UNLINK", "MGET":
		c.keys = c.words(1)
	case "MSET", "MSETNX":
		for i, word := range c.words(1) {
			if i%2 == 0 {
				c.keys = append(c.keys, word)
			}
		}
	case "RENAME", "RENAMENX", "COPY", "SMOVE", "LMOVE", "RPOPLPUSH":
		c.keys = c.words(1)[:min(2, len(args)-1)]
	case "PUBLISH", "PING":
	default:
		c.keys = c.words(1)[:min(1, len(args)-1)]
	}
	return c
}

func (c command) words(i int) (words []string) {
	for ; i < len(c.args); i++ {
		words = append(words, fmt.Sprint(c.args[i]))
	}
	return words
}

// connects reports whether the command only prepares a new connection.
func (c command) connects() bool {
	return c.name == "HELLO" || c.name == "CLIENT" || c.name == "AUTH" || c.name == "SELECT"
}

func (c command) isScript() bool { return c.name == "EVAL" || c.name == "EVALSHA" }

func (c command) lock() string {
	if len(c.keys) == 0 {
		return ""
	}
	return c.keys[0]
}

// role returns the role, such as taking the lock or releasing it, of a plain command on a lock's key.
func (c command) role() redisscript.Role {
	switch c.name {
	case "DEL":
		return redisscript.Release
	case "EXPIRE", "PEXPIRE":
		return redisscript.Renew
	}
	return redisscript.Acquire
}

func (c command) does() effect.Redis {
	var words [][]byte
	for _, word := range c.words(0) {
		words = append(words, []byte(word))
	}
	return effect.RedisCommand(words)
}

// changed reports whether a command that may write has written, according to its answer. If that is uncertain, it
// returns true: the only effect is one more attempt of a waiting buyer.
func (c command) changed(cmd redis.Cmder, err error) bool {
	if c.isScript() {
		// A buyer that waits for the lock cannot notice a renewed lease.
		return err != redis.Nil && c.script.Role != redisscript.Renew && c.script.Role != redisscript.Inspect && !c.script.Refuses(values(cmd))
	}
	changed, _ := c.does().Outcome(c.tells(cmd, err))
	return changed
}

// tells classifies an answer. go-redis returns false for the answer nil to SET NX, and for the answer 0 to other
// commands.
func (c command) tells(cmd redis.Cmder, err error) effect.RedisAnswer {
	var refused redis.Error
	var value any
	switch cmd := cmd.(type) {
	case *redis.BoolCmd:
		value = cmd.Val()
	case *redis.IntCmd:
		value = cmd.Val()
	case *redis.Cmd:
		value = cmd.Val()
	}
	switch {
	case err == redis.Nil, value == false && c.name == "SET":
		return effect.Nil
	case errors.As(err, &refused):
		return effect.Refused
	case err == nil && (value == false || value == int64(0)):
		return effect.Zero
	}
	return effect.Value
}

// listeners returns how many listeners the command has notified. The number is in the answer to PUBLISH, and to
// a script whose description sets Listeners.
func (c command) listeners(cmd redis.Cmder) (n int) {
	answer := values(cmd)
	at := c.script.Listeners
	if c.name == "PUBLISH" {
		at = 1
	}
	if at > 0 && at <= len(answer) {
		_, _ = fmt.Sscan(answer[at-1], &n)
	}
	return max(0, n)
}

func values(cmd redis.Cmder) []string {
	return strings.Fields(strings.Trim(reply(cmd, cmd.Err()), "[]"))
}

// whole returns a text that differs for any two different answers. The function `reply` returns a text for the user,
// which may be ambiguous.
func whole(cmd redis.Cmder, err error) string {
	if err != nil {
		return reply(cmd, err)
	}
	switch c := cmd.(type) {
	case *redis.StringCmd:
		return strconv.Quote(c.Val())
	case *redis.StringSliceCmd:
		return fmt.Sprintf("%#v", c.Val())
	case *redis.SliceCmd:
		return fmt.Sprintf("%#v", c.Val())
	case *redis.MapStringStringCmd:
		return fmt.Sprintf("%#v", c.Val())
	case *redis.Cmd:
		return fmt.Sprintf("%#v", c.Val())
	}
	return reply(cmd, err)
}

func reply(cmd redis.Cmder, err error) string {
	if err == redis.Nil {
		return "nil"
	}
	if err != nil {
		return "error: " + err.Error()
	}
	if c, ok := cmd.(*redis.BoolCmd); ok {
		if c.Val() {
			return "1"
		}
		return "0"
	}
	text := cmd.String() // "command args: reply"
	if i := strings.LastIndex(text, ": "); i >= 0 {
		text = text[i+2:]
	}
	return text
}
