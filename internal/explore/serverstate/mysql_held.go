package serverstate

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// activeRows matches the status of a transaction that has locked or written rows.
var activeRows = regexp.MustCompile(`[1-9][0-9]* row lock\(s\)|undo log entries`)

// Held implements Connections. It reads named locks and LOCK TABLES from the plugin METADATA_LOCK_INFO. Without the
// plugin it asks for the holder of each name, and does not find locks on tables. It does not find a transaction
// without a statement after BEGIN, which holds nothing in InnoDB.
func (d *mysqlConnections) Held(ctx context.Context, names []string) (map[int64][]string, error) {
	held := map[int64][]string{}
	transactions, err := d.transactions(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask what connections hold: %w", err)
	}
	for _, transaction := range transactions {
		first, _, _ := strings.Cut(transaction, "\n")
		id := threadOf(transaction)
		if id == 0 || !strings.Contains(first, ", ACTIVE") {
			continue
		}
		held[id] = append(held[id], heldTransaction)
		if activeRows.MatchString(transaction) {
			held[id] = append(held[id], heldRows)
		}
	}
	listed, err := d.tables.held(ctx, held)
	if err == nil && !listed {
		err = d.heldByName(ctx, held, names)
	}
	if err != nil {
		return nil, fmt.Errorf("ask what connections hold: %w", err)
	}
	return held, nil
}

func (d *mysqlConnections) heldByName(ctx context.Context, held map[int64][]string, names []string) error {
	for _, name := range names {
		id, err := d.Holder(ctx, name)
		if err != nil {
			return err
		}
		if id != 0 {
			held[id] = append(held[id], namedLock(name))
		}
	}
	return nil
}

func namedLock(name string) string { return fmt.Sprintf("lock '%s'", name) }
