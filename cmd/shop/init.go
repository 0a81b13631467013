package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/explore/draft"
	"github.com/oversell/oversell/internal/judge/trial"
)

func initCommand() *cobra.Command {
	var output string
	var force bool
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Draft the file that describes your own shop",
		Long: `Draft oversell.yaml, the file of shop explore --app and shop verify --app, from the files of the
repository in DIR (default: the current folder). It reads files only.

Values that may be wrong are marked GUESS, with the reason. Values that the repository does not
contain are marked FILL_IN, and no command runs before you have replaced them.`,
		Example: `  shop init ../mine
  shop explore --app ../mine/oversell.yaml --app-check`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fmt.Errorf("init takes one folder (got %d arguments)", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			r, err := draft.Save(dir, output, force, c.OutOrStdout())
			if err != nil {
				return err
			}
			if r.Path == "-" {
				r.Print(c.ErrOrStderr())
				return nil
			}
			r.Print(c.OutOrStdout())
			fmt.Fprintf(c.OutOrStdout(), "next: shop explore --app %s --app-check\n", trial.ShellWord(r.Path))
			return nil
		},
	}
	c.Flags().StringVar(&output, "output", "", "`file` to write, in DIR; - for standard output (default: oversell.yaml)")
	c.Flags().BoolVar(&force, "force", false, "replace an existing file")
	setHelp(c, "docs/guides/test-your-shop.md")
	return c
}
