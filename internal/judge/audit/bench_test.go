package audit_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"gorm.io/gorm"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/audit"
	"github.com/oversell/oversell/internal/purchase"
)

// BenchmarkAudit times the audit and the paging on MariaDB with OVERSELL_BENCH_RECORDS records
// (default: a million). A tenth of them belong to one product, the rest to 1,000 products.
func BenchmarkAudit(b *testing.B) {
	records, err := strconv.Atoi(os.Getenv("OVERSELL_BENCH_RECORDS"))
	if err != nil {
		records = 1_000_000
	}
	e, err := engine.Open(b.Context(), engine.Config{Name: engine.Local, Wait: 5 * time.Second, Conns: 4})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = e.Close() })
	fill(b, e.DB, records)
	audited := func(name string) func() error {
		return func() error { _, err := audit.Read(b.Context(), e.DB, name); return err }
	}
	paged := func(name string, after int) func() error {
		return func() error {
			page, err := purchase.Page(e.DB, name, int64(after), 100)
			if err == nil && len(page) != 100 {
				return fmt.Errorf("%d records on the page", len(page))
			}
			return err
		}
	}
	for _, c := range []struct {
		name string
		once func() error
	}{
		{fmt.Sprintf("audit-%d-of-%d", records*9/10/1000, records), audited("p1")},
		{fmt.Sprintf("audit-%d-of-%d", records/10, records), audited("hot")},
		{"page-first", paged("", 0)},
		{"page-last", paged("", records-200)},
		{"page-of-product-first", paged("hot", 0)},
		{"page-of-product-last", paged("hot", records-2000)},
	} {
		b.Run(c.name, func(b *testing.B) { report(b, c.once) })
	}
	if err := e.DB.Exec("ALTER TABLE purchase_history DROP INDEX purchase_history_audit").Error; err != nil {
		b.Fatal(err)
	}
	b.Run(fmt.Sprintf("audit-%d-without-its-index", records/10), func(b *testing.B) { report(b, audited("hot")) })
}

// report reports the median of seven runs.
func report(b *testing.B, once func() error) {
	b.Helper()
	var took []time.Duration
	for range 7 {
		start := time.Now()
		if err := once(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms")
	b.ReportMetric(0, "ns/op")
}

// fill inserts the records with MariaDB's sequence engine, every tenth for the product "hot". The
// ids are 1 to records.
func fill(b *testing.B, db *gorm.DB, records int) {
	b.Helper()
	const chunk = 500_000
	for first := 1; first <= records; first += chunk {
		last := min(first+chunk-1, records)
		err := db.Exec(fmt.Sprintf(`INSERT INTO purchase_history
			(id, product_name, purchaser, purchase_time, amount, strategy, idempotency_key, left_after, waited_ms)
			SELECT seq, IF(seq %% 10 = 0, 'hot', CONCAT('p', seq %% 1000)), CONCAT('buyer-', seq), NOW(6), 1, 'conditional', NULL, 0, 0
			FROM seq_%d_to_%d`, first, last)).Error
		if err != nil {
			b.Fatal(err)
		}
	}
	for _, statement := range []string{
		"INSERT INTO product (name, amount, stocked) VALUES ('hot', 0, 1), ('p1', 0, 1)",
		"ANALYZE TABLE purchase_history",
	} {
		if err := db.Exec(statement).Error; err != nil {
			b.Fatal(err)
		}
	}
}
