package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/engine"
)

// A book is the content of the servers. It has each column of each row of each table. Of Redis it has only the
// keys of a product that no buyer asks for; the learner's code may use all other keys.
type book map[string]string

// The shop's two tables. A book contains the rows of any other table too.
const (
	shelf   = "product"
	records = "purchase_history"
)

func read(ctx context.Context, e *engine.Engine) (book, error) {
	b, db := book{}, e.Admin.WithContext(ctx)
	tables, err := db.Migrator().GetTables()
	for _, table := range tables {
		if strings.HasPrefix(table, "sqlite_") { // internal tables of the database
			continue
		}
		b["the table "+table] = ""
		var rows []map[string]any
		err = errors.Join(err, db.Table(table).Find(&rows).Error)
		for n, row := range rows {
			b.enter(table, n, row)
		}
	}
	for i, store := range stores(e) {
		keys, errs := store.Keys(ctx, "*"+bystander+"*").Result()
		err = errors.Join(err, errs)
		for _, key := range keys {
			b["the key "+key+" in "+[]string{"Redis", "the second store"}[i]] = ""
		}
	}
	return b, err
}

func (b book) enter(table string, n int, row map[string]any) {
	what := fmt.Sprintf("row %d of %s", n+1, table)
	switch table {
	case shelf:
		what = fmt.Sprint(row["name"])
	case records:
		text := fmt.Sprintf("%v of %v for %v", row["amount"], row["product_name"], row["purchaser"])
		for _, column := range slices.Sorted(maps.Keys(row)) {
			if !slices.Contains([]string{"id", "amount", "product_name", "purchaser"}, column) {
				text += fmt.Sprintf(", %s %v", column, row[column])
			}
		}
		b[fmt.Sprintf("record %v", row["id"])] = text
		return
	}
	for column, value := range row {
		if column == "amount" {
			column = "stock"
		}
		b["the "+column+" of "+what] = fmt.Sprint(value)
	}
}

// counters returns the columns of a product's row that a buyer may raise, with or without a sale.
func counters(product string) []string {
	return []string{"the version of " + product, "the fence of " + product}
}

// changes describes the entries that differ between two books, except the expected ones.
func (b book) changes(after book, expected ...string) string {
	var all []string
	keys := maps.Clone(b)
	maps.Copy(keys, after)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		was, had := b[key]
		is, has := after[key]
		switch {
		case was == is && had == has || slices.Contains(expected, key):
		case !has:
			all = append(all, key+inBrackets(was)+" is gone")
		case !had:
			all = append(all, key+inBrackets(is)+" is new")
		default:
			all = append(all, fmt.Sprintf("%s was %s and is %s", key, was, is))
		}
	}
	return strings.Join(all, "; ")
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}
