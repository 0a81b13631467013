package serverstate

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/product/stock"
)

// Stock is the stock and the purchase records of one product in a database.
type Stock struct {
	Admin   *gorm.DB // not a buyer's connection
	Product string
	Stock   int64  // at the start of a schedule
	Parts   int64  // number of rows into which it is divided evenly; 0: the product's own row
	Recount string // statement that resets the counter of record ids; "": the ids continue

	Milliseconds string // for Whole: SQL expression for the time of a record in ms since 1970
}

// State is a product's stock and records, as read from the database.
type State struct {
	audit.Sums
	Sales map[int64]audit.Sale // by id of the record
}

// Restore restores the stock and removes the records.
func (s Stock) Restore(ctx context.Context) error {
	return s.Admin.WithContext(ctx).Transaction(func(tx *gorm.DB) error { // one commit costs less than three
		if err := tx.Exec("DELETE FROM purchase_history WHERE product_name = ?", s.Product).Error; err != nil {
			return fmt.Errorf("restore the records: %w", err)
		}
		own := s.Stock
		if s.Parts > 0 {
			own = 0
		}
		err := tx.Exec("UPDATE product SET amount = ?, stocked = ?, version = 0, fence = 0, last_entry = '0-0' WHERE name = ?",
			own, s.Stock, s.Product).Error
		if err != nil {
			return fmt.Errorf("restore the stock: %w", err)
		}
		if err := stock.Restore(tx, s.Product, s.Stock, s.Parts); err != nil {
			return fmt.Errorf("restore the parts: %w", err)
		}
		if s.Recount == "" {
			return nil
		}
		if err := tx.Exec(s.Recount).Error; err != nil {
			return fmt.Errorf("restore the ids: %w", err)
		}
		return nil
	})
}

// Whole returns all data in the product's row, parts and records that can affect a later step. Records are sorted by id.
// Real times are omitted. No buyer may move during the call.
func (s Stock) Whole(ctx context.Context) (text string, ids []int64, _ error) {
	var b strings.Builder
	queries := []string{"SELECT 0, amount, stocked, version, fence, last_entry FROM product WHERE name = ?"}
	queries = append(queries, stock.Rows()...)
	queries = append(queries, "SELECT id, amount, left_after, strategy, purchaser, idempotency_key, "+s.Milliseconds+
		" FROM purchase_history WHERE product_name = ? ORDER BY 1")
	for _, query := range queries {
		numbers, err := s.write(ctx, &b, query)
		if err != nil {
			return "", nil, fmt.Errorf("read stock and records: %w", err)
		}
		for _, id := range numbers {
			if id > 0 {
				ids = append(ids, id)
			}
		}
	}
	return b.String(), ids, nil
}

// write writes the rows of a query to b, and returns their first cells, which must be numbers.
func (s Stock) write(ctx context.Context, b *strings.Builder, query string) (first []int64, _ error) {
	rows, err := s.Admin.WithContext(ctx).Raw(query, s.Product).Rows()
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var id int64
	cells := make([]sql.NullString, len(columns)-1)
	into := []any{&id}
	for i := range cells {
		into = append(into, &cells[i])
	}
	err = scanAll(rows, into, func() {
		fmt.Fprintf(b, "%d ", id)
		for _, cell := range cells {
			fmt.Fprintf(b, "%t %q ", cell.Valid, cell.String)
		}
		b.WriteString("\n")
		first = append(first, id)
	})
	return first, err
}

// Read reads stock and records in one statement. No buyer may move during the call.
func (s Stock) Read(ctx context.Context) (State, error) {
	state := State{Sales: map[int64]audit.Sale{}}
	// A union takes half the time of a join. The sales are the rows with a purchaser.
	rows, err := s.Admin.WithContext(ctx).Raw(`SELECT `+stock.Amount()+`, stocked, NULL FROM product WHERE name = ?
		UNION ALL SELECT amount, id, purchaser FROM purchase_history WHERE product_name = ?`, s.Product, s.Product).Rows()
	if err != nil {
		return state, fmt.Errorf("read stock and records: %w", err)
	}
	var amount, other int64
	var purchaser sql.NullString
	err = scanAll(rows, []any{&amount, &other, &purchaser}, func() {
		if !purchaser.Valid {
			state.Leftover, state.Stocked = amount, other
			return
		}
		for _, sale := range state.Sales { // each buyer makes one purchase
			if sale.Purchaser == purchaser.String {
				state.Duplicates++
				break
			}
		}
		state.Sales[other] = audit.Sale{Purchaser: purchaser.String, Amount: amount}
		state.Records++
		state.UnitsSold += amount
	})
	if err != nil {
		return state, fmt.Errorf("read stock and records: %w", err)
	}
	state.Sums = state.Computed()
	return state, nil
}
