package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/fault"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/trial"
	"github.com/oversell/oversell/internal/nearest"
)

// helpAll is the flag that shows every flag of a command.
const helpAll = "help-all"

// Annotations of a command and of its flags.
const (
	pageOf    = "page"    // of a command: the page of the documentation to read next
	headingOf = "heading" // of a flag: its group in --help-all
	isCommon  = "common"  // of a flag: --help shows it
)

// Headings of --help-all, in display order.
const (
	underOwn     = "Flags"
	underProgram = "Program under test (--app)"
	underServers = "Servers"
	underShop    = "Shop"
	underOutput  = "Output"
)

// helpWidth is the longest line of a help text.
const helpWidth = 90

// setHelp sets the page that a command's help links to, and the flags that --help shows. If `common` is
// empty, --help shows all flags.
func setHelp(c *cobra.Command, page string, common ...string) {
	c.Annotations = map[string]string{pageOf: page}
	for _, name := range common {
		if err := c.Flags().SetAnnotation(name, isCommon, nil); err != nil {
			panic(err) // a misspelled name in this program; every run would end here
		}
	}
}

func addFlags(c *cobra.Command, heading string, add func(*pflag.FlagSet)) {
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	add(set)
	set.VisitAll(func(f *pflag.Flag) { f.Annotations = map[string][]string{headingOf: {heading}} })
	c.Flags().AddFlagSet(set)
}

// showDefault sets the text that the help shows as a flag's default. It does not change the default itself.
func showDefault(flags *pflag.FlagSet, name, text string) { flags.Lookup(name).DefValue = text }

// A flagGroup is the flags under one heading of a help text.
type flagGroup struct {
	heading string
	flags   *pflag.FlagSet
}

// flagGroups returns the flags that a help text shows, by heading. The result `more` reports whether
// the command has other flags.
func flagGroups(c *cobra.Command, all bool) (groups []flagGroup, more bool) {
	marked := false
	visit := func(do func(f *pflag.Flag, common bool)) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if _, common := f.Annotations[isCommon]; !f.Hidden && !slices.Contains([]string{"help", helpAll, "version"}, f.Name) {
				do(f, common)
			}
		})
	}
	visit(func(_ *pflag.Flag, common bool) { marked = marked || common })
	for _, heading := range []string{underOwn, underProgram, underServers, underShop, underOutput} {
		groups = append(groups, flagGroup{heading, pflag.NewFlagSet("", pflag.ContinueOnError)})
	}
	visit(func(f *pflag.Flag, common bool) {
		if marked && !all && !common {
			more = true
			return
		}
		heading := underOwn
		if under := f.Annotations[headingOf]; under != nil && all {
			heading = under[0]
		}
		i := slices.IndexFunc(groups, func(g flagGroup) bool { return g.heading == heading })
		groups[i].flags.AddFlag(f)
	})
	return groups, more
}

// padding matches the spaces with which text.WrapSoft fills a line.
var padding = regexp.MustCompile(`(?m) +$`)

// printHelp writes the help of a command, with all its flags or with the common ones.
func printHelp(w io.Writer, c *cobra.Command, all bool) {
	section := func(heading, text string) {
		if text = strings.TrimRight(text, "\n"); text != "" {
			fmt.Fprintf(w, "\n%s:\n%s\n", heading, text)
		}
	}
	if c.IsAdditionalHelpTopicCommand() {
		fmt.Fprintln(w, c.Long)
		return
	}
	fmt.Fprintln(w, padding.ReplaceAllString(text.WrapSoft(cmp.Or(c.Long, c.Short+"."), helpWidth), ""))
	section("Usage", "  "+c.UseLine())
	section("Examples", c.Example)
	for _, g := range commandGroups(c) {
		var lines strings.Builder
		for _, l := range g.lines {
			fmt.Fprintf(&lines, "  %-16s %s\n", l.use, l.task)
		}
		section(g.heading, lines.String())
	}
	groups, more := flagGroups(c, all)
	for _, g := range groups {
		section(g.heading, g.flags.FlagUsagesWrapped(helpWidth))
	}
	fmt.Fprintln(w)
	if more {
		fmt.Fprintf(w, "All flags: %s --%s\n", c.CommandPath(), helpAll)
	}
	if others := otherCommands(c); others != nil {
		fmt.Fprintf(w, "Also: %s, completion. See: shop help NAME.\n", strings.Join(others, ", "))
	}
	fmt.Fprintln(w, "More: "+page(c))
}

// A commandGroup is the commands under one heading of a help text.
type commandGroup struct {
	heading string
	lines   []commandLine
}

type commandLine struct{ use, task string }

// rootGroups are the commands of shop, grouped by the reader's task. A command may be in several groups.
var rootGroups = []commandGroup{
	{"Your shop", []commandLine{
		{"init", ""},
		{"scan", ""},
		{"explore --app", "Run every interleaving of two buyers' commands, in any language"},
		{"ci", ""},
		{"verify --target", "Send bursts to a running service, and compare answers with records"},
	}},
	{"This shop", []commandLine{{"serve", ""}, {"rush", ""}, {"explore", ""}, {"verify", ""}, {"bench", ""}}},
	{"Learn", []commandLine{{"play", ""}, {"exercise", ""}}},
}

// commandGroups returns the commands that a help text lists. A line without a task of its own gets the
// command's Short text.
func commandGroups(c *cobra.Command) (groups []commandGroup) {
	if c.HasParent() {
		var lines []commandLine
		for _, sub := range subcommands(c) {
			lines = append(lines, commandLine{sub.Name(), sub.Short})
		}
		return []commandGroup{{"Commands", lines}}
	}
	for _, g := range rootGroups {
		g.lines = slices.Clone(g.lines)
		for i, l := range g.lines {
			sub, _, err := c.Find(strings.Fields(l.use)[:1])
			if err != nil {
				panic(err) // a misspelled name
			}
			g.lines[i].task = cmp.Or(l.task, sub.Short)
		}
		groups = append(groups, g)
	}
	return groups
}

// otherCommands names the commands and topics of shop that are in no group.
func otherCommands(c *cobra.Command) []string {
	if c.HasParent() {
		return nil
	}
	return slices.DeleteFunc(subcommandNames(c), func(name string) bool {
		return slices.ContainsFunc(rootGroups, func(g commandGroup) bool {
			return slices.ContainsFunc(g.lines, func(l commandLine) bool { return l.use == name })
		})
	})
}

// page returns the documentation page that the help of a command links to. A command without a page has that
// of its parent.
func page(c *cobra.Command) string {
	for ; c.HasParent() && c.Annotations[pageOf] == ""; c = c.Parent() {
	}
	return c.Annotations[pageOf]
}

func faultsTopic() *cobra.Command {
	var b strings.Builder
	b.WriteString("The faults of shop verify --fault. shop rush --strike also injects those with a *.\n\n")
	ofRush := trial.FaultNames(fault.OfRush())
	for _, f := range fault.All() {
		mark := " "
		if slices.Contains(ofRush, string(f.Name)) {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %-18s %s", mark, f.Name, f.About)
		if f.On != "" {
			b.WriteString("; on " + f.On)
		}
		b.WriteString("\n")
	}
	others := slices.DeleteFunc(promise.Columns(), func(c promise.Condition) bool { return slices.Contains(promise.Faults(), c) })
	fmt.Fprintf(&b, "\n--fault also takes conditions without a fault: %s.\nMore: docs/reference/faults.md", strings.Join(texts(others), ", "))
	return &cobra.Command{Use: "faults", Short: "List the faults", Long: b.String()}
}

// subcommands returns the commands and help topics that a user can name after c.
func subcommands(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand()
	})
}

func subcommandNames(c *cobra.Command) (names []string) {
	for _, sub := range subcommands(c) {
		names = append(names, sub.Name())
	}
	return names
}

// onlySubcommands makes c print its help if it has no arguments, and refuse other arguments.
func onlySubcommands(c *cobra.Command) {
	c.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(c, args[0])
	}
	c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
}

func unknownCommand(c *cobra.Command, name string) error {
	return nearest.Unknown("command", name, subcommandNames(c), c.CommandPath()+" --help")
}

// helpCommand prints the help of the command that its arguments name.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Show the help of a command",
		ValidArgsFunction: func(c *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
			about, _, err := c.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return matching(subcommandNames(about), given), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				return unknownCommand(about, rest[0])
			}
			return about.Help()
		},
	}
}

// flagError rewords an error of the flag library: it names the flag, the expected value and the given one.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	var incomplete *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		dashes := "--"
		if unknown.GetSpecifiedShortnames() != "" {
			dashes = "-"
		}
		return nearest.Unknown("flag", dashes+unknown.GetSpecifiedName(), names, c.CommandPath()+" --"+helpAll)
	case errors.As(err, &incomplete):
		return fmt.Errorf("--%s needs a value; see %s --%s", incomplete.GetFlag().Name, c.CommandPath(), helpAll)
	case errors.As(err, &invalid):
		if want := valueOf[invalid.GetFlag().Value.Type()]; want != "" {
			return fmt.Errorf("--%s must be %s (got %q)", invalid.GetFlag().Name, want, invalid.GetValue())
		}
	}
	return err
}

var valueOf = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number",
	"duration": "a duration such as 500ms, 10s or 1m", "intSlice": "whole numbers such as 1,16,256", "int64Slice": "whole numbers such as 1,2,3",
}
