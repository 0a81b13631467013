//go:build bench

package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	soldOutClients = 256 // connections
	soldOutRounds  = 15  // short and in turn, since a machine's speed changes within seconds
	soldOutTime    = 500 * time.Millisecond
)

// BenchmarkSoldOut measures the refusals per second of a sold-out product, with and without the
// check, and the answers per second of a route that does nothing, round by round. Target: 80 % of
// that route.
func BenchmarkSoldOut(b *testing.B) {
	e := benchEngine(b)
	with, without := benchShop(b, e, true), benchShop(b, e, false)
	if err := e.DB.Exec("UPDATE product SET amount = 0").Error; err != nil {
		b.Fatal(err)
	}
	for _, strategy := range []string{"for-update", "conditional", "redis", "redis-lua"} {
		b.Run(strategy, func(b *testing.B) {
			buy := "/product/buy?purchaser=ann&lock=" + strategy
			var checked, plain, noOp, ratios, gains []float64
			for range soldOutRounds {
				nothing := answered(b, with, "/healthz", 200, soldOutTime)
				refused := answered(b, with, buy, 409, soldOutTime)
				slow := answered(b, without, buy, 409, soldOutTime)
				noOp, checked, plain = append(noOp, nothing), append(checked, refused), append(plain, slow)
				ratios, gains = append(ratios, 100*refused/nothing), append(gains, refused/slow)
			}
			b.ReportMetric(median(checked), "refused/s")
			b.ReportMetric(median(plain), "unchecked/s")
			b.ReportMetric(median(noOp), "noop/s")
			b.ReportMetric(median(ratios), "%ofnoop")
			b.ReportMetric(median(gains), "times")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLateCrowd measures how long it takes to answer 20,000 buyers of 100 units, with and
// without the check. Target: 5 times faster.
func BenchmarkLateCrowd(b *testing.B) {
	const (
		buyers = 20_000
		rounds = 3 // a round without the check takes ten seconds
	)
	e := benchEngine(b)
	with, without := benchShop(b, e, true), benchShop(b, e, false)
	for _, strategy := range []string{"for-update", "redis", "redis-lua"} {
		b.Run(strategy, func(b *testing.B) {
			busy := int64(0)
			crowd := func(base string) float64 {
				b.Helper()
				restockFor(b, base, 100)
				start := time.Now()
				sold, turned := crowdOf(b, base, "/product/buy?purchaser=ann&lock="+strategy, buyers)
				if sold != 100 {
					b.Errorf("%d were sold to, want 100", sold)
				}
				busy += turned
				return time.Since(start).Seconds()
			}
			var checked, plain, gains []float64
			for range rounds {
				fast, slow := crowd(with), crowd(without)
				checked, plain, gains = append(checked, fast), append(plain, slow), append(gains, slow/fast)
			}
			b.ReportMetric(median(checked), "s")
			b.ReportMetric(median(plain), "s-unchecked")
			b.ReportMetric(median(gains), "times")
			b.ReportMetric(float64(busy), "busy")
			b.ReportMetric(0, "ns/op")
		})
	}
}

func restockFor(b *testing.B, addr string, units int) {
	b.Helper()
	c := mustDial(b, addr)
	defer c.conn.Close()
	body := fmt.Sprintf(`{"amount":%d}`, units)
	request := fmt.Sprintf("PUT /product/apple HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", addr, len(body), body)
	if status, err := c.roundTrip([]byte(request)); status != 200 || err != nil {
		b.Fatalf("restock: %d, %v", status, err)
	}
}

// answered returns how many requests per second get this status.
func answered(b *testing.B, addr, path string, status int, during time.Duration) float64 {
	b.Helper()
	var n atomic.Int64
	start := time.Now()
	stop := start.Add(during)
	eachClient(b, addr, path, func() bool { return time.Now().Before(stop) }, func(got int) {
		if n.Add(1); got != status {
			b.Errorf("%d, want %d", got, status)
		}
	})
	return float64(n.Load()) / time.Since(start).Seconds()
}

// crowdOf sends orders and returns how many were answered sold and busy.
func crowdOf(b *testing.B, addr, path string, orders int) (sold, busy int64) {
	b.Helper()
	var sent, ok, turned atomic.Int64
	eachClient(b, addr, path, func() bool { return sent.Add(1) <= int64(orders) }, func(status int) {
		switch status {
		case 200:
			ok.Add(1)
		case 409:
		case 503:
			turned.Add(1)
		default:
			b.Errorf("%d, want 200, 409 or 503", status)
		}
	})
	return ok.Load(), turned.Load()
}

// eachClient sends one request after the other on each connection while more returns true.
func eachClient(b *testing.B, addr, path string, more func() bool, got func(status int)) {
	b.Helper()
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\n")
	var all sync.WaitGroup
	for range soldOutClients {
		c := mustDial(b, addr)
		all.Go(func() {
			defer c.conn.Close()
			for more() {
				status, err := c.roundTrip(request)
				if err != nil {
					b.Error(err)
					return
				}
				got(status)
			}
		})
	}
	all.Wait()
}

// raw is a client that needs less processor time than the measured shop: it reads the status, and
// skips the announced number of bytes.
type raw struct {
	conn       net.Conn
	read       *bufio.Reader
	retryAfter time.Duration // of the last answer; 0 without the header
}

func mustDial(b *testing.B, addr string) *raw {
	b.Helper()
	c, err := dialRaw(addr)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

func dialRaw(addr string) (*raw, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &raw{conn: conn, read: bufio.NewReader(conn)}, nil
}

var contentLength, retryAfter = []byte("Content-Length: "), []byte("Retry-After: ")

func (c *raw) roundTrip(request []byte) (status int, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	length := 0
	c.retryAfter = 0
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		switch {
		case status == 0 && len(line) > 12:
			if status, err = strconv.Atoi(string(line[9:12])); err != nil {
				return 0, textproto.ProtocolError(line)
			}
		case bytes.HasPrefix(line, contentLength):
			if length, err = strconv.Atoi(string(line[len(contentLength):])); err != nil {
				return 0, err
			}
		case bytes.HasPrefix(line, retryAfter):
			seconds, err := strconv.Atoi(string(line[len(retryAfter):]))
			if err != nil {
				return 0, textproto.ProtocolError(line)
			}
			c.retryAfter = time.Duration(seconds) * time.Second
		case len(line) == 0:
			_, err := io.CopyN(io.Discard, c.read, int64(length))
			return status, err
		}
	}
}
