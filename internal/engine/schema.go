package engine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"time"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"github.com/oversell/oversell/migrations"
)

// Migrate brings the schema up to date. Several processes may call it at once.
func (e *Engine) Migrate(ctx context.Context) error { return schema{e.Admin}.up(ctx) }

// SchemaVersion is the number of the newest migration that has run.
func (e *Engine) SchemaVersion(ctx context.Context) (int64, error) {
	return schema{e.Admin}.version(ctx)
}

// A schema is that of one database.
type schema struct{ db *gorm.DB }

func (s schema) up(ctx context.Context) error {
	provider, err := s.provider()
	if err != nil {
		return err
	}
	return s.alone(ctx, func() error {
		if _, err := provider.Up(ctx); err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		return nil
	})
}

func (s schema) version(ctx context.Context) (int64, error) {
	provider, err := s.provider()
	if err != nil {
		return 0, err
	}
	return provider.GetDBVersion(ctx)
}

func (s schema) provider() (*goose.Provider, error) {
	db, err := s.db.DB()
	if err != nil {
		return nil, err
	}
	files, err := migrations.For(s.db.Name())
	if err != nil {
		return nil, err
	}
	dialect := goose.DialectMySQL
	if s.db.Name() == "sqlite" {
		dialect = goose.DialectSQLite3
	}
	return goose.NewProvider(dialect, db, files, goose.WithLogger(log.New(io.Discard, "", 0)))
}

// sqliteTries is how often a migration of a SQLite file is tried, at most.
const sqliteTries = 20

// alone runs fn while no other process on the same MySQL migrates: MySQL commits each
// CREATE TABLE by itself, so two migrations at once would disturb each other. SQLite
// has no named locks. There each step is a transaction, and the process that comes
// second finds at its next try that nothing is left to do.
func (s schema) alone(ctx context.Context, fn func() error) error {
	if s.db.Name() != "mysql" {
		err := fn()
		for tries := 1; err != nil && tries < sqliteTries && ctx.Err() == nil; tries++ {
			time.Sleep(rand.N(100 * time.Millisecond))
			err = fn()
		}
		return err
	}
	db, err := s.db.DB()
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("the database does not answer: %w", err)
	}
	defer conn.Close()
	// The lock is the server's, its name this database's.
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, "SELECT GET_LOCK("+migrateLock+", 60)").Scan(&got); err != nil {
		return fmt.Errorf("lock for migrating: %w", err)
	}
	if got.Int64 != 1 {
		return errors.New("another process has been migrating this database for 60 s")
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "DO RELEASE_LOCK("+migrateLock+")")
	return fn()
}

// migrateLock is the lock's name, of at most 64 characters, the same for every process
// on one database.
const migrateLock = "CONCAT('shop migrate ', MD5(DATABASE()))"
