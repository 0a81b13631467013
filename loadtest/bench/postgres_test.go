//go:build bench

package bench

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/engine/dialect"
)

// BenchmarkPostgres compares a sale over HTTP with the same statements through pgx alone, on as
// many connections, round by round. Target: 70 %, better 85 %.
func BenchmarkPostgres(b *testing.B) {
	read := `SELECT * FROM "product" WHERE name = $1 LIMIT 1`
	for _, c := range []struct {
		strategy string
		options  pgx.TxOptions
		section  func(ctx context.Context, tx pgx.Tx) error
	}{
		{"conditional", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "UPDATE product SET amount = amount - $1 WHERE name = $2 AND amount >= $3", 1, "apple", 1); err != nil {
				return err
			}
			_, _, err := bareProduct(ctx, tx, read)
			return err
		}},
		{"check-after", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "UPDATE product SET amount = amount - $1 WHERE name = $2", 1, "apple"); err != nil {
				return err
			}
			_, _, err := bareProduct(ctx, tx, read)
			return err
		}},
		{"for-update", pgx.TxOptions{}, func(ctx context.Context, tx pgx.Tx) error { return bareReadWrite(ctx, tx, read+" FOR UPDATE") }},
		{"named-lock", pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", 1); err != nil {
				return err
			}
			return bareReadWrite(ctx, tx, read)
		}},
	} {
		b.Run(c.strategy, func(b *testing.B) {
			e, err := engine.Open(b.Context(), engine.Config{Name: engine.Local, LocalDB: dialect.Postgres, Wait: 5 * time.Second, Conns: benchBuyers})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			config, err := pgxpool.ParseConfig(e.URLs.DB)
			if err != nil {
				b.Fatal(err)
			}
			config.MaxConns = benchBuyers
			pool, err := pgxpool.NewWithConfig(b.Context(), config)
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			base := benchServe(b, e)
			client := &http.Client{Transport: &http.Transport{MaxIdleConns: benchBuyers, MaxIdleConnsPerHost: benchBuyers}}
			bare := func(int64) error {
				return pgx.BeginTxFunc(b.Context(), pool, c.options, func(tx pgx.Tx) error {
					if err := c.section(b.Context(), tx); err != nil {
						return err
					}
					return bareRecord(b.Context(), tx, c.strategy)
				})
			}
			var bares, https, ratios []float64
			for range benchRounds {
				benchStock(b, e)
				direct := rate(b, bare)
				benchStock(b, e)
				overHTTP := rate(b, func(int64) error { return buyOnce(client, base+"/product/buy?purchaser=ann&lock="+c.strategy) })
				bares, https, ratios = append(bares, direct), append(https, overHTTP), append(ratios, 100*overHTTP/direct)
			}
			b.ReportMetric(median(bares), "bare/s")
			b.ReportMetric(median(https), "http/s")
			b.ReportMetric(median(ratios), "%ofbare")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// The statements are those of internal/lockstrategy/testdata/sql/postgres.

func bareReadWrite(ctx context.Context, tx pgx.Tx, read string) error {
	id, amount, err := bareProduct(ctx, tx, read)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "UPDATE product SET amount = $1 WHERE id = $2", amount-1, id)
	return err
}

func bareProduct(ctx context.Context, tx pgx.Tx, read string) (id, amount int64, err error) {
	var name, lastEntry string
	var stocked, version, fence int64
	err = tx.QueryRow(ctx, read, "apple").Scan(&id, &name, &amount, &stocked, &version, &fence, &lastEntry)
	return id, amount, err
}

func bareRecord(ctx context.Context, tx pgx.Tx, strategy string) error {
	var id int64
	return tx.QueryRow(ctx, `INSERT INTO "purchase_history" ("product_name","purchaser","purchase_time","amount","strategy","idempotency_key","left_after","waited_ms")
		VALUES ($1,$2,$3,$4,$5,$6,$7,$8) RETURNING "id"`, "apple", "ann", time.Now(), 1, strategy, nil, 1, 0).Scan(&id)
}
