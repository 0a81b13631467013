package lockstrategytest

import "github.com/oversell/oversell/internal/engine/dialect"

// lockRow returns the statements that open a transaction and lock a product's row. On a database
// without row locks they lock the file.
func lockRow(d dialect.Dialect, product string) []string {
	if !d.RowLocks {
		return []string{"BEGIN IMMEDIATE"}
	}
	return []string{"BEGIN", "SELECT id FROM product WHERE name = '" + product + "' FOR UPDATE"}
}
