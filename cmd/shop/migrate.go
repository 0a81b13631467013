package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/lockstrategy"
)

func migrateCommand() *cobra.Command {
	var engines engineFlags
	var out output
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of a database up to date",
		Long: `Bring the schema of --db up to date and print its version. Other commands also do this when they
start. Use this one with a database user that has more privileges than the shop's own. Several
processes may run it at the same time.`,
		Example: `  shop migrate --db mysql://root:secret@db:3306/shop
  shop migrate --db postgres://owner:secret@db:5432/shop`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			config, err := engines.config(c, lockstrategy.DefaultSettings())
			if err != nil {
				return err
			}
			if config.DB == "" {
				return errors.New("--db is missing; name a database, for example mysql://user:password@host:3306/database")
			}
			e, err := engine.Open(c.Context(), config) // brings the schema up to date
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.Close()) }()
			version, err := e.SchemaVersion(c.Context())
			if err != nil {
				return err
			}
			line := fmt.Sprintf("schema version %d", version)
			return out.write(c, report.Document{
				Command: c.CommandPath(), Title: "The schema of the database", Lead: line, Value: map[string]int64{"schema_version": version},
			}, func(w io.Writer, _ bool) error {
				_, err := fmt.Fprintln(w, line)
				return err
			})
		},
	}
	engines.register(c)
	out.register(c)
	setHelp(c, "docs/reference/commands/migrate.md", "db", "json", "report")
	return c
}
