package stock

import (
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var parts = Kind{Table: "product_part", Number: "part", divide: func(tx *gorm.DB, name string, units, rows int64) error {
	return WriteParts(tx, name, nil, Evenly(units, rows))
}}

// A Part is a row with some units of a product. A buyer that takes units from a part locks only that part. A
// transaction that moves units between parts, or between a part and the product's row, must first lock the
// product's row with product.ForUpdate.
type Part struct {
	ProductName string
	Part        int64 // number of the part, from 0
	Amount      int64 // units that can still be sold
}

// TableName returns the name in the migrations. By default, gorm would use the plural.
func (Part) TableName() string { return parts.Table }

// Sum returns the units of the parts.
func Sum(parts []Part) (units int64) {
	for _, part := range parts {
		units += part.Amount
	}
	return units
}

// TakeFromPart takes units from one part in one statement, if the part has that many. It reports
// whether it took them, and returns false if there is no such part.
func TakeFromPart(tx *gorm.DB, name string, part, units int64) (bool, error) {
	done := tx.Exec("UPDATE product_part SET amount = amount - ? WHERE product_name = ? AND part = ? AND amount >= ?", units, name, part, units)
	return done.RowsAffected == 1, done.Error
}

// PartsWith returns the numbers of the parts that have at least the given units, in ascending order. It returns
// only numbers below limit. It takes no lock: another buyer may take the units before the caller does.
func PartsWith(db *gorm.DB, name string, units, limit int64) ([]int64, error) {
	var numbers []int64
	err := db.Model(&Part{}).Where("product_name = ? AND part < ? AND amount >= ?", name, limit, units).Order("part").Pluck("part", &numbers).Error
	return numbers, err
}

// PartsForUpdate reads the parts of a product in the order of their numbers and keeps them locked until the
// transaction of tx ends. The caller must have locked the product's row; otherwise two callers could deadlock.
func PartsForUpdate(tx *gorm.DB, name string) ([]Part, error) {
	var parts []Part
	err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).Where("product_name = ?", name).Order("part").Find(&parts).Error
	return parts, err
}

// WriteParts writes the stock of a product as parts 0 to len(amounts)-1. The list `before` is the result of
// PartsForUpdate in this transaction. WriteParts deletes those of its parts that have higher numbers.
func WriteParts(tx *gorm.DB, name string, before []Part, amounts []int64) error {
	parts := make([]Part, len(amounts))
	for i, units := range amounts {
		parts[i] = Part{name, int64(i), units}
	}
	if n := len(before); n > 0 && before[n-1].Part >= int64(len(parts)) {
		if err := tx.Exec("DELETE FROM product_part WHERE product_name = ? AND part >= ?", name, len(parts)).Error; err != nil {
			return err
		}
	}
	// Update the rows instead of deleting and inserting them: on PostgreSQL, a buyer that waits
	// for a row would find it gone.
	return tx.Clauses(clause.OnConflict{
		Columns: []clause.Column{{Name: "product_name"}, {Name: "part"}}, DoUpdates: clause.AssignmentColumns([]string{"amount"}),
	}).Create(&parts).Error
}

// UnlockedUnits locks parts of one unit that no transaction has locked, and returns their numbers. It
// locks no more than maxParts parts, and waits for no lock. The locks end with the transaction of tx.
// The database must have SKIP LOCKED.
func UnlockedUnits(tx *gorm.DB, name string, maxParts int64) ([]int64, error) {
	var numbers []int64
	err := tx.Model(&Part{}).Clauses(clause.Locking{Strength: "UPDATE", Options: "SKIP LOCKED"}).
		Where("product_name = ? AND amount = 1", name).Order("part").Limit(int(maxParts)).Pluck("part", &numbers).Error
	return numbers, err
}

var errVanished = errors.New("a part was gone at the write")

// RemoveParts removes parts that the transaction of tx has locked, one by one. With a list of parts
// in one statement, MariaDB may scan the whole table and wait for the parts of other products.
func RemoveParts(tx *gorm.DB, name string, numbers []int64) error {
	for _, n := range numbers {
		done := tx.Exec("DELETE FROM product_part WHERE product_name = ? AND part = ?", name, n)
		if done.Error != nil {
			return done.Error
		}
		if done.RowsAffected != 1 {
			return errVanished
		}
	}
	return nil
}

// MoreUnits returns new parts for the given units, one unit each, without inserting them. It returns fewer
// parts if the product would otherwise have more than maxParts. The caller must have locked the product's row.
func MoreUnits(tx *gorm.DB, name string, units, maxParts int64) ([]Part, error) {
	var there struct{ Parts, Highest int64 }
	err := tx.Model(&Part{}).Select("COUNT(*) AS parts, COALESCE(MAX(part), -1) AS highest").Where("product_name = ?", name).Scan(&there).Error
	if err != nil {
		return nil, err
	}
	parts := make([]Part, min(units, max(0, maxParts-there.Parts)))
	for i := range parts {
		parts[i] = Part{name, there.Highest + 1 + int64(i), 1}
	}
	return parts, nil
}

// AddParts inserts parts.
func AddParts(tx *gorm.DB, parts []Part) error {
	if len(parts) == 0 {
		return nil
	}
	return tx.Create(&parts).Error
}
