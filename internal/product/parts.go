package product

import (
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// A Part is units of a product in a row of their own: a buyer who takes from it locks no
// other part, and not the product's row. The stock of a product is what its row has
// (Product.Amount, as ByName reads it) and the sum of its parts. Who moves units between
// them holds the product's row, see ForUpdate; who only takes from a part need not.
type Part struct {
	ProductName string
	Part        int64 // its number, from 0
	Amount      int64 // units that can still be sold
}

// TableName keeps the singular that the migrations use.
func (Part) TableName() string { return "product_part" }

// withParts are the columns of a product with the units of its parts counted in: in one
// statement, since units move between the row and its parts.
const withParts = "id, name, amount + COALESCE((SELECT SUM(amount) FROM product_part WHERE product_name = product.name), 0) AS amount, stocked"

// WithParts reads one product, without any lock: its Amount is the whole stock, with the
// units of its parts. It is not to be written back. ErrNotFound if there is none.
func WithParts(db *gorm.DB, name string) (Product, error) {
	return first(db.Select(withParts), name)
}

// Left is the Amount of WithParts.
func Left(db *gorm.DB, name string) (units int64, _ error) {
	p, err := WithParts(db, name)
	return p.Amount, err
}

// TakeFromPart takes units from one part in one statement, if it has so many. It reports
// whether it did; false, too, where there is no such part.
func TakeFromPart(tx *gorm.DB, name string, part, units int64) (bool, error) {
	done := tx.Exec("UPDATE product_part SET amount = amount - ? WHERE product_name = ? AND part = ? AND amount >= ?", units, name, part, units)
	return done.RowsAffected == 1, done.Error
}

// PartsWith reads the numbers, in their order and below limit, of the parts that have at
// least so many units, without any lock: they may be taken before anybody acts on it.
func PartsWith(db *gorm.DB, name string, units, limit int64) ([]int64, error) {
	var numbers []int64
	err := db.Model(&Part{}).Where("product_name = ? AND part < ? AND amount >= ?", name, limit, units).Order("part").Pluck("part", &numbers).Error
	return numbers, err
}

// PartsForUpdate reads the parts of a product in the order of their numbers and keeps them
// locked until the transaction of tx ends. The caller must hold the product's row, see
// ForUpdate, or two of them could wait for each other.
func PartsForUpdate(tx *gorm.DB, name string) ([]Part, error) {
	var parts []Part
	err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).Where("product_name = ?", name).Order("part").Find(&parts).Error
	return parts, err
}

// Divide writes the stock of p as parts 0 to len(amounts)-1 with so many units each, and
// nothing in the product's row. p and before are what ForUpdate and PartsForUpdate have
// read in this transaction; parts with higher numbers are removed.
func Divide(tx *gorm.DB, p Product, before []Part, amounts []int64) error {
	parts := make([]Part, len(amounts))
	for i, units := range amounts {
		parts[i] = Part{p.Name, int64(i), units}
	}
	if p.Amount != 0 {
		if err := SetAmount(tx, p.ID, 0); err != nil {
			return err
		}
	}
	if n := len(before); n > 0 && before[n-1].Part >= int64(len(parts)) {
		if err := tx.Exec("DELETE FROM product_part WHERE product_name = ? AND part >= ?", p.Name, len(parts)).Error; err != nil {
			return err
		}
	}
	// Not deleted and inserted: on PostgreSQL who waits for the row would find it gone.
	return tx.Clauses(clause.OnConflict{
		Columns: []clause.Column{{Name: "product_name"}, {Name: "part"}}, DoUpdates: clause.AssignmentColumns([]string{"amount"}),
	}).Create(&parts).Error
}

// Evenly divides units among so many parts, 1 at least; the first have one more where they
// do not come out even.
func Evenly(units, parts int64) []int64 {
	amounts := make([]int64, parts)
	for i := range amounts {
		amounts[i] = units / parts
		if int64(i) < units%parts {
			amounts[i]++
		}
	}
	return amounts
}

// UnlockedUnits locks up to limit parts of one unit that nobody has locked, until the
// transaction of tx ends, and returns their numbers. It waits for no lock; the database
// must have SKIP LOCKED.
func UnlockedUnits(tx *gorm.DB, name string, limit int64) ([]int64, error) {
	var numbers []int64
	err := tx.Model(&Part{}).Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).
		Where("product_name = ? AND amount = 1", name).Order("part").Limit(int(limit)).Pluck("part", &numbers).Error
	return numbers, err
}

// RemoveParts removes parts that the transaction of tx has locked, one by one: for a list
// of them MariaDB may pass the whole table, and wait for the parts of other products.
func RemoveParts(tx *gorm.DB, name string, numbers []int64) error {
	for _, n := range numbers {
		if err := mustHit(tx.Exec("DELETE FROM product_part WHERE product_name = ? AND part = ?", name, n)); err != nil {
			return err
		}
	}
	return nil
}

// AddUnits writes the stock of the row of p and moves as much of it into parts of one unit
// as there is room for, until the product has most parts. The caller must hold the
// product's row, see ForUpdate.
func AddUnits(tx *gorm.DB, p Product, most int64) error {
	var there struct{ Parts, Highest int64 }
	err := tx.Model(&Part{}).Select("COUNT(*) AS parts, COALESCE(MAX(part), -1) AS highest").Where("product_name = ?", p.Name).Scan(&there).Error
	if err != nil {
		return err
	}
	parts := make([]Part, min(p.Amount, max(0, most-there.Parts)))
	for i := range parts {
		parts[i] = Part{p.Name, there.Highest + 1 + int64(i), 1}
	}
	if err := SetAmount(tx, p.ID, p.Amount-int64(len(parts))); err != nil || len(parts) == 0 {
		return err
	}
	return tx.Create(&parts).Error
}

// Collect moves all units of p from its parts into its row and returns p so. It waits for
// who has locked a part. The caller must hold the product's row, see ForUpdate.
func Collect(tx *gorm.DB, p Product) (Product, error) {
	parts, err := PartsForUpdate(tx, p.Name)
	if err != nil || len(parts) == 0 {
		return p, err
	}
	numbers := make([]int64, len(parts))
	for i, part := range parts {
		p.Amount += part.Amount
		numbers[i] = part.Part
	}
	if err := SetAmount(tx, p.ID, p.Amount); err != nil {
		return p, err
	}
	return p, RemoveParts(tx, p.Name, numbers)
}
