// Package product stores the products on sale and how many units of each are left.
//
// It knows nothing about buyers. Each function runs in the *gorm.DB that it receives, a pool or an open
// transaction. So the caller, a lock strategy, sets the bounds of each transaction.
package product

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/oversell/oversell/internal/engine/sqlerror"
	"github.com/oversell/oversell/internal/product/stock"
)

// Limits of stored values.
const (
	MaxName  = 255           // characters in the name of a product or purchaser
	MaxStock = 1_000_000_000 // units put on sale at once
)

// ErrNotFound: no product has that name.
var ErrNotFound = errors.New("no such product")

var errVanished = errors.New("the product's row was gone at the write")

// A Product is one row of the table product.
type Product struct {
	ID      int64  `json:"-"`
	Name    string `json:"name"`
	Amount  int64  `json:"amount"`  // units in this row that can still be sold; WithParts adds those in other tables
	Stocked int64  `json:"stocked"` // units that the last restock put on sale
	Version int64  `json:"-"`       // raised by each write that checks the version (SetAmountAt)
	Fence   int64  `json:"-"`       // the highest fencing token so far (Seal)

	// LastEntry is the id of the last order in the Redis stream of the strategy `redis-lua` that Amount
	// includes.
	LastEntry string `json:"-"`
}

// TableName returns the name in the migrations. By default, gorm would use the plural.
func (Product) TableName() string { return "product" }

// CheckName returns an error if the name of a product or purchaser is invalid. It refuses white
// space at the ends because MySQL's utf8mb4_bin pads names when it compares them: 'a' = 'a ' (MySQL
// 8.0 manual, 12.8.5, trailing space handling).
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("is empty")
	case !utf8.ValidString(name):
		return errors.New("is not UTF-8")
	case strings.ContainsRune(name, utf8.RuneError):
		return errors.New("has U+FFFD, which stands for a character that was broken on its way")
	case utf8.RuneCountInString(name) > MaxName:
		return fmt.Errorf("has %d characters, and the maximum is %d", utf8.RuneCountInString(name), MaxName)
	case strings.TrimSpace(name) != name:
		return errors.New("begins or ends with white space")
	case strings.ContainsFunc(name, unicode.IsControl):
		return errors.New("has a control character")
	}
	return nil
}

// ByName reads one product's row, without any lock. Its Amount does not include units in other tables
// (WithParts does). It returns ErrNotFound if there is no such product.
func ByName(db *gorm.DB, name string) (Product, error) {
	return first(db, name)
}

// ForUpdate reads one product and keeps its row locked until the transaction of tx ends. It returns
// ErrNotFound if there is no such product. SQLite has no row locks, and gorm omits the clause there. So on
// SQLite the caller's transaction must begin with BEGIN IMMEDIATE, as in purchase.InLockingTx.
func ForUpdate(tx *gorm.DB, name string) (Product, error) {
	return first(tx.Clauses(clause.Locking{Strength: "UPDATE"}), name)
}

// WithParts reads one product, without any lock. Its Amount is the whole stock, including the units outside
// the product's row, so it must not be written back. It returns ErrNotFound if there is no such product.
func WithParts(db *gorm.DB, name string) (Product, error) {
	return first(db.Select(whole()), name)
}

// whole selects the columns of a product with its whole stock.
func whole() string { return "id, name, " + stock.Amount() + " AS amount, stocked" }

// Left returns the Amount of WithParts.
func Left(db *gorm.DB, name string) (units int64, _ error) {
	p, err := WithParts(db, name)
	return p.Amount, err
}

func first(db *gorm.DB, name string) (Product, error) {
	var p Product
	err := db.Where("name = ?", name).Take(&p).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return Product{}, fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	return p, err
}

// List returns every product with its whole stock, in the order of their names.
func List(db *gorm.DB) ([]Product, error) {
	products := []Product{} // never null in JSON
	err := db.Select(whole()).Order("name").Find(&products).Error
	return products, err
}

// SetAmount writes a stock that the caller computed from an earlier read. Without a lock it loses
// the updates of other buyers.
func SetAmount(tx *gorm.DB, id, amount int64) error {
	return mustHit(tx.Exec("UPDATE product SET amount = ? WHERE id = ?", amount, id))
}

// SetAmountAt writes amount only if the row still has the given version, and raises the version. It reports
// whether it wrote the row.
func SetAmountAt(tx *gorm.DB, id, amount, version int64) (bool, error) {
	done := tx.Exec("UPDATE product SET amount = ?, version = version + 1 WHERE id = ? AND version = ?", amount, id, version)
	return done.RowsAffected == 1, done.Error
}

// SetAmountAfter writes amount and the last entry of a stream of orders that this amount includes, in one
// row. So a reader of the row knows which orders its stock does not include. The caller must have locked the
// row with ForUpdate.
//
// It also raises the version, so it writes the row even if both values stay the same. This matters because the
// COMMIT of a write also puts on the disk all commits that the transaction has read. InnoDB shows a commit to
// others before it has flushed it (trx0trx.cc: trx_commit_in_memory releases the locks, and
// trx_flush_log_if_needed follows). And an UPDATE that changes nothing writes no log.
func SetAmountAfter(tx *gorm.DB, id, amount int64, lastEntry string) error {
	return mustHit(tx.Exec("UPDATE product SET amount = ?, last_entry = ?, version = version + 1 WHERE id = ?", amount, lastEntry, id))
}

// Seal makes token the product's highest fencing token if it is higher than the previous one, and reports
// whether it did. After that no write under a lower token succeeds. So no earlier lock holder can change the
// stock that this holder reads next.
//
// Between two restocks (Put), the tokens of a product must come from one source. Otherwise the higher tokens
// of one source would block the holders that have tokens of the other.
func Seal(db *gorm.DB, name string, token int64) (bool, error) {
	done := db.Exec("UPDATE product SET fence = ? WHERE name = ? AND fence < ?", token, name, token)
	return done.RowsAffected == 1, done.Error
}

// SetAmountFenced writes amount only while token is still the product's highest fencing token (Seal). It
// reports whether it wrote the row.
func SetAmountFenced(tx *gorm.DB, id, amount, token int64) (bool, error) {
	done := tx.Exec("UPDATE product SET amount = ? WHERE id = ? AND fence = ?", amount, id, token)
	return done.RowsAffected == 1, done.Error
}

// TakeIfLeft takes units from the stock in one statement, if the stock has that many. It reports
// whether it did.
func TakeIfLeft(tx *gorm.DB, name string, units int64) (bool, error) {
	done := tx.Exec("UPDATE product SET amount = amount - ? WHERE name = ? AND amount >= ?", units, name, units)
	return done.RowsAffected == 1, done.Error
}

// Take takes units from the stock without a check: the stock may be negative until the transaction
// of tx ends. It returns ErrNotFound if there is no such product.
func Take(tx *gorm.DB, name string, units int64) error {
	done := tx.Exec("UPDATE product SET amount = amount - ? WHERE name = ?", units, name)
	if done.Error == nil && done.RowsAffected != 1 {
		return fmt.Errorf("%w: %q", ErrNotFound, name)
	}
	return done.Error
}

// Put creates or resets the product, with all units in its own row. The version continues to count, so
// SetAmountAt still refuses a writer from before the reset. The fence starts at 0 again, so new tokens may
// come from another source. SetAmountFenced still refuses a writer from before the reset, since its token is
// no longer in the row.
func Put(tx *gorm.DB, name string, amount int64) error {
	if err := CheckName(name); err != nil {
		return fmt.Errorf("the product's name %w", err)
	}
	reset := tx.Exec("UPDATE product SET amount = ?, stocked = ?, version = version + 1, fence = 0 WHERE name = ?", amount, amount, name)
	if reset.Error != nil {
		return reset.Error
	}
	if reset.RowsAffected == 1 { // the row is now locked, so no buyer moves units out of it
		return stock.Clear(tx, name)
	}
	err := tx.Exec("INSERT INTO product (name, amount, stocked) VALUES (?, ?, ?)", name, amount, amount).Error
	if sqlerror.KindOf(err) == sqlerror.Duplicate {
		return fmt.Errorf("put %q: another request created it at the same time; try again: %w", name, err)
	}
	return err
}

// mustHit returns an error for an update that found no row.
func mustHit(done *gorm.DB) error {
	if done.Error == nil && done.RowsAffected != 1 {
		return errVanished
	}
	return done.Error
}
