package gate

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/schedule"
	"github.com/oversell/oversell/internal/lockstrategy/redisscript"
)

// scripts holds the descriptions of the strategies' scripts, and records which scripts were sent.
type scripts struct {
	described map[string]redisscript.Description // by hash

	mu   sync.Mutex
	sent map[[2]string]bool // by server and hash: the full script was sent there
}

func newScripts(described []redisscript.Description) *scripts {
	s := &scripts{described: map[string]redisscript.Description{}, sent: map[[2]string]bool{}}
	for _, d := range described {
		s.described[d.SHA] = d
	}
	return s
}

// describe sets c.script to the script's description. It refuses a script without a description, since the
// script's effect would be unknown.
func (s *scripts) describe(c *command) error {
	sha := c.sha()
	d, known := s.described[sha]
	if !known {
		text := sha
		if c.name == "EVAL" {
			first, _, _ := strings.Cut(strings.TrimSpace(fmt.Sprint(c.args[1])), "\n")
			text = fmt.Sprintf("%s (%s)", sha, first)
		}
		return fmt.Errorf("%w: %w: %s: say what it does in the strategy's Entry.Scripts, see internal/lockstrategy/redisscript", schedule.ErrHarness, schedule.ErrUndescribed, text)
	}
	c.script = d
	return nil
}

// sha returns the hash that identifies the command's script in Redis.
func (c command) sha() string {
	text := fmt.Sprint(c.args[1])
	if c.name == "EVALSHA" {
		return text
	}
	return redisscript.SHA(text)
}

// unsent reports whether a command names a script by its hash before the full script was sent to that server. The gate
// then answers NOSCRIPT by itself, and the client sends the full script. So the two commands are one step in every
// run.
func (s *scripts) unsent(server string, c command) bool {
	if c.name != "EVALSHA" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.sent[[2]string{server, c.sha()}]
}

// answered records that a full script has reached the server. A script does not count if its command was ended at the
// gate.
func (s *scripts) answered(server string, c command, err error) {
	var reply redis.Error
	if c.name != "EVAL" || err != nil && !errors.As(err, &reply) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent[[2]string{server, c.sha()}] = true
}

// noScript is the answer of a Redis server that does not know a script.
type noScript struct{}

func (noScript) Error() string { return "NOSCRIPT explore has not seen this script yet" }
func (noScript) RedisError()   {}
