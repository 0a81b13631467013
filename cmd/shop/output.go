package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/judge/report"
)

// output writes a command's result. Every command with a result has these flags, and checks them before it
// runs.
type output struct {
	json  bool          // JSON on standard output instead of the text
	paths []string      // values of --report, until check reads them
	files []report.File // the files of all flags
}

func (o *output) register(c *cobra.Command) {
	addFlags(c, underOutput, func(flags *pflag.FlagSet) {
		flags.BoolVar(&o.json, "json", false, "JSON on standard output")
		o.registerReport(flags)
	})
	c.PreRunE = func(*cobra.Command, []string) error { return o.check(nil) }
}

func (o *output) registerReport(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.paths, "report", nil, "`file` for the result, with ending "+report.Endings()+"; repeatable")
}

// check returns an error if a report file cannot be written; it is called before anything runs. The parameter
// `others` maps further flags to the paths of their files.
func (o *output) check(others map[string]string) error {
	for _, path := range o.paths {
		if strings.TrimSuffix(path, filepath.Ext(path)) == "-" {
			return fmt.Errorf("--report needs a file name (got %q); --json prints to standard output", path)
		}
		format, err := report.ByEnding(path)
		if err != nil {
			return fmt.Errorf("--report: %w", err)
		}
		o.files = append(o.files, report.File{Flag: "report", Path: path, Format: format})
	}
	o.paths = nil
	return report.Check(o.files, others)
}

// write prints the result and writes every file. It prints text, unless a flag sends a report to standard
// output.
func (o *output) write(c *cobra.Command, d report.Document, text func(w io.Writer, colour bool) error) error {
	out := c.OutOrStdout()
	err := report.Save(o.files, d, out)
	switch {
	case o.json:
		return cmp.Or(err, report.JSON(out, d.Value))
	case o.toStdout():
		return err
	}
	return cmp.Or(err, text(out, isTerminal(out) && os.Getenv("NO_COLOR") == ""))
}

func (o *output) printsText() bool { return !o.json && !o.toStdout() }

func (o *output) toStdout() bool {
	return slices.ContainsFunc(o.files, func(f report.File) bool { return f.Path == "-" })
}

// noArguments rejects arguments. For a file name it suggests --report.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case c.Flags().Lookup("report") != nil && isReport(args[0]):
		return fmt.Errorf("%s takes no arguments; to write a file use --report %s", c.Name(), args[0])
	}
	return fmt.Errorf("%s takes no arguments (got %q)", c.Name(), args[0])
}

func isReport(path string) bool {
	_, err := report.ByEnding(path)
	return err == nil
}
