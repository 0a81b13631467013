package purchase

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine/sqlerror"
)

// A Record is one row of the table purchase_history: one sale.
type Record struct {
	ID             int64     `json:"id"`
	ProductName    string    `json:"product_name"`
	Purchaser      string    `json:"purchaser"`
	PurchaseTime   time.Time `json:"purchase_time"`
	Amount         int64     `json:"amount"`
	Strategy       string    `json:"strategy"`
	IdempotencyKey *string   `json:"-"`
	LeftAfter      int64     `json:"-"`
	WaitedMS       int64     `json:"-" gorm:"column:waited_ms"`
}

// TableName returns the name in the migrations.
func (Record) TableName() string { return "purchase_history" }

// receipt returns the receipt that the buyer of this record got, for a repeated request.
func (r Record) receipt() Receipt {
	return Receipt{
		ID: r.ID, Product: r.ProductName, Purchaser: r.Purchaser, Amount: r.Amount,
		Left: r.LeftAfter, Strategy: r.Strategy, Waited: time.Duration(r.WaitedMS) * time.Millisecond,
		Replayed: true,
	}
}

// errDuplicateKey: the unique index refused the record. Idempotent replaces this error by the
// answer of the first sale.
var errDuplicateKey = errors.New("the Idempotency-Key has a record already")

// Insert inserts the record of a sale and sets receipt.ID. It must run in the transaction that
// takes the units. It returns the error of Order.Check for an invalid order.
func Insert(ctx context.Context, tx *gorm.DB, key string, at time.Time, receipt *Receipt) error {
	record, err := newRecord(key, at, receipt)
	if err != nil {
		return err
	}
	err = tx.Create(&record).Error
	if key != "" && sqlerror.KindOf(err) == sqlerror.Duplicate {
		return fmt.Errorf("%w: %w", errDuplicateKey, err)
	}
	receipt.ID = record.ID
	return DatabaseError(ctx, "insert the record", err)
}

// InsertAll does the same as Insert for many sales in one statement, each under its own key.
func InsertAll(ctx context.Context, tx *gorm.DB, keys []string, at time.Time, receipts []*Receipt) error {
	if len(receipts) == 0 {
		return nil
	}
	records := make([]Record, len(receipts))
	var err error
	for i, receipt := range receipts {
		if records[i], err = newRecord(keys[i], at, receipt); err != nil {
			return err
		}
	}
	err = tx.Create(&records).Error
	if sqlerror.KindOf(err) == sqlerror.Duplicate {
		return fmt.Errorf("%w: %w", errDuplicateKey, err)
	}
	for i := range records {
		receipts[i].ID = records[i].ID
	}
	return DatabaseError(ctx, "insert the records", err)
}

// ReadIDs sets the ids of sales that InsertAll has inserted in tx. MySQL's driver learns only the
// first id and adds 1 for each next record. A Galera node adds the number of nodes instead
// (wsrep_auto_increment_control), so the driver's ids are wrong there.
func ReadIDs(ctx context.Context, tx *gorm.DB, keys []string, receipts []*Receipt) error {
	sold, err := SoldUnder(tx, keys)
	if err != nil {
		return DatabaseError(ctx, "read the records", err)
	}
	for i, key := range keys {
		receipts[i].ID = sold[key].ID
	}
	return nil
}

func newRecord(key string, at time.Time, receipt *Receipt) (Record, error) {
	if err := (Order{receipt.Product, receipt.Purchaser, receipt.Amount, key}).Check(); err != nil {
		return Record{}, fmt.Errorf("record the sale: %w", err)
	}
	record := Record{
		ProductName: receipt.Product, Purchaser: receipt.Purchaser, PurchaseTime: at.UTC().Truncate(time.Microsecond),
		Amount: receipt.Amount, Strategy: receipt.Strategy,
		LeftAfter: receipt.Left, WaitedMS: receipt.Waited.Milliseconds(),
	}
	if key != "" {
		record.IdempotencyKey = &key
	}
	return record, nil
}

// Page returns at most limit records, in ascending order of their ids. It skips all ids up to the parameter
// `after` (keyset paging), so the last page of ten million records costs as much as the first. The
// productName "" means all products.
func Page(db *gorm.DB, productName string, after int64, limit int) ([]Record, error) {
	records := []Record{} // never null in JSON
	query := db.Where("id > ?", after).Order("id").Limit(limit)
	if productName != "" {
		query = query.Where("product_name = ?", productName)
	}
	err := query.Find(&records).Error
	return records, err
}

// ByKey returns the sale under an Idempotency-Key, or nil if there is none.
func ByKey(db *gorm.DB, key string) (*Record, error) {
	var found []Record
	err := db.Where("idempotency_key = ?", key).Limit(1).Find(&found).Error
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return &found[0], nil
}

// SoldUnder returns the sales under these Idempotency-Keys. A key without a sale is not in the map.
func SoldUnder(db *gorm.DB, keys []string) (map[string]Receipt, error) {
	sold := map[string]Receipt{}
	if len(keys) == 0 {
		return sold, nil
	}
	var found []Record
	if err := db.Where("idempotency_key IN ?", keys).Find(&found).Error; err != nil {
		return nil, err // the last element of `found` may be incomplete
	}
	for _, record := range found {
		receipt := record.receipt()
		receipt.Replayed = false
		sold[*record.IdempotencyKey] = receipt
	}
	return sold, nil
}

// clearBatch is how many records one statement deletes. That takes about 100 ms, far less than the
// timeout of a connection.
const clearBatch = 10_000

// Clear deletes every record of a product in tx, in batches.
func Clear(tx *gorm.DB, productName string) error {
	for {
		var last *int64
		batch := tx.Model(&Record{}).Select("id").Where("product_name = ?", productName).Order("id").Limit(clearBatch)
		if err := tx.Table("(?) AS batch", batch).Select("MAX(id)").Scan(&last).Error; err != nil || last == nil {
			return err
		}
		if err := tx.Exec("DELETE FROM purchase_history WHERE product_name = ? AND id <= ?", productName, *last).Error; err != nil {
			return err
		}
	}
}
