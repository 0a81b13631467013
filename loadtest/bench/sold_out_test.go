//go:build bench

package bench

import (
	"bufio"
	"bytes"
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

// answered returns how many requests per second get this status. Each connection sends one request after
// the other.
func answered(b *testing.B, addr, path string, status int, during time.Duration) float64 {
	b.Helper()
	request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\n")
	var n atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for range soldOutClients {
		c, err := dialRaw(addr)
		if err != nil {
			b.Fatal(err)
		}
		all.Go(func() {
			defer c.conn.Close()
			for time.Since(start) < during {
				got, err := c.roundTrip(request)
				if err != nil || got != status {
					b.Errorf("%d, %v; want %d", got, err, status)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	return float64(n.Load()) / time.Since(start).Seconds()
}

// raw is a client that needs less processor time than the measured shop: it reads the status, and
// skips the announced number of bytes.
type raw struct {
	conn net.Conn
	read *bufio.Reader
}

func dialRaw(addr string) (*raw, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &raw{conn, bufio.NewReader(conn)}, nil
}

var contentLength = []byte("Content-Length: ")

func (c *raw) roundTrip(request []byte) (status int, err error) {
	if _, err := c.conn.Write(request); err != nil {
		return 0, err
	}
	length := 0
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
		case len(line) == 0:
			_, err := io.CopyN(io.Discard, c.read, int64(length))
			return status, err
		}
	}
}
