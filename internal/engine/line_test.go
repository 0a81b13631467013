package engine

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net/url"
	"slices"
	"testing"
	"testing/synctest"

	"golang.org/x/sync/semaphore"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/require"
)

type idle struct{}

func (idle) Connect(context.Context) (driver.Conn, error) { return idle{}, nil }
func (idle) Driver() driver.Driver                        { return nil }
func (idle) Prepare(string) (driver.Stmt, error)          { return nil, errors.ErrUnsupported }
func (idle) Close() error                                 { return nil }
func (idle) Begin() (driver.Tx, error)                    { return idle{}, nil }

func (idle) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return idle{}, nil }
func (idle) Commit() error                                                { return nil }
func (idle) Rollback() error                                              { return nil }

// TestInLine: buyers get the single connection in order of arrival. A buyer that has given up is skipped.
// database/sql alone picks a random one.
func TestInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := sql.OpenDB(idle{})
		defer pool.Close()
		pool.SetMaxOpenConns(1)
		line := &inLine{pool, semaphore.NewWeighted(1)}
		first, err := line.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		const buyers = 50
		served := make(chan int, buyers)
		for n := range buyers {
			go func() {
				tx, err := line.BeginTx(t.Context(), nil)
				if err != nil {
					t.Error(err)
					return
				}
				served <- n
				end := tx.(*placed)
				if err := errors.Join(end.Commit(), ignoreDone(end.Rollback())); err != nil { // Rollback after Commit, as a deferred Rollback does
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		ctx, giveUp := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := line.BeginTx(ctx, nil); gone <- err }()
		synctest.Wait()
		giveUp()
		expect.ErrorIs(t, <-gone, context.Canceled, "who has given up")
		expect.NoError(t, first.(*placed).Rollback())
		var order []int
		for range buyers {
			order = append(order, <-served)
		}
		synctest.Wait()
		if !slices.IsSorted(order) {
			t.Errorf("served in the order %v", order)
		}
		if !line.places.TryAcquire(1) {
			t.Error("a place was not given back")
		}
	})
}

func ignoreDone(err error) error {
	if errors.Is(err, sql.ErrTxDone) {
		return nil
	}
	return err
}

// TestTLSName: the certificate is checked against the host of the URL.
func TestTLSName(t *testing.T) {
	u, err := url.Parse("mysql://shop:secret@db.example:3307/shop?tls=true")
	require.NoError(t, err)
	c, err := mysqlConfig(u)
	require.NoError(t, err)
	if c.TLS == nil || c.TLS.ServerName != "db.example" || c.Addr != "db.example:3307" {
		t.Errorf("TLS %+v to %s", c.TLS, c.Addr)
	}
}
