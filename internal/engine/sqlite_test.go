package engine_test

import (
	"context"
	"testing"

	"github.com/oversell/oversell/internal/engine/enginetest"
)

// TestSQLiteCancelled ends a context at about the time when its statement begins. A statement without
// an error has run, and one with an error leaves no transaction behind.
func TestSQLiteCancelled(t *testing.T) {
	pool, err := enginetest.Embedded(t).DB.DB()
	if err != nil {
		t.Fatal(err)
	}
	begin := func(ctx context.Context) (begun bool) {
		conn, err := pool.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return false
		}
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
		return true
	}
	begun := 0
	for range 2_000 {
		ctx, cancel := context.WithCancel(t.Context())
		go cancel()
		if begin(ctx) {
			begun++
		}
		if !begin(t.Context()) {
			t.Fatal("a transaction is left behind")
		}
	}
	if begun == 0 {
		t.Error("no transaction began")
	}
}
