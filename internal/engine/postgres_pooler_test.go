package engine_test

import (
	"strings"
	"testing"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/enginetest"
	"github.com/oversell/oversell/internal/testbed/localserver/localservertest"
	"github.com/oversell/oversell/internal/tier"
)

// TestPooler: the shop detects PgBouncer in transaction mode, where a prepared statement may be missing or
// exist already. It then uses unprepared statements.
func TestPooler(t *testing.T) {
	tier.Soak(t, "needs PgBouncer")
	ctx, server := t.Context(), localservertest.Postgres(t)
	pooler, err := server.Pooler()
	if err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(server.URL(), server.Address(), pooler.Address(), 1)
	_, err = engine.Open(ctx, engine.Config{DB: url + "&default_transaction_isolation=serializable", Wait: enginetest.Wait, Conns: 8})
	if err == nil || !strings.Contains(err.Error(), "leave it out of the URL") {
		t.Errorf("a setting that the pooler does not know: %v", err)
	}

	e, err := engine.Open(ctx, engine.Config{DB: url, Wait: enginetest.Wait, Conns: 8})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if len(e.Warnings) != 1 || !strings.Contains(e.Warnings[0], "a pooler stands in between") {
		t.Errorf("warnings %q", e.Warnings)
	}
	done := make(chan error)
	for range 8 {
		go func() {
			for range 20 {
				if err := e.DB.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
					return tx.Exec("UPDATE product SET amount = amount + ? WHERE name = ?", 1, "apple").Error
				}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
