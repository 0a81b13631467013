package engine

import (
	"context"
	"net"
	"time"
)

// A user may give the URL of one kind of server the port of another. A MySQL server sends the first message, and a
// PostgreSQL server waits for one. So a MySQL client and a PostgreSQL server would wait for each other forever.

const greetingTimeout = time.Second

// isMySQL reports whether the server sends MySQL's greeting: packet number 0 with protocol version 10
// (MySQL Internals, Protocol::HandshakeV10).
func isMySQL(ctx context.Context, address string) bool {
	greeting := exchange(ctx, address, nil, 5)
	return len(greeting) == 5 && greeting[3] == 0 && greeting[4] == 10
}

// isPostgres reports whether the server answers a request for TLS with one letter, S or N (PostgreSQL 15
// manual, 55.2.10 and 55.7, SSLRequest).
func isPostgres(ctx context.Context, address string) bool {
	if len(exchange(ctx, address, nil, 1)) > 0 {
		return false
	}
	answer := exchange(ctx, address, []byte{0, 0, 0, 8, 4, 210, 22, 47}, 1)
	return len(answer) == 1 && (answer[0] == 'S' || answer[0] == 'N')
}

// exchange sends bytes and returns the first n bytes of the answer, or fewer if the server sends fewer in time.
func exchange(ctx context.Context, address string, say []byte, n int) []byte {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), greetingTimeout)
	defer cancel()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil
	}
	defer conn.Close()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return nil
	}
	if _, err := conn.Write(say); err != nil {
		return nil
	}
	answer := make([]byte, n)
	got := 0
	for got < n {
		more, err := conn.Read(answer[got:])
		got += more
		if err != nil {
			break
		}
	}
	return answer[:got]
}
