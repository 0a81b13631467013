package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/engine"
	"github.com/oversell/oversell/internal/lockstrategy"
)

func migrateCommand() *cobra.Command {
	var engines engineFlags
	c := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of --db up to date",
		Long: `Bring the schema of --db up to date and say which version it has. The other
commands do so as well when they start; this one is for a user with more rights
than the shop's own. Several may run at once.`,
		Example: `  shop migrate --db mysql://root:secret@db:3306/shop`,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) (err error) {
			config, err := engines.config(c, lockstrategy.DefaultSettings())
			if err != nil {
				return err
			}
			if config.DB == "" {
				return errors.New("--db is missing: the other engines migrate by themselves; give mysql://user:password@host:3306/database")
			}
			e, err := engine.Open(c.Context(), config) // it migrates
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, e.Close()) }()
			version, err := e.SchemaVersion(c.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "schema version %d\n", version)
			return err
		},
	}
	engines.register(c)
	return c
}
