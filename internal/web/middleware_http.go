package web

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/web/problem"
)

// maxBody bounds every request's body, in bytes. The largest honest one, a
// purchase with two names of 255 characters, has some 2 KiB.
const maxBody = 64 << 10

// plausibleID keeps a caller's request id out of the log where it could forge a line.
var plausibleID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// identify gives each request an id, the caller's own where it sent one.
func identify(c *gin.Context) {
	id := c.GetHeader(problem.RequestIDHeader)
	if !plausibleID.MatchString(id) {
		id = rand.Text()
	}
	c.Header(problem.RequestIDHeader, id)
}

// logRequests writes one line a request: at debug, since a rush makes
// thousands, but for what went wrong inside the shop. A server that is down is
// said once, and then every outageEvery.
func logRequests(log *slog.Logger) gin.HandlerFunc {
	down := outages{log: log, said: map[string]time.Time{}}
	return func(c *gin.Context) {
		start := time.Now()
		c.Next()
		level := slog.LevelDebug
		if len(c.Errors.ByType(gin.ErrorTypePrivate)) > 0 {
			level = slog.LevelError
		}
		for _, err := range c.Errors.ByType(gin.ErrorTypePublic) {
			down.note(err.Err)
		}
		if !log.Enabled(c, level) {
			return
		}
		attrs := []slog.Attr{
			slog.String("request_id", c.Writer.Header().Get(problem.RequestIDHeader)),
			slog.String("method", c.Request.Method), slog.String("path", c.Request.URL.Path),
			slog.Int("status", c.Writer.Status()), slog.Duration("took", time.Since(start)),
		}
		if len(c.Errors) > 0 {
			attrs = append(attrs, slog.String("error", strings.Join(c.Errors.Errors(), "; ")))
		}
		log.LogAttrs(c, level, "request", attrs...)
	}
}

// outages logs the servers that requests find down. Its methods may be called by several
// goroutines.
type outages struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time // by server
}

// outageEvery is between two lines on the same server, however many buyers find it down.
const outageEvery = 10 * time.Second

func (o *outages) note(err error) {
	var down *purchase.Unavailable
	if !errors.As(err, &down) || errors.Is(err, context.Canceled) { // by a caller who hung up
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.said[down.Server]) < outageEvery {
		return
	}
	o.said[down.Server] = time.Now()
	o.log.Warn("a server is down", "server", down.Server, "error", down.Err.Error())
}

// recoverPanics answers 500 where a handler panicked; the log has the panic.
func recoverPanics(log *slog.Logger) gin.HandlerFunc {
	return gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, panicked any) {
		log.Error("panic", "path", c.Request.URL.Path, "panic", fmt.Sprint(panicked),
			"request_id", c.Writer.Header().Get(problem.RequestIDHeader))
		problem.Write(c, http.StatusInternalServerError, "failed", "the shop made a mistake; the log has it under this request id")
	})
}

// limitBody ends the connection with the answer where a body is too large: else the server
// would wait for the rest of it before it answers. It is net/http's own writer that knows how.
func limitBody(c *gin.Context) {
	w := http.ResponseWriter(c.Writer)
	if inner, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		w = inner.Unwrap()
	}
	c.Request.Body = http.MaxBytesReader(w, c.Request.Body, maxBody)
}

// adminOnly lets everybody in on a loopback address, where only this machine's
// users can call. Elsewhere a caller needs the token; while none is set, nobody
// gets in.
func adminOnly(addr net.Addr, token string) gin.HandlerFunc {
	if isLoopback(addr) {
		return func(*gin.Context) {}
	}
	return func(c *gin.Context) {
		sent, ok := strings.CutPrefix(c.GetHeader("Authorization"), "Bearer ")
		if token != "" && ok && subtle.ConstantTimeCompare([]byte(sent), []byte(token)) == 1 {
			return
		}
		why := "this route needs Authorization: Bearer with the shop's SHOP_ADMIN_TOKEN"
		switch {
		case token == "":
			why = "the leader's controls are off: the shop was started without SHOP_ADMIN_TOKEN"
		case ok && sent != "":
			why = "that is not the shop's SHOP_ADMIN_TOKEN"
		}
		c.Header("WWW-Authenticate", "Bearer")
		problem.Write(c, http.StatusUnauthorized, "failed", why)
	}
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// lastAnswer tells the client, once finish was called.
func (c *connections) lastAnswer(g *gin.Context) {
	if c.finishing.Load() {
		g.Header("Connection", "close")
	}
}
