package main

import (
	"encoding/json"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/lockstrategy"
)

func strategiesCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "strategies",
		Short: "List the lock strategies: what each does, and when it breaks",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if asJSON {
				out := json.NewEncoder(c.OutOrStdout())
				out.SetIndent("", "  ")
				out.SetEscapeHTML(false)
				return out.Encode(lockstrategy.All())
			}
			t := table.NewWriter()
			t.SetOutputMirror(c.OutOrStdout())
			t.SetStyle(table.StyleLight)
			t.Style().Format.Header = text.FormatDefault
			t.SetColumnConfigs([]table.ColumnConfig{
				{Name: "family", AutoMerge: true, WidthMax: 12, WidthMaxEnforcer: text.WrapSoft},
				{Name: "does", WidthMax: 46, WidthMaxEnforcer: text.WrapSoft},
				{Name: "breaks when", WidthMax: 38, WidthMaxEnforcer: text.WrapSoft},
			})
			t.AppendHeader(table.Row{"family", "name", "does", "breaks when", "needs"})
			for _, e := range lockstrategy.All() {
				var needs []string
				for _, n := range e.Needs {
					needs = append(needs, string(n))
				}
				t.AppendRow(table.Row{e.Family, e.Name, e.Summary, e.BreaksWhen, strings.Join(needs, ", ")})
			}
			t.Render()
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "the whole catalogue as JSON")
	return c
}
