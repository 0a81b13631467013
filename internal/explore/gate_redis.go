package explore

import (
	"context"
	"crypto/sha1" // the name that Redis gives a script, not a secret
	"encoding/hex"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisHook stops each command at the gate. A pipeline is one step: go-redis
// sends it in one write.
type redisHook struct {
	gates  *gates
	owner  int    // the buyer; 0: the context says
	server string // "redis", "redlock-1" ...
	keys   *keySet
}

// gatedClient is a client to the same server as like, for one buyer.
func (g *gates) gatedClient(like redis.UniversalClient, owner int, server string, keys *keySet) (*redis.Client, error) {
	plain, ok := like.(*redis.Client)
	if !ok {
		return nil, fmt.Errorf("explore knows single Redis servers, and this client is a %T", like)
	}
	o := *plain.Options()
	// What is late is late by the fault of the explorer or of the machine, and
	// must not become part of the schedule.
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.DialTimeout = time.Minute, time.Minute, time.Minute, patience
	o.Dialer = g.pubsub.dialer(o.DialTimeout)
	c := redis.NewClient(&o)
	c.AddHook(redisHook{g, owner, server, keys})
	return c, nil
}

func (h redisHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		args := cmd.Args()
		if h.gates.scripts.unknown(h.server, args) {
			err := noScript{}
			cmd.SetErr(err)
			return err
		}
		buyer := buyerOf(ctx, h.owner)
		r := h.gates.current.Load()
		if r == nil || r.free.Load() || connecting(args) {
			return next(ctx, cmd)
		}
		if r.dead(buyer) {
			return nil // as if it had been sent: it must not try again
		}
		h.keys.note(args)
		o := h.op(buyer, args)
		if isAside(ctx) {
			o.aside, o.note = true, "its watchdog"
		}
		return h.gates.pass(o, func() error {
			err := next(ctx, cmd)
			h.gates.scripts.answered(h.server, args)
			o.result = reply(cmd, err)
			o.changed = o.effect == writes && h.gates.scripts.changed(args, cmd, err)
			h.gates.pubsub.published(args, cmd, h.gates.scripts)
			return err
		})
	}
}

func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		r := h.gates.current.Load()
		if r == nil || r.free.Load() || len(cmds) == 0 || connecting(cmds[0].Args()) {
			return next(ctx, cmds)
		}
		buyer := buyerOf(ctx, h.owner)
		if r.dead(buyer) {
			return nil
		}
		all := &op{buyer: buyer, server: h.server, aside: isAside(ctx)}
		for i, cmd := range cmds {
			h.keys.note(cmd.Args())
			o := h.op(buyer, cmd.Args())
			if i > 0 {
				all.name, all.text = all.name+"; ", all.text+"; "
			}
			all.name, all.text = all.name+o.name, all.text+o.text
		}
		return h.gates.pass(all, func() error {
			err := next(ctx, cmds)
			var replies []string
			for _, cmd := range cmds {
				replies = append(replies, reply(cmd, cmd.Err()))
			}
			all.result, all.changed = strings.Join(replies, "; "), true
			return err
		})
	}
}

// connecting: what a new connection says first, before the command that it was
// made for.
func connecting(args []any) bool {
	name := strings.ToLower(fmt.Sprint(args[0]))
	return name == "hello" || name == "client" || name == "auth" || name == "select"
}

func (h redisHook) op(buyer int, args []any) *op {
	command := strings.ToUpper(fmt.Sprint(args[0]))
	o := &op{buyer: buyer, server: h.server}
	var words []string
	if command == "EVAL" || command == "EVALSHA" {
		name := h.gates.scripts.name(args)
		keys := keysOf(args)
		o.name = fmt.Sprintf("script %q %s", name, strings.Join(keys, " "))
		words = append(words, fmt.Sprintf("script %q", name))
		for _, arg := range args[3:] {
			words = append(words, fmt.Sprint(arg))
		}
	} else {
		key := ""
		if len(args) > 1 {
			key = " " + fmt.Sprint(args[1])
		}
		o.name = command + key
		words = append(words, command)
		for _, arg := range args[1:] {
			words = append(words, fmt.Sprint(arg))
		}
	}
	switch command {
	case "GET", "PTTL", "TTL", "EXISTS", "HGET", "HEXISTS", "SMEMBERS", "XRANGE", "PING":
		o.effect = reads
	}
	o.text = strings.Join(words, " ")
	return o
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

// noScript is the answer of a Redis that does not know a script.
type noScript struct{}

func (noScript) Error() string { return "NOSCRIPT explore has not seen this script yet" }
func (noScript) RedisError()   {}

// scripts knows scripts by what they are called.
type scripts struct {
	mu    sync.Mutex
	names map[string]string  // by hash
	sent  map[[2]string]bool // server and hash: it was sent there in full
}

// unknown: a script named by a hash that nobody has sent there in full yet. Its
// sender is told so, and then sends it in full; the two are one step, in every
// run the same one.
func (s *scripts) unknown(server string, args []any) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ToUpper(fmt.Sprint(args[0])) == "EVALSHA" && !s.sent[[2]string{server, fmt.Sprint(args[1])}]
}

// answered notes a script that was sent in full and reached the server.
func (s *scripts) answered(server string, args []any) {
	if strings.ToUpper(fmt.Sprint(args[0])) == "EVAL" {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.sent[[2]string{server, hash(fmt.Sprint(args[1]))}] = true
	}
}

func hash(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

// name is the first line of the script's own comment.
func (s *scripts) name(args []any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := fmt.Sprint(args[1])
	if strings.ToUpper(fmt.Sprint(args[0])) == "EVALSHA" {
		return s.names[text]
	}
	name := scriptName(text)
	s.names[hash(text)] = name
	return name
}

func scriptName(source string) string {
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if comment, ok := strings.CutPrefix(line, "--"); ok {
			return strings.TrimRight(strings.TrimSpace(comment), ".,:")
		}
		break
	}
	lower := strings.ToLower(source) // libraries that do not say
	switch {
	case strings.Contains(lower, `"set"`) && strings.Contains(lower, `"nx"`):
		return "take if free"
	case strings.Contains(lower, `"pexpire"`):
		return "renew if mine"
	case strings.Contains(lower, `"pttl"`):
		return "time left if mine"
	case strings.Contains(lower, `"del"`):
		return "delete if mine"
	}
	first, _, _ := strings.Cut(strings.TrimSpace(source), "\n")
	return first
}

// changed reports whether a command that may write did, where its answer tells.
// In doubt it did: that only makes a waiter look once more.
func (s *scripts) changed(args []any, cmd redis.Cmder, err error) bool {
	if c, ok := cmd.(*redis.BoolCmd); ok {
		return c.Val()
	}
	if err == redis.Nil {
		return false
	}
	switch strings.ToUpper(fmt.Sprint(args[0])) {
	case "DEL":
		return !strings.HasSuffix(reply(cmd, err), " 0") && reply(cmd, err) != "0"
	case "EVAL", "EVALSHA":
		return !s.refused(args, cmd) && !extends(s.name(args))
	}
	return true
}

// extends: the script gives a lease more time, and changes nothing that who waits
// for the lock could ask about.
func extends(name string) bool {
	return name == "renew if mine" || strings.HasPrefix(name, "Extends the lease")
}

// refused: the script answered that somebody else has the lock, or that there
// is nothing to give back.
func (s *scripts) refused(args []any, cmd redis.Cmder) bool {
	answer := strings.Fields(strings.Trim(reply(cmd, cmd.Err()), "[]"))
	name := s.name(args)
	switch {
	case strings.HasPrefix(name, "Takes the lock"):
		return len(answer) > 0 && answer[0] == "0"
	case strings.HasPrefix(name, "Gives back one hold"):
		return len(answer) > 0 && answer[0] == "-1"
	case name == "delete if mine":
		return len(answer) == 1 && (answer[0] == "0" || answer[0] == "-1")
	}
	return false
}

// keysOf are the keys that a command names.
func keysOf(args []any) (keys []string) {
	switch strings.ToUpper(fmt.Sprint(args[0])) {
	case "EVAL", "EVALSHA":
		n := 0
		if len(args) > 2 {
			_, _ = fmt.Sscan(fmt.Sprint(args[2]), &n)
		}
		for i := 3; i < 3+n && i < len(args); i++ {
			keys = append(keys, fmt.Sprint(args[i]))
		}
	case "DEL", "EXISTS":
		for _, arg := range args[1:] {
			keys = append(keys, fmt.Sprint(arg))
		}
	case "PUBLISH", "PING":
	default:
		if len(args) > 1 {
			keys = append(keys, fmt.Sprint(args[1]))
		}
	}
	return keys
}

// keySet are the keys that were named on one server: what a run can have left
// there. Others' are not touched.
type keySet struct {
	mu   sync.Mutex
	keys []string
}

func (k *keySet) note(args []any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keysOf(args) {
		if !slices.Contains(k.keys, key) {
			k.keys = append(k.keys, key)
		}
	}
}

func (k *keySet) all() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.keys)
}
