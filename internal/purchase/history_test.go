package purchase_test

import (
	"errors"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/purchase"
)

// TestSoldUnderHalfRead: when the answer ends in the middle of a row, since the buyer
// has gone or the connection is lost, that is an error, and the half row is no sale.
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
