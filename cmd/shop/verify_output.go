package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verify"
)

// verifyOutput is output with the flags that verify had before --report: --json
// takes a file there, too, and --junit, --markdown and --html are hidden.
type verifyOutput struct {
	output
	old [4]string // paths, in the order of oldReports
}

// oldReports are the flags of a format each, with its ending.
func oldReports() [4]struct{ flag, ending string } {
	return [4]struct{ flag, ending string }{{"json", ".json"}, {"junit", ".xml"}, {"markdown", ".md"}, {"html", ".html"}}
}

func (o *verifyOutput) register(c *cobra.Command) {
	o.registerReport(c)
	flags := c.Flags()
	flags.Var((*jsonFlag)(&o.old[0]), "json", "print JSON")
	flags.Lookup("json").NoOptDefVal = "true"
	for i, old := range oldReports() {
		if i > 0 {
			flags.StringVar(&o.old[i], old.flag, "", "the same as --report, whatever the ending; - is the terminal")
			_ = flags.MarkHidden(old.flag) // it is there
		}
	}
}

// typed returns the command as it was typed, without the flags of its output.
func typed(c *cobra.Command) string {
	text := c.CommandPath()
	c.Flags().Visit(func(f *pflag.Flag) {
		value := " " + strings.Trim(f.Value.String(), "[]")
		switch {
		case slices.Contains([]string{"report", "json", "junit", "markdown", "html", "history"}, f.Name):
			return
		case f.Value.Type() == "bool":
			value = strings.TrimSuffix("="+f.Value.String(), "=true")
		}
		text += " --" + f.Name + value
	})
	return text
}

func (o *verifyOutput) check(others map[string]string) error {
	for i, old := range oldReports() {
		if o.old[i] == "" {
			continue
		}
		format, err := report.ByEnding(old.ending)
		if err != nil {
			return err
		}
		o.files = append(o.files, report.File{Flag: old.flag, Path: o.old[i], Format: format})
	}
	return o.output.check(others)
}

func (o *verifyOutput) write(c *cobra.Command, r verify.Report) error {
	d, err := r.Document(c.CommandPath())
	if err != nil {
		return err
	}
	return o.output.write(c, d, r.Table)
}

// jsonFlag is a file for JSON, or standard output: "--json" alone is that, and
// so is "-".
type jsonFlag string

var _ pflag.Value = (*jsonFlag)(nil)

func (f *jsonFlag) String() string { return string(*f) }

func (f *jsonFlag) Type() string { return "bool" } // in the help: it takes no value there

func (f *jsonFlag) Set(text string) error {
	switch text {
	case "true":
		text = "-"
	case "false":
		text = ""
	}
	*f = jsonFlag(text)
	return nil
}

// joinJSON makes "verify --json FILE" one argument, "--json=FILE". A flag that may
// stand alone takes its value in no other way, and FILE would be an argument of
// verify, which has none.
func joinJSON(args []string) []string {
	if len(args) == 0 || args[0] != "verify" {
		return args
	}
	joined := slices.Clone(args)
	for i := 0; i+1 < len(joined) && joined[i] != "--"; i++ {
		if next := joined[i+1]; joined[i] == "--json" && (next == "-" || !strings.HasPrefix(next, "-")) {
			joined = slices.Replace(joined, i, i+2, "--json="+next)
		}
	}
	return joined
}
