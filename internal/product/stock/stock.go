// Package stock owns the tables that hold units of a product outside the product's own row.
//
// The stock of a product is the amount of its row plus the amounts in these tables. Each table has its own
// file and an entry in the function `kinds`.
package stock

import (
	"fmt"

	"gorm.io/gorm"
)

// A Kind is one table of units. It has the columns product_name and amount.
type Kind struct {
	Table string

	// Number is the column with the number of a row within its product, from 0.
	Number string

	// divide writes the units as the given number of rows, in place of the existing rows.
	divide func(tx *gorm.DB, name string, units, rows int64) error
}

func kinds() []Kind { return []Kind{parts} }

// Tables returns the names of the tables.
func Tables() (names []string) {
	for _, k := range kinds() {
		names = append(names, k.Table)
	}
	return names
}

// Amount is the SQL expression for a product's whole stock. A sum over several statements could
// miss units that move between the tables.
func Amount() string {
	sum := "amount"
	for _, k := range kinds() {
		sum += fmt.Sprintf(" + COALESCE((SELECT SUM(amount) FROM %s WHERE product_name = product.name), 0)", k.Table)
	}
	return sum
}

// Clear removes the units of a product from all tables.
func Clear(tx *gorm.DB, name string) error {
	for _, k := range kinds() {
		if err := tx.Exec("DELETE FROM "+k.Table+" WHERE product_name = ?", name).Error; err != nil {
			return err
		}
	}
	return nil
}

// ClearAll removes the units of all products.
func ClearAll(tx *gorm.DB) error {
	for _, k := range kinds() {
		if err := tx.Exec("DELETE FROM " + k.Table).Error; err != nil {
			return err
		}
	}
	return nil
}

// Restore divides the units among the given number of rows of the first table, and leaves no units in the other
// tables. With 0 rows it writes no units. No other transaction may write to the product at the same time.
func Restore(tx *gorm.DB, name string, units, rows int64) error {
	for i, k := range kinds() {
		there := rows
		if i > 0 {
			there = 0
		}
		if err := tx.Exec("DELETE FROM "+k.Table+" WHERE product_name = ? AND "+k.Number+" >= ?", name, there).Error; err != nil {
			return err
		}
		if there > 0 {
			if err := k.divide(tx, name, units, there); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rows returns one query per table, with the product as its only parameter. For row n, a query returns the
// number -1-n and the row's amount.
func Rows() (queries []string) {
	for _, k := range kinds() {
		queries = append(queries, "SELECT -1 - "+k.Number+", amount FROM "+k.Table+" WHERE product_name = ? ORDER BY 1 DESC")
	}
	return queries
}

// Evenly divides units among rows, at least 1. If the division leaves a remainder, the first rows
// get one unit more.
func Evenly(units, rows int64) []int64 {
	amounts := make([]int64, rows)
	for i := range amounts {
		amounts[i] = units / rows
		if int64(i) < units%rows {
			amounts[i]++
		}
	}
	return amounts
}
