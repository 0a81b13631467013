package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/oversell/oversell/internal/judge/report"
)

// output is where a command's result goes. Its flags are the same on every
// command that has one.
type output struct {
	json  bool          // on standard output, instead of the text
	paths []string      // of --report
	files []report.File // what the flags come to
}

func (o *output) register(c *cobra.Command) {
	c.Flags().BoolVar(&o.json, "json", false, "print JSON")
	o.registerReport(c)
}

func (o *output) registerReport(c *cobra.Command) {
	var forms []string
	for _, f := range report.Formats() {
		forms = append(forms, f.Ending+" ("+f.What+")")
	}
	c.Flags().StringArrayVar(&o.paths, "report", nil, "a `file` for the result, in the format of its ending: "+strings.Join(forms, ", ")+"; may be given again")
}

// check reads the endings, and finds out before anything runs whether the files
// can be written. others are paths that are taken, by their flags.
func (o *output) check(others map[string]string) error {
	for _, path := range o.paths {
		if strings.TrimSuffix(path, filepath.Ext(path)) == "-" {
			return fmt.Errorf("--report: %q is no file; --json prints to stdout", path)
		}
		format, err := report.ByEnding(path)
		if err != nil {
			return fmt.Errorf("--report: %w", err)
		}
		o.files = append(o.files, report.File{Flag: "report", Path: path, Format: format})
	}
	o.paths = nil // they are read
	return report.Check(o.files, others)
}

// write prints the result, as text unless something else is asked for on
// standard output, and writes every file.
func (o *output) write(c *cobra.Command, d report.Document, text func(w io.Writer, colour bool) error) error {
	out := c.OutOrStdout()
	err := report.Save(o.files, d, out)
	switch {
	case o.json:
		return firstOf(err, report.JSON(out, d.Value))
	case o.toStdout():
		return err
	}
	return firstOf(err, text(out, isTerminal(out) && os.Getenv("NO_COLOR") == ""))
}

// printsText tells whether standard output is the text's.
func (o *output) printsText() bool { return !o.json && !o.toStdout() }

// toStdout tells whether a report goes there.
func (o *output) toStdout() bool {
	for _, f := range o.files {
		if f.Path == "-" {
			return true
		}
	}
	return false
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// noArguments refuses them, and says what a path among them was meant for.
func noArguments(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case c.Flags().Lookup("report") != nil && isReport(args[0]):
		return fmt.Errorf("%s takes no arguments; to write a file use --report %s", c.Name(), args[0])
	}
	return fmt.Errorf("%s takes no arguments, and %q is one", c.Name(), args[0])
}

// isReport tells whether a path has the ending of a report.
func isReport(path string) bool {
	_, err := report.ByEnding(path)
	return err == nil
}
