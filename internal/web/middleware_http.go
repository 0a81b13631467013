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

// maxBody limits every request's body, in bytes. The largest valid one, a purchase with two names
// of 255 characters, has about 2 KiB.
const maxBody = 64 << 10

// plausibleID matches request ids without characters that could fake a line in the log.
var plausibleID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// identify gives each request an id: the client's own if it is valid, otherwise a new one.
func identify(c *gin.Context) {
	id := c.GetHeader(problem.RequestIDHeader)
	if !plausibleID.MatchString(id) {
		id = rand.Text()
	}
	c.Header(problem.RequestIDHeader, id)
}

// logRequests writes a line for each request. The level is error for failures inside the shop, and otherwise
// debug, since a load test sends thousands of requests. About each server that is down it writes at most one
// line per outageEvery.
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

// outages logs the servers that were unavailable to a request. Its methods may be called by several goroutines.
type outages struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]time.Time // time of the last line, by server
}

// outageEvery is the minimum time between two lines about the same server.
const outageEvery = 10 * time.Second

func (o *outages) note(err error) {
	var down *purchase.Unavailable
	if !errors.As(err, &down) || errors.Is(err, context.Canceled) { // Canceled: the client hung up
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

func recoverPanics(log *slog.Logger) gin.HandlerFunc {
	return gin.CustomRecoveryWithWriter(nil, func(c *gin.Context, panicked any) {
		log.Error("panic", "path", c.Request.URL.Path, "panic", fmt.Sprint(panicked),
			"request_id", c.Writer.Header().Get(problem.RequestIDHeader))
		problem.Write(c, http.StatusInternalServerError, "failed", "the shop made a mistake; the log has it under this request id")
	})
}

// limitBody closes the connection after the answer if a body is too large. Otherwise the server would wait
// for the rest of the body before it answers. http.MaxBytesReader can close the connection only through
// net/http's own ResponseWriter.
func limitBody(c *gin.Context) {
	w := http.ResponseWriter(c.Writer)
	if inner, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		w = inner.Unwrap()
	}
	c.Request.Body = http.MaxBytesReader(w, c.Request.Body, maxBody)
}

// adminOnly lets all callers in on a loopback address, which only users of this machine can reach.
// On other addresses a caller needs the token. If none is set, all callers are refused.
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
			why = "restocks, sales and bursts are off: the shop was started without SHOP_ADMIN_TOKEN"
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

// lastAnswer tells the client to close the connection, if the shop is stopping (the method `finish` was
// called).
func (c *connections) lastAnswer(g *gin.Context) {
	if c.finishing.Load() {
		g.Header("Connection", "close")
	}
}
