package purchase_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
)

func order() purchase.Order {
	return purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1}
}

// TestUnknownOutcome cuts the connection at COMMIT, once after the server has received it and once
// before. The shop cannot distinguish the two cases, and says so.
func TestUnknownOutcome(t *testing.T) {
	for _, c := range []struct {
		name    string
		forward bool // whether the COMMIT reaches the server
		records int64
	}{{"committed, the answer lost", true, 1}, {"the commit lost", false, 0}} {
		t.Run(c.name, func(t *testing.T) {
			direct := enginetest.Local(t)
			throughProxy := openThrough(t, direct, cutAtCommit(t, direct, c.forward))
			section := purchase.Section{DB: throughProxy.DB, Strategy: "none", Now: time.Now}
			_, err := section.Sell(t.Context(), order(), 0)
			if !errors.Is(err, purchase.ErrUnknownOutcome) || purchase.OutcomeOf(err) != purchase.Unknown {
				t.Errorf("%v, want ErrUnknownOutcome", err)
			}
			books, err := audit.Read(t.Context(), direct.DB, "apple")
			if err != nil || books.Records != c.records || books.Drift != 0 {
				t.Errorf("stock and records %+v, %v; want %d records and no drift", books, err, c.records)
			}
		})
	}
}

// openThrough opens the engine's database at another address.
func openThrough(t *testing.T, e *engine.Engine, addr string) *engine.Engine {
	t.Helper()
	u, err := url.Parse(e.URLs.DB)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	through, err := engine.Open(t.Context(), engine.Config{DB: u.String(), Wait: enginetest.Wait, Conns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = through.Close() })
	return through
}

// cutAtCommit is a proxy to the engine's MariaDB that closes the client's connection at the COMMIT
// of a sale.
func cutAtCommit(t *testing.T, e *engine.Engine, forward bool) (addr string) {
	t.Helper()
	u, err := url.Parse(e.URLs.DB)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go relay(client, u.Host, forward)
		}
	}()
	return l.Addr().String()
}

func relay(client net.Conn, server string, forward bool) {
	defer client.Close()
	upstream, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer upstream.Close()
	answers := make(chan struct{})
	sold := false // the migrations commit too
	var silent bool
	go func() {
		defer close(answers)
		_, _ = io.Copy(client, upstream)
	}()
	buffer := make([]byte, 64<<10)
	for !silent {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		sold = sold || bytes.Contains(buffer[:n], []byte("INSERT INTO `purchase_history`"))
		silent = sold && bytes.Contains(buffer[:n], []byte("COMMIT"))
		if silent {
			_ = client.Close() // before the server can answer
		}
		if !silent || forward {
			if _, err := upstream.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	if forward {
		_ = upstream.(*net.TCPConn).CloseWrite()
		<-answers // until the server has finished
	}
}

// TestContextEndsBeforeCommit: nothing is written, and the cause is returned.
func TestContextEndsBeforeCommit(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		reason := errors.New("hung up")
		for name, in := range map[string]func(context.Context, *gorm.DB, func(*gorm.DB) error, ...*sql.TxOptions) error{
			"InTx":        purchase.InTx,
			"InLockingTx": purchase.InLockingTx,
		} {
			ctx, cancel := context.WithCancelCause(t.Context())
			err := in(ctx, e.DB, func(tx *gorm.DB) error {
				if err := tx.Exec("UPDATE product SET amount = 1").Error; err != nil {
					t.Error(err)
				}
				cancel(reason)
				return nil
			})
			if !errors.Is(err, reason) {
				t.Errorf("%s: %v, want the context's cause", name, err)
			}
			if books, err := audit.Read(t.Context(), e.DB, "apple"); err != nil || books.Leftover != 100 {
				t.Errorf("%s: stock and records %+v, %v; want nothing written", name, books, err)
			}
		}
	})
}

// TestTxRollsBack: an error or a panic leaves nothing behind, and the connection can be used again.
func TestTxRollsBack(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		e := open(t)
		refused := errors.New("refused")
		for range 40 { // more often than the pool has connections
			err := purchase.InLockingTx(t.Context(), e.DB, func(tx *gorm.DB) error {
				if err := tx.Exec("UPDATE product SET amount = 1").Error; err != nil {
					t.Error(err)
				}
				return refused
			})
			if !errors.Is(err, refused) {
				t.Fatalf("%v, want the function's error", err)
			}
			func() {
				defer func() { _ = recover() }()
				_ = purchase.InTx(t.Context(), e.DB, func(tx *gorm.DB) error {
					tx.Exec("UPDATE product SET amount = 1")
					panic("in the middle")
				})
			}()
		}
		if books, err := audit.Read(t.Context(), e.DB, "apple"); err != nil || books.Leftover != 100 {
			t.Errorf("stock and records %+v, %v; want nothing written", books, err)
		}
	})
}

func TestOrderCheck(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		name   string
		change func(*purchase.Order)
		valid  bool
	}{
		{"as it is", func(*purchase.Order) {}, true},
		{"255 characters", func(o *purchase.Order) { o.Purchaser = long[:255] }, true},
		{"256 characters", func(o *purchase.Order) { o.Purchaser = long }, false},
		{"255 characters of two bytes", func(o *purchase.Order) { o.Product = strings.Repeat("ü", 255) }, true},
		{"256 characters of two bytes", func(o *purchase.Order) { o.Product = strings.Repeat("ü", 256) }, false},
		{"a character that was broken", func(o *purchase.Order) { o.Product = "a\ufffd" }, false},
		{"any letters", func(o *purchase.Order) { o.Product = "りんご 🍎" }, true},
		{"not UTF-8", func(o *purchase.Order) { o.Product = "a\xff" }, false},
		{"no product", func(o *purchase.Order) { o.Product = "" }, false},
		{"space at the end", func(o *purchase.Order) { o.Product = "apple " }, false},
		{"line break", func(o *purchase.Order) { o.Purchaser = "a\nb" }, false},
		{"nothing", func(o *purchase.Order) { o.Amount = 0 }, false},
		{"the most", func(o *purchase.Order) { o.Amount = purchase.MaxAmount }, true},
		{"too much", func(o *purchase.Order) { o.Amount = purchase.MaxAmount + 1 }, false},
		{"a key", func(o *purchase.Order) { o.IdempotencyKey = "k" }, true},
		{"a long key", func(o *purchase.Order) { o.IdempotencyKey = long }, false},
	} {
		o := order()
		c.change(&o)
		if err := o.Check(); (err == nil) != c.valid {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
