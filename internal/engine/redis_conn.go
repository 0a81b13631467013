package engine

import (
	"context"
	"net"
	"syscall"
	"time"
)

type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// answered returns a variant of the dial function. On its connections, the client waits at least answerTime
// for an answer, even if the deadline of the command is earlier.
//
// A buyer's wait may end while its command is under way to a healthy server. The client must still read the answer.
// Otherwise a key could be set without a holder, and the product would stay locked for the rest of the TTL.
func (dial dialFunc) answered(answerTime time.Duration) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		inner, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := redisConn{inner, answerTime}
		if raw, ok := inner.(syscall.Conn); ok {
			return rawRedisConn{conn, raw}, nil
		}
		return conn, nil
	}
}

// redisConn postpones a deadline to at least answerTime from now.
type redisConn struct {
	net.Conn
	answerTime time.Duration
}

// rawRedisConn is a redisConn whose raw connection the client can check: the server may have closed it while idle.
type rawRedisConn struct {
	redisConn
	syscall.Conn
}

// SetReadDeadline implements net.Conn.
func (c redisConn) SetReadDeadline(at time.Time) error {
	return c.Conn.SetReadDeadline(c.postponed(at))
}

// SetWriteDeadline implements net.Conn.
func (c redisConn) SetWriteDeadline(at time.Time) error {
	return c.Conn.SetWriteDeadline(c.postponed(at))
}

func (c redisConn) postponed(at time.Time) time.Time {
	if earliest := time.Now().Add(c.answerTime); !at.IsZero() && at.Before(earliest) {
		return earliest
	}
	return at
}
