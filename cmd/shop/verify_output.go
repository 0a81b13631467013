package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/judge/report"
	"github.com/oversell/oversell/internal/judge/verify"
)

// verifyOutput adds the older flags of `shop verify` to output: --json may name a file, and the hidden
// --junit, --markdown and --html do so too.
type verifyOutput struct {
	output
	old [4]string // paths, in the order of oldReports
}

// oldReports returns the older flags, each with the file ending of the format that it writes.
func oldReports() [4]struct{ flag, ending string } {
	return [4]struct{ flag, ending string }{{"json", ".json"}, {"junit", ".xml"}, {"markdown", ".md"}, {"html", ".html"}}
}

func (o *verifyOutput) register(c *cobra.Command) {
	addFlags(c, underOutput, func(flags *pflag.FlagSet) {
		o.registerReport(flags)
		flags.Var((*jsonFlag)(&o.old[0]), "json", "JSON on standard output")
		flags.Lookup("json").NoOptDefVal = "true"
		for i, old := range oldReports() {
			if i > 0 {
				flags.StringVar(&o.old[i], old.flag, "", "`file` for the result, with any ending; -: standard output")
				_ = flags.MarkHidden(old.flag) // fails only for an unknown flag
			}
		}
	})
}

// typed returns the command as the user typed it, without the flags of its output.
func typed(c *cobra.Command) string {
	ofOutput := []string{"report", "json", "junit", "markdown", "html", "history"}
	return c.CommandPath() + given(c.Flags(), slices.DeleteFunc(flagNames(c.Flags()), func(name string) bool { return slices.Contains(ofOutput, name) }))
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
	return o.output.write(c, r.Document(c.CommandPath()), r.Table)
}

// jsonFlag is a file for JSON. "--json" alone and "-" mean standard output.
type jsonFlag string

var _ pflag.Value = (*jsonFlag)(nil)

func (f *jsonFlag) String() string { return string(*f) }

func (f *jsonFlag) Type() string { return "bool" } // so that the help shows no value

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

// joinJSON turns "verify --json FILE" into "verify --json=FILE". A flag with an optional value takes the value only
// after "=", so FILE would be an argument.
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
