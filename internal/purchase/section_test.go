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
	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
	"github.com/oversell/oversell/internal/require"
)

func order() purchase.Order {
	return purchase.Order{Product: "apple", Purchaser: "ann", Amount: 1}
}

// TestUnknownOutcome cuts the connection at COMMIT, once after the server has executed it and once
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
	require.NoError(t, err)
	u.Host = addr
	through, err := engine.Open(t.Context(), engine.Config{DB: u.String(), Wait: enginetest.Wait, Conns: 4})
	require.NoError(t, err)
	t.Cleanup(func() { _ = through.Close() })
	return through
}

// cutAtCommit is a proxy to the engine's MariaDB that closes the client's connection at the COMMIT
// of a sale.
func cutAtCommit(t *testing.T, e *engine.Engine, forward bool) (addr string) {
	t.Helper()
	u, err := url.Parse(e.URLs.DB)
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
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
	answers := make(chan struct{}) // closed when an answer did not reach the client
	sold := false                  // false during the migrations, whose COMMITs must pass
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
			_ = client.SetWriteDeadline(time.Now()) // the server's answer does not arrive
		}
		if !silent || forward {
			if _, err := upstream.Write(buffer[:n]); err != nil {
				return
			}
		}
	}
	if forward {
		<-answers // the server has committed: only then may the client see that the connection broke
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
				expect.NoError(t, tx.Exec("UPDATE product SET amount = 1").Error)
				cancel(reason)
				return nil
			})
			expect.ErrorIs(t, err, reason, name)
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
				expect.NoError(t, tx.Exec("UPDATE product SET amount = 1").Error)
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

// TestSoldUnderHalfRead: if the result ends in the middle of a row, because the buyer hung up or
// the connection broke, SoldUnder returns an error and no incomplete sale.
func TestSoldUnderHalfRead(t *testing.T) {
	e := enginetest.Embedded(t)
	ended := errors.New("the connection ended")
	err := e.DB.Callback().Query().After("gorm:query").Register("half a row", func(tx *gorm.DB) {
		if found, ok := tx.Statement.Dest.(*[]purchase.Record); ok {
			*found = append(*found, purchase.Record{})
			_ = tx.AddError(ended)
		}
	})
	require.NoError(t, err)
	if sold, err := purchase.SoldUnder(e.DB, []string{"a-key"}); len(sold) > 0 || !errors.Is(err, ended) {
		t.Errorf("%v, %v; want %v", sold, err, ended)
	}
}

// TestSellFenced: a buyer whose token is not the highest so far sells nothing. After a restock,
// tokens may come from another source.
func TestSellFenced(t *testing.T) {
	enginetest.EachDatabase(t, func(t *testing.T, open func(t *testing.T) *engine.Engine) {
		db := open(t).DB
		section := purchase.Section{DB: db, Strategy: "fenced", Now: time.Now}
		sell := func(token int64) error {
			_, err := section.SellFenced(t.Context(), order(), token, 0)
			return err
		}
		for _, step := range []struct {
			token int64
			want  error
		}{{5, nil}, {4, purchase.ErrLockLost}, {5, purchase.ErrLockLost}, {6, nil}} {
			expect.ErrorIs(t, sell(step.token), step.want, "token", step.token)
		}
		if books, err := audit.Read(t.Context(), db, "apple"); err != nil || books.Records != 2 || books.Drift != 0 {
			t.Errorf("stock and records %+v, %v, want two records", books, err)
		}

		late, err := product.ByName(db, "apple")
		if err != nil || late.Fence != 6 {
			t.Fatalf("%+v, %v, want fence 6", late, err)
		}
		require.NoError(t, product.Put(db, "apple", 10))
		if written, err := product.SetAmountFenced(db, late.ID, late.Amount-1, 6); written || err != nil {
			t.Errorf("a writer from before the restock: %v, %v", written, err)
		}
		expect.NoError(t, sell(1), "token 1 after the restock")
		expect.ErrorIs(t, expect.ErrorOf(section.SellFenced(t.Context(), purchase.Order{Product: "moon", Purchaser: "ann", Amount: 1}, 9, 0)), purchase.ErrNoProduct, "no such product")
		tooMany := order()
		tooMany.Amount = 100
		expect.ErrorIs(t, expect.ErrorOf(section.SellFenced(t.Context(), tooMany, 9, 0)), purchase.ErrSoldOut, "more than there are")
	})
}

// twoServers writes to one server and reads from another, like a process that uses another node of
// a cluster for its next statement.
type twoServers struct {
	gorm.ConnPool // the server to write to
	reads         gorm.ConnPool
}

func (s twoServers) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.reads.QueryContext(ctx, query, args...)
}

// TestSellFencedStale: a read from a server that has not applied the seal is too old, so nothing
// may be computed from it.
func TestSellFencedStale(t *testing.T) {
	sealed, behind := enginetest.Embedded(t).DB, enginetest.Embedded(t).DB
	db := sealed.Session(&gorm.Session{NewDB: true, Context: t.Context()}) // a new Statement, to replace its ConnPool
	db.Statement.ConnPool = twoServers{sealed.Statement.ConnPool, behind.Statement.ConnPool}
	_, err := purchase.Section{DB: db, Strategy: "fenced", Now: time.Now}.SellFenced(t.Context(), order(), 5, 0)
	expect.ErrorIs(t, err, purchase.ErrBusy)
	if books, err := audit.Read(t.Context(), sealed, "apple"); err != nil || books.Records != 0 || books.Drift != 0 {
		t.Errorf("stock and records %+v, %v, want no record", books, err)
	}
}
