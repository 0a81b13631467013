package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/version"
)

func versionCommand() *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "version",
		Short: "Show the version and the build of this program",
		Long: `Show the version of this program, the commit that it was built from, the Go toolchain, and the
operating system. A build in a clone names its commit and any uncommitted changes.`,
		Example: `  shop version
  shop version --json`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			b := version.Current()
			return out.write(c, report.Document{
				Command: c.CommandPath(), Title: "The build of the program", Lead: b.Version, Value: b,
			}, func(w io.Writer, _ bool) error {
				_, err := fmt.Fprintln(w, b)
				return err
			})
		},
	}
	out.register(c)
	setHelp(c, "docs/README.md")
	return c
}
