package purchase_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/purchase"
)

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
	if err != nil {
		t.Fatal(err)
	}
	if sold, err := purchase.SoldUnder(e.DB, []string{"a-key"}); len(sold) > 0 || !errors.Is(err, ended) {
		t.Errorf("%v, %v; want %v", sold, err, ended)
	}
}
