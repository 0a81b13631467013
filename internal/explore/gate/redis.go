package gate

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// redisHook holds each command until the scheduler releases it. A pipeline is one step, since go-redis sends it in one
// write.
type redisHook struct {
	gates  *Gates
	owner  int    // the buyer; 0: the context identifies it
	server string // "redis", "redlock-1" ...
	noted  Noter
}

// A Noter records the keys that commands use on a server, and the channel on which the waiters for each lock
// listen.
type Noter interface {
	Note(keys []string)
	Listen(lock, channel string)
}

// Client returns a client for one buyer, at the server of an existing client (like). With owner 0, the new client
// serves all buyers, and the context identifies them.
func (g *Gates) Client(like redis.UniversalClient, owner int, server string, noted Noter) (*redis.Client, error) {
	o, err := unhurried(like)
	if err != nil {
		return nil, err
	}
	o.Dialer = g.PubSub.dialer(owner, o.DialTimeout)
	c := redis.NewClient(o)
	c.AddHook(redisHook{g, owner, server, noted})
	return c, nil
}

// Direct returns a client at the server of an existing client (like). It bypasses the gates.
func Direct(like redis.UniversalClient) (*redis.Client, error) {
	o, err := unhurried(like)
	if err != nil {
		return nil, err
	}
	return redis.NewClient(o), nil
}

// unhurried returns the options of a client, with time-outs that even a slow machine does not reach. Otherwise a slow
// machine could change the schedule or end the search.
func unhurried(like redis.UniversalClient) (*redis.Options, error) {
	plain, ok := like.(*redis.Client)
	if !ok {
		return nil, fmt.Errorf("explore knows single Redis servers, and this client is a %T", like)
	}
	o := *plain.Options()
	o.Dialer = nil // go-redis has set its own dialer, with the old time-out
	o.ReadTimeout, o.WriteTimeout, o.PoolTimeout, o.DialTimeout = time.Minute, time.Minute, time.Minute, schedule.HangTimeout
	return &o, nil
}

// DialHook implements redis.Hook.
func (h redisHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook implements redis.Hook.
func (h redisHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		c := parse(cmd.Args())
		if c.name == "UNWATCH" { // affects no other client; the next schedule needs it, even after a crash
			return next(context.WithoutCancel(ctx), cmd)
		}
		if h.gates.scripts.unsent(h.server, c) {
			err := noScript{}
			cmd.SetErr(err)
			return err
		}
		buyer := BuyerOf(ctx, h.owner)
		s := h.gates.deciding()
		if s == nil || c.connects() {
			return next(ctx, cmd)
		}
		if s.Dead(buyer) {
			return nil // pretend success, so that the client does not retry
		}
		o, err := h.op(ctx, buyer, &c)
		if err != nil {
			s.Hear(Message{Kind: Lost, Err: err})
			cmd.SetErr(err)
			return err
		}
		return h.gates.Pass(o, func() error {
			err := next(ctx, cmd)
			h.gates.scripts.answered(h.server, c, err)
			o.Result, o.Answer = reply(cmd, err), whole(cmd, err)
			o.Changed = o.Effect == schedule.Writes && c.changed(cmd, err)
			h.gates.PubSub.Notified(c.listeners(cmd))
			return err
		})
	}
}

// ProcessPipelineHook implements redis.Hook.
func (h redisHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		s := h.gates.deciding()
		if s == nil || len(cmds) == 0 || parse(cmds[0].Args()).connects() {
			return next(ctx, cmds)
		}
		buyer := BuyerOf(ctx, h.owner)
		if s.Dead(buyer) {
			return errCrashed // with nil, go-redis would keep its WATCH
		}
		all := &Op{Buyer: buyer, Server: h.server, Background: isBackground(ctx), ctx: ctx}
		for i, cmd := range cmds {
			c := parse(cmd.Args())
			o, err := h.op(ctx, buyer, &c)
			if err != nil {
				s.Hear(Message{Kind: Lost, Err: err})
				return err
			}
			if i > 0 {
				all.Name, all.Text = all.Name+"; ", all.Text+"; "
			}
			all.Name, all.Text = all.Name+o.Name, all.Text+o.Text
			if all.Key == "" {
				all.Key, all.Role = o.Key, o.Role
			}
		}
		sent := false
		err := h.gates.Pass(all, func() error {
			sent = true
			err := next(ctx, cmds)
			var replies, answers []string
			for _, cmd := range cmds {
				replies, answers = append(replies, reply(cmd, cmd.Err())), append(answers, whole(cmd, cmd.Err()))
			}
			all.Result, all.Answer, all.Changed = strings.Join(replies, "; "), strings.Join(answers, "; "), !errors.Is(err, redis.TxFailedErr)
			return err
		})
		if !sent { // go-redis sets the commands' errors only for a pipeline that it has sent
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

// op describes a command and records its keys. The error is ErrHarness if the command is a script without a description.
func (h redisHook) op(ctx context.Context, buyer int, c *command) (*Op, error) {
	o := &Op{Buyer: buyer, Server: h.server, Effect: c.does().Effect(), Role: c.role(), Key: c.lock(), ctx: ctx}
	if c.isScript() {
		if err := h.gates.scripts.describe(c); err != nil {
			return nil, err
		}
		d := c.script
		o.Role, o.Key = d.Role, d.LockOf(c.keys)
		if d.Channel != nil {
			h.noted.Listen(o.Key, d.Channel(o.Key))
		}
		o.Name = fmt.Sprintf("script %q %s", d.Name, strings.Join(c.keys, " "))
		o.Text = strings.Join(append([]string{fmt.Sprintf("script %q", d.Name)}, c.words(3)...), " ")
	} else {
		o.Name = strings.Join(append([]string{c.name}, c.words(1)[:min(1, len(c.args)-1)]...), " ")
		o.Text = strings.Join(append([]string{c.name}, c.words(1)...), " ")
	}
	if c.name == "PUBLISH" && len(c.args) > 1 { // this channel belongs to no lock; the next run must wait until the channel has no listener
		h.noted.Listen("channel "+c.words(1)[0], c.words(1)[0])
	}
	h.noted.Note(c.keys)
	if isBackground(ctx) {
		o.Background, o.Note = true, "its watchdog"
	}
	return o, nil
}
