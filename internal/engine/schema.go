package engine

import (
	"context"
	"fmt"
	"io"
	"log"

	"github.com/pressly/goose/v3"
	"gorm.io/gorm"

	"github.com/oversell/oversell/migrations"
)

// Migrate updates the schema. Several processes may call it at the same time.
func (e *Engine) Migrate(ctx context.Context) error { return schemaOf(e).up(ctx) }

// SchemaVersion returns the number of the last migration that has run.
func (e *Engine) SchemaVersion(ctx context.Context) (int64, error) {
	return schemaOf(e).version(ctx)
}

type schema struct {
	kind database
	db   *gorm.DB
}

func schemaOf(e *Engine) schema {
	kind, _ := databaseBy(func(d database) bool { return d.name == e.Admin.Name() })
	return schema{kind, e.Admin}
}

func (s schema) up(ctx context.Context) error {
	provider, err := s.provider()
	if err != nil {
		return err
	}
	db, err := s.db.DB()
	if err != nil {
		return err
	}
	return s.kind.alone(ctx, db, func() error {
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
	files, err := migrations.For(s.kind.name)
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(s.kind.goose, db, files, goose.WithLogger(log.New(io.Discard, "", 0)))
}
