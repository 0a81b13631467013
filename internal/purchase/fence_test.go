package purchase_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/product"
	"github.com/oversell/oversell/internal/purchase"
)

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
			if err := sell(step.token); !errors.Is(err, step.want) {
				t.Errorf("token %d: %v, want %v", step.token, err, step.want)
			}
		}
		if books, err := audit.Read(t.Context(), db, "apple"); err != nil || books.Records != 2 || books.Drift != 0 {
			t.Errorf("stock and records %+v, %v, want two records", books, err)
		}

		late, err := product.ByName(db, "apple")
		if err != nil || late.Fence != 6 {
			t.Fatalf("%+v, %v, want fence 6", late, err)
		}
		if err := product.Put(db, "apple", 10); err != nil {
			t.Fatal(err)
		}
		if written, err := product.SetAmountFenced(db, late.ID, late.Amount-1, 6); written || err != nil {
			t.Errorf("a writer from before the restock: %v, %v", written, err)
		}
		if err := sell(1); err != nil {
			t.Errorf("token 1 after the restock: %v", err)
		}
		if _, err := section.SellFenced(t.Context(), purchase.Order{Product: "moon", Purchaser: "ann", Amount: 1}, 9, 0); !errors.Is(err, purchase.ErrNoProduct) {
			t.Errorf("no such product: %v", err)
		}
		tooMany := order()
		tooMany.Amount = 100
		if _, err := section.SellFenced(t.Context(), tooMany, 9, 0); !errors.Is(err, purchase.ErrSoldOut) {
			t.Errorf("more than there are: %v", err)
		}
	})
}

// twoServers writes to one server and reads from another, like a process that uses another node of
// a cluster for its next statement.
type twoServers struct {
	gorm.ConnPool // where it writes
	reads         gorm.ConnPool
}

func (s twoServers) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.reads.QueryContext(ctx, query, args...)
}

// TestSellFencedStale: a read from a server that has not applied the seal is too old, so nothing
// may be computed from it.
func TestSellFencedStale(t *testing.T) {
	sealed, behind := enginetest.Embedded(t).DB, enginetest.Embedded(t).DB
	db := sealed.Session(&gorm.Session{NewDB: true, Context: t.Context()}) // a statement of its own
	db.Statement.ConnPool = twoServers{sealed.Statement.ConnPool, behind.Statement.ConnPool}
	_, err := purchase.Section{DB: db, Strategy: "fenced", Now: time.Now}.SellFenced(t.Context(), order(), 5, 0)
	if !errors.Is(err, purchase.ErrBusy) {
		t.Errorf("%v, want %v", err, purchase.ErrBusy)
	}
	if books, err := audit.Read(t.Context(), sealed, "apple"); err != nil || books.Records != 0 || books.Drift != 0 {
		t.Errorf("stock and records %+v, %v, want no record", books, err)
	}
}
