package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/require"
	"github.com/oversell/oversell/internal/shoptest"
)

//go:generate go test -run TestCommandPages -update .

// TestCommandPages compares the pages of the commands with their help. With -update it writes them.
func TestCommandPages(t *testing.T) {
	for _, variable := range []string{"SHOP_DB_URL", "SHOP_REDIS_URL", "SHOP_REDLOCK_URLS", "SHOP_ZOOKEEPER_HOSTS", "SHOP_ETCD_HOSTS", "SHOP_ADDR", progressEnv} {
		t.Setenv(variable, "") // otherwise its value would be a flag's default
	}
	const folder = "../../docs/reference/commands"
	pages := map[string]string{folder + ".md": commandIndex(t)}
	for _, c := range newRoot().Commands() {
		if c.IsAvailableCommand() {
			pages[folder+"/"+c.Name()+".md"] = commandPage(t, c)
		}
	}
	golden.Folder(t, folder, pages)
}

const generatedPage = "<!-- go generate ./cmd/shop -->\n"

// commandPage returns the page of a command and its subcommands. testdata/pages has the example, which
// TestTranscribedPages runs, and the details that the help does not have.
func commandPage(t *testing.T, c *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s# shop %s\n\nThis page shows command-line users how to %s.\n", generatedPage, c.Name(), strings.ToLower(c.Short[:1])+c.Short[1:])
	if guide, err := filepath.Rel("docs/reference/commands", page(c)); err == nil && guide != c.Name()+".md" {
		fmt.Fprintf(&b, "Background: [%s](%s).\n", filepath.Base(guide), guide)
	}
	writeCommand(&b, c)
	for _, sub := range c.Commands() {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n", sub.CommandPath(), sub.Short)
		writeCommand(&b, sub)
	}
	return b.String() + "\n" + shoptest.Read(t, "cmd/shop/testdata/pages/"+c.Name()+".txt")
}

// shopInExample matches the name of the program in an example, but not in the path of a URL.
var shopInExample = regexp.MustCompile(`(?m)(^|[^/\w])shop `)

// writeCommand writes the usage, the examples and the flags of one command.
func writeCommand(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\nUsage: `./%s`\n\n```sh\n%s\n```\n", c.UseLine(), shopInExample.ReplaceAllString(strings.ReplaceAll(c.Example, "  ", ""), "$1./shop "))
	if _, codes, ok := strings.Cut(c.Long, "Exit codes: "); ok {
		fmt.Fprintf(b, "\nExit codes: %s\n", strings.Join(strings.Fields(codes), " "))
	}
	groups, _ := flagGroups(c, true)
	var shared []string
	for _, g := range groups {
		if slices.Contains([]string{underServers, underShop, underOutput}, g.heading) {
			shared = append(shared, sharedFlags(g, flagsUnder(c.Root(), "rush", g.heading))...) // rush has every shared flag
			continue
		}
		before := "\n"
		if g.heading != underOwn {
			before += g.heading + ":\n\n"
		}
		writeFlags(b, before, g.flags)
	}
	if shared != nil {
		fmt.Fprintf(b, "\n[Shared flags](../commands.md#shared-flags): %s.\n", strings.Join(shared, "; "))
	}
}

// flagsUnder returns the flags of a command under a heading of --help-all.
func flagsUnder(root *cobra.Command, command, heading string) *pflag.FlagSet {
	c, _, err := root.Find([]string{command})
	if err != nil {
		panic(err) // a misspelled name
	}
	groups, _ := flagGroups(c, true)
	return groups[slices.IndexFunc(groups, func(g flagGroup) bool { return g.heading == heading })].flags
}

// sharedFlags names the shared flags that a command has under a heading. If the command lacks only a
// few, sharedFlags names the heading and the missing flags.
func sharedFlags(has flagGroup, all *pflag.FlagSet) []string {
	var present, absent []string
	all.VisitAll(func(f *pflag.Flag) {
		to := &present
		if has.flags.Lookup(f.Name) == nil {
			to = &absent
		}
		*to = append(*to, "`--"+f.Name+"`")
	})
	switch {
	case present == nil:
		return nil
	case absent == nil:
		return []string{"all under *" + has.heading + "*"}
	case len(absent) < len(present):
		return []string{"all under *" + has.heading + "* except " + strings.Join(absent, ", ")}
	}
	return []string{strings.Join(present, ", ")}
}

func writeFlags(b *strings.Builder, before string, flags *pflag.FlagSet) {
	if !flags.HasFlags() {
		return
	}
	b.WriteString(before)
	flags.VisitAll(func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		usage, given, ok := strings.Cut(usage, " (default: ")
		value := strings.Trim(f.DefValue, "[]")
		if ok {
			value, _, _ = strings.Cut(given, ")")
		}
		fmt.Fprintf(b, "- `%s`: %s", strings.TrimSpace("--"+f.Name+" "+name), strings.TrimSuffix(usage, "."))
		if !slices.Contains([]string{"", "0", "0s", "false"}, value) {
			fmt.Fprintf(b, " (default: %s)", value)
		}
		b.WriteString("\n")
	})
}

// commandIndex returns the page that lists the commands and their shared flags.
func commandIndex(t *testing.T) string {
	root := newRoot()
	type row struct{ Use, Page, Task string }
	type group struct {
		Heading string
		Lines   []row
	}
	page, err := template.New("commands.tmpl").Funcs(template.FuncMap{
		"groups": func() (all []group) {
			for _, g := range commandGroups(root) {
				one := group{Heading: g.heading}
				for _, l := range g.lines {
					one.Lines = append(one.Lines, row{l.use, strings.Fields(l.use)[0], l.task})
				}
				all = append(all, one)
			}
			other := group{Heading: "Other"}
			for _, name := range otherCommands(root) {
				if c, _, _ := root.Find([]string{name}); c.IsAvailableCommand() {
					other.Lines = append(other.Lines, row{name, name, c.Short})
				}
			}
			return append(all, other)
		},
		"flags": func(command, heading string) string {
			var b strings.Builder
			writeFlags(&b, "", flagsUnder(root, command, heading))
			return b.String()
		},
		"wrong": func(command ...string) string {
			var stderr bytes.Buffer
			if code := run(t.Context(), command, &stderr, &stderr); code != exitHarness {
				t.Errorf("exit %d", code)
			}
			return stderr.String()
		},
	}).ParseFiles("testdata/pages/commands.tmpl")
	require.NoError(t, err)
	var text strings.Builder
	require.NoError(t, page.Execute(&text, root))
	return strings.TrimSuffix(text.String(), "\n")
}
