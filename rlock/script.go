package rlock

import (
	"context"
	"crypto/sha1" // #nosec G505 -- the name that Redis gives a script, not a secret
	_ "embed"
	"encoding/hex"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/acquire.lua
var acquireLua string

//go:embed lua/release.lua
var releaseLua string

//go:embed lua/handover.lua
var handoverLua string

//go:embed lua/renew.lua
var renewLua string

//go:embed lua/force_unlock.lua
var forceUnlockLua string

//go:embed lua/raise_token.lua
var raiseTokenLua string

//go:embed lua/fair.lua
var fairLua string

//go:embed lua/fair_acquire.lua
var fairAcquireLua string

//go:embed lua/fair_release.lua
var fairReleaseLua string

//go:embed lua/fair_leave.lua
var fairLeaveLua string

//go:embed lua/fair_force_unlock.lua
var fairForceUnlockLua string

// Scripts that may be sent twice: the second time changes nothing.
var (
	acquire         = newScript(acquireLua)
	renew           = newScript(renewLua)
	forceUnlock     = newScript(forceUnlockLua)
	raiseToken      = newScript(raiseTokenLua)
	fairAcquire     = newScript(fairLua, fairAcquireLua)
	fairLeave       = newScript(fairLua, fairLeaveLua)
	fairForceUnlock = newScript(fairLua, fairForceUnlockLua)
)

// Scripts that answer "not held" if they are sent twice.
var (
	release     = newScript(releaseLua).sentOnce()
	handover    = newScript(handoverLua).sentOnce()
	fairRelease = newScript(fairLua, fairReleaseLua).sentOnce()
)

// A processor sends one command: a client, or one of its connections.
type processor interface {
	Process(ctx context.Context, cmd redis.Cmder) error
}

type script struct {
	source, sha string
	once        bool // go-redis must not repeat it by itself
}

func newScript(parts ...string) *script {
	source := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(source)) // #nosec G401 -- as above
	return &script{source: source, sha: hex.EncodeToString(sum[:])}
}

func (s *script) sentOnce() *script { s.once = true; return s }

// run sends the script by its name (its hash). If Redis does not know the name, run sends the script's text.
func (s *script) run(ctx context.Context, rdb processor, keys []string, args ...any) *redis.Cmd {
	cmd := s.send(ctx, rdb, "evalsha", s.sha, keys, args)
	if redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
		cmd = s.send(ctx, rdb, "eval", s.source, keys, args)
	}
	return cmd
}

func (s *script) send(ctx context.Context, rdb processor, command, script string, keys []string, args []any) *redis.Cmd {
	line := make([]any, 0, 3+len(keys)+len(args))
	line = append(line, command, script, len(keys))
	for _, key := range keys {
		line = append(line, key)
	}
	cmd := redis.NewCmd(ctx, append(line, args...)...)
	cmd.SetFirstKeyPos(3)
	if s.once {
		_ = rdb.Process(ctx, once{cmd}) // the error is in cmd
	} else {
		_ = rdb.Process(ctx, cmd)
	}
	return cmd
}

// once is a command that go-redis does not send again after a broken connection: NoRetry is a method of
// redis.Cmder.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }
