package main

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/oversell/oversell/internal/shoptest"
	"github.com/oversell/oversell/internal/tier"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// everyCommand calls the function do for each command that a user sees, except help topics.
func everyCommand(c *cobra.Command, do func(*cobra.Command)) {
	if !c.Hidden && !c.IsAdditionalHelpTopicCommand() {
		do(c)
	}
	for _, sub := range c.Commands() {
		everyCommand(sub, do)
	}
}

// TestHelp: a help text fits on a screen, links to a page, and has examples that work.
func TestHelp(t *testing.T) {
	t.Parallel()
	commands := 0
	everyCommand(newRoot(), func(c *cobra.Command) {
		commands++
		t.Run(c.CommandPath(), func(t *testing.T) {
			var text bytes.Buffer
			printHelp(&text, c, false)
			if lines := strings.Count(text.String(), "\n"); lines > 30 {
				t.Errorf("the help has %d lines, want at most 30", lines)
			}
			for line := range strings.Lines(text.String()) {
				if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > helpWidth {
					t.Errorf("%d columns, want at most %d: %s", n, helpWidth, line)
				}
			}
			if _, err := os.Stat("../../" + page(c)); err != nil {
				t.Errorf("the help links to no page: %v", err)
			}
			if groups, _ := flagGroups(c, false); c.Runnable() {
				shown := 0
				for _, g := range groups {
					g.flags.VisitAll(func(*pflag.Flag) { shown++ })
				}
				if shown > 5 {
					t.Errorf("the help shows %d flags, want at most 5", shown)
				}
			}
			examples := strings.Split(c.Example, "\n")
			if direct := c.Parent() == nil || c.Parent().Parent() == nil; direct && len(examples) != 2 || len(examples) > 2 {
				t.Errorf("%d examples, want 2", len(examples))
			}
			for _, example := range examples {
				parseExample(t, example)
			}
		})
	})
	if _, err := os.Stat("../../docs/reference/faults.md"); err != nil {
		t.Error(err) // the help topic faults links to this page
	}
	if commands < 15 {
		t.Errorf("only %d commands: the walk does not find all", commands)
	}
}

// parseExample checks the flags and the arguments of an example.
func parseExample(t *testing.T, example string) {
	t.Helper()
	_, line, ok := strings.Cut(example, "shop ")
	if !ok {
		t.Errorf("not a command: %q", example)
		return
	}
	c, args, err := newRoot().Find(joinJSON(strings.Fields(line)))
	if err == nil {
		err = c.ParseFlags(args)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	if err != nil {
		t.Errorf("%s: %v", example, err)
	}
}

// TestFlagUsage: the help of a flag is a noun phrase of at most twelve words.
func TestFlagUsage(t *testing.T) {
	t.Parallel()
	aside := regexp.MustCompile(`\(default:[^)]*\)|\[[^]]*\]`) // a default, an environment variable
	verb := regexp.MustCompile(`\b(is|are|was|were|has|have|had|does|do|may|will)\b`)
	everyCommand(newRoot(), func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			usage := strings.TrimSpace(aside.ReplaceAllString(f.Usage, ""))
			if n := len(strings.Fields(usage)); n == 0 || n > 12 {
				t.Errorf("%s --%s: %d words, want 1 to 12: %s", c.CommandPath(), f.Name, n, usage)
			}
			if found := verb.FindString(usage); found != "" || strings.HasSuffix(usage, ".") {
				t.Errorf("%s --%s: want a noun phrase, without %q: %s", c.CommandPath(), f.Name, found, usage)
			}
		})
	})
}

// TestHelpAll: --help-all shows every flag of a command, under headings.
func TestHelpAll(t *testing.T) {
	t.Parallel()
	everyCommand(newRoot(), func(c *cobra.Command) {
		var stdout, stderr bytes.Buffer
		args := append(strings.Fields(c.CommandPath())[1:], "--"+helpAll)
		if code := run(t.Context(), args, &stdout, &stderr); code != 0 || stderr.Len() > 0 {
			t.Errorf("%s: exit %d, %s", args, code, stderr.String())
		}
		c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(stdout.String(), "--"+f.Name) {
				t.Errorf("%s does not show --%s", args, f.Name)
			}
		})
	})
	var stdout, stderr bytes.Buffer
	run(t.Context(), []string{"rush", "--" + helpAll}, &stdout, &stderr)
	at := -1
	for _, heading := range []string{underOwn, underServers, underShop, underOutput} {
		i := strings.Index(stdout.String(), "\n"+heading+":\n")
		if i <= at {
			t.Errorf("rush --help-all: heading %q is missing or too early", heading)
		}
		at = i
	}
}

// TestCompletion: the shell completes names, also in a list.
func TestCompletion(t *testing.T) {
	tier.Test(t, "starts the command for each case")
	t.Parallel()
	for args, want := range map[string][]string{
		"explore redi":                          {"redis", "redis-get-set", "redis-watch", "redis-decr", "redis-lua", "redisson"},
		"play named":                            {"named-lock"},
		"rush --strategy conditional,optim":     {"conditional,optimistic"},
		"rush --strategy redis,redis":           {"redis,redisson", "redis,redis-get-set", "redis,redis-watch", "redis,redis-decr", "redis,redis-lua"},
		"rush --strike redis-":                  {"redis-restart", "redis-failover"},
		"verify --fault two-proc":               {"two-processes"},
		"verify --engine ":                      {"embedded", "local"},
		"bench --local-db postgres-s":           {"postgres-serializable"},
		"serve --local-redis s":                 {"single", "sentinel"},
		"explore redis --events ex":             {"expire"},
		"explore redis --before ":               {"sold-out-check", "failing-read", "admission"},
		"explore redis --instances ":            {"own", "shared"},
		"serve --log-level d":                   {"debug"},
		"serve --admission o":                   {"off"},
		"play --level sell":                     {"sell-twice"},
		"exercise start 1":                      {"1", "10", "11", "12"},
		"exercise start 1 first --language pyt": {"python"},
		"help exp":                              {"explore"},
		"str":                                   {"strategies"},
	} {
		fields := strings.Split(args, " ")
		out, err := shoptest.Command(t, append([]string{"__completeNoDesc"}, fields...)...).Output()
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		got := lines[:len(lines)-1] // the last line is the directive
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: completes %q, want %q", args, got, want)
		}
	}
}
