package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandNotes adds details to the pages of some commands. The help does not have them.
var commandNotes = map[string]string{
	"rush": `
- ` + "`--strike`" + ` injects a fault in the middle of each burst. The shops are then child processes with short leases. A verdict ` + "`holds`" + `
  without proof that the fault took effect is ` + "`inconclusive`" + `. After the fault, another burst buys the rest.
- ` + "`--duration`" + ` needs less ` + "`--stock`" + ` than the buyers can buy in that time.
- ` + "`--for`" + ` restocks and sends one burst after the other, of each strategy in turn: all buyers, then a quarter, a half and three
  quarters of buyers and stock. With ` + "`--duration`" + `, a wave is a steady load of that length instead of a burst. A row has the sums of its
  waves, the longest times, and the verdict of the worst wave. A broken promise is also printed at once. The row is inconclusive if a
  wave proved nothing and none broke.
- ` + "`--kill`" + ` needs two processes. In the second round of waves, and then at each interval, it injects the fault ` + "`crash`" + ` into one wave of
  each strategy: SIGKILL of a shop process while a buyer is about to write. The promise for ` + "`crash`" + ` applies to these waves.
- Between the waves, ` + "`--for`" + ` measures the goroutines, descriptors and memory of each idle process. Goroutines or descriptors that rise
  in every quarter of the samples are reported as growing, which does not affect the exit code.
- With ` + "`--target`" + `, a strategy without a promise is expected to hold.
- ` + "`leftover`" + `, ` + "`records`" + `, ` + "`oversold`" + ` and [` + "`drift`" + `](../glossary.md#drift) come from the database. ` + "`sold`" + `, ` + "`sold out`" + `, ` + "`busy`" + ` and ` + "`errors`" + `
  count the buyers' answers, and ` + "`p50`" + ` and ` + "`p99`" + ` are the times until an answer.
`,
	"explore": `
- The search merges equal states. ` + "`--full`" + ` turns this off. Without ` + "`--app`" + `, merging works on the embedded engine, and with
  ` + "`--engine local`" + ` on MariaDB and PostgreSQL.
- Exit code 1 also means that a buyer released another holder's lock, which the catalogue rules out for this strategy.
- Exit code 3 means that the budget ended, that no schedule could contain the events, or, with ` + "`--app`" + `, that the search
  discarded runs or found only one schedule.
`,
	"ci": `
- The folder has ` + "`result.json`, `summary.md`, `report.html`, `junit.xml`, `oversell.sarif`" + `, a replay file for each break, and on GitLab
  ` + "`gl-code-quality.json`" + `. ` + "`result.json`" + ` has each check's verdict, attempts, witness and fingerprint.
- On GitHub, breaks become annotations at the lines of the file and of the program's stack trace. The summary goes to the step and,
  with ` + "`GITHUB_TOKEN`" + `, to one comment at the pull request. Buildkite shows it as an annotation.
- If a break and an error meet, the exit code is 1. The other checks run to their end.
- ` + "`--baseline`" + ` is the ` + "`result.json`" + ` of a run on main. If it cannot be read, a warning says so, and every break is new.
- A fix is ` + "`fixed`" + ` only if the old witness ran again and the search is complete. Otherwise it is ` + "`unproven`" + `, which does not fail the job.
- ` + "`--shard`" + ` divides the checks, not the schedules of one program. A shard without a check exits with 0.
- ` + "`--cache`" + ` reuses a complete result while the repository, the flags, this program, servers and interpreters stay the same, for programs
  with ` + "`local: true`" + `. Ignored files do not count, except ` + "`.env`" + `.
`,
	"verify": `
- ` + "`--engine local`" + ` runs the explorer on MariaDB, MySQL or PostgreSQL, and then injects every fault. On Galera it runs no explorer.
- ` + "`--quick`" + ` leaves out the burst at two processes.
- ` + "`--app`" + ` searches every schedule, then sends bursts of ` + "`--rush-buyers`" + `. The queries of the file judge each burst.
- ` + "`--target`" + ` sends bursts, closes connections, slows the network, and repeats requests. A strategy without a promise is expected to hold.
- With ` + "`--repeat`" + `, a cell is as promised only if every run of it is. The explorer runs once.
`,
	"serve": `
- A burst from the live page deletes the records of the product that it buys. The page keeps the last 50 runs until the shop ends.
- Anyone who can reach the shop can play at ` + "`/play`" + `. The shop runs at most 30 games, each in a process of its own.
- The classroom holds 300 phones, and at most 150 from one address. A further phone replaces an idle one.
`,
}

// commandExamples are examples with their output. TestTranscribedPages runs them.
var commandExamples = map[string]string{
	"rush": `$ ./shop rush --strategy setnx-ttl
...
 setnx-ttl  0  100  0  0  100  100~  0~  0  34~ ms  54~ ms  2467~  holds *
...
setnx-ttl: 100 units sold of 100 stocked, 0 left; * breaks under pause, slow-section, short-lease and 4 more...
`,
	"explore": `$ ./shop explore none | tail -3
oversold: 2 units sold of 1 stocked
buyer 1: sold, buyer 2: sold
again: shop explore none --replay v1:none:b2:s1:1*2.2*5.1*3
`,
	"verify": `$ ./shop verify --quick --strategy conditional
...
6 cells in 1~s: 6 as promised, 0 contradict, 0 inconclusive
`,
	"ci": `$ ./shop ci --app examples/python/for-update.yaml --out "$(mktemp -d)"
examples/python/for-update.yaml: holds (8~ schedules, 4.5~ s): explored 8~ of 8~ schedules (commuting commands in one order), none breaks
shop ci: 1 holds
results: ...
`,
	"init": `$ ./shop init examples/python --output - 2>/dev/null | grep ^run
run: python3 shop.py   # GUESS: because shop.py starts a server
`,
	"version": `$ ./shop version
shop ... (...go..., ...)
`,
	"bench": `$ ./shop bench --strategy for-update --clients 1 --rounds 1 --round 300ms
...
 Sales a second, sales/s  1 client
 for-update                  2,085~
...
`,
	"strategies": `$ ./shop strategies --json | head -4
[
  {
    "name": "none",
    "family": "no control",
`,
	"migrate": `$ ./shop migrate --db "sqlite://$(mktemp -u)"
schema version 3
`,
	"exercise": `$ ./shop exercise hint 1 1
Two buyers may both have read the same stock before either of them writes. Which condition must hold at the moment of the write?
`,
	"play": `$ echo "1 1 2 2 2 2 2 1 1 1" | ./shop play --level sell-twice | tail -1
Next: shop play --level lose-an-update
`,
	"serve": `$ ./shop serve &
...
listening on http://127.0.0.1:8080
$ curl http://127.0.0.1:8080/healthz; echo
{"status":"ok"}
`,
}

// TestCommandPages compares the pages of the commands with their help. With -update it writes them.
func TestCommandPages(t *testing.T) {
	for _, variable := range []string{"SHOP_DB_URL", "SHOP_REDIS_URL", "SHOP_REDLOCK_URLS", "SHOP_ZOOKEEPER_HOSTS", "SHOP_ETCD_HOSTS", "SHOP_ADDR", progressEnv} {
		t.Setenv(variable, "") // a flag's default
	}
	const folder = "docs/reference/commands"
	pages := map[string]string{folder + ".md": commandIndex(t)}
	for _, c := range newRoot().Commands() {
		if c.IsAvailableCommand() {
			pages[folder+"/"+c.Name()+".md"] = commandPage(c)
		}
	}
	comparePages(t, folder, pages)
}

const generatedPage = "<!-- written by go generate ./cmd/shop -->\n"

// commandPage returns the page of a command and its subcommands.
func commandPage(c *cobra.Command) string {
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
	b.WriteString("\n## Example\n\n```console\n" + commandExamples[c.Name()] + "```\n")
	if notes := commandNotes[c.Name()]; notes != "" {
		b.WriteString("\n## Details\n" + notes)
	}
	return b.String()
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

// sharedFlags names the flags of a group among all flags under its heading: the heading if the
// command has all of them, or the heading and the few that it lacks.
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
		return []string{"all of " + has.heading}
	case len(absent) < len(present):
		return []string{"all of " + has.heading + " except " + strings.Join(absent, ", ")}
	}
	return []string{strings.Join(present, ", ")}
}

// writeFlags writes a list of flags, if there are any.
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
	var b strings.Builder
	b.WriteString(generatedPage + `# Commands

This page lists the commands of ` + "`shop`" + ` and the flags that they share, for users of the command line.

| command | task |
|---|---|
`)
	root := newRoot()
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			fmt.Fprintf(&b, "| [`%s`](commands/%s.md) | %s |\n", c.Name(), c.Name(), c.Short)
		}
	}
	b.WriteString("\n`./shop COMMAND --help` shows the common flags, and `--help-all` shows all of them. A wrong name gets a suggestion:\n\n")
	var stderr bytes.Buffer
	if code := run(t.Context(), []string{"explore", "rediss"}, &stderr, &stderr); code != exitHarness {
		t.Errorf("exit %d", code)
	}
	fmt.Fprintf(&b, "```console\n$ ./shop explore rediss; echo \"exit code $?\"\n%sexit code 2\n```\n", stderr.String())
	b.WriteString(`
[Verdicts](verdicts.md#exit-codes) explains the other exit codes.

The shell completes commands, flags, strategies, faults, engines, events, databases and levels.
For bash: ` + "`source <(./shop completion bash)`" + `. Zsh, fish and PowerShell work the same way.

## Shared flags

A name in brackets is an environment variable with the same effect.

Servers:
`)
	writeFlags(&b, "\n", flagsUnder(root, "serve", underServers))
	b.WriteString(`
Without ` + "`--db`" + `, the servers start empty, and their data is deleted at the end. With ` + "`--db`" + `, name running servers:

| server | URL |
|---|---|
| MariaDB, MySQL | ` + "`mysql://user:password@host:3306/database`" + ` |
| Galera | ` + "`mysql://user:password@host1,host2,host3/database`" + ` |
| PostgreSQL | ` + "`postgres://user:password@host:5432/database`" + ` |
| SQLite | ` + "`sqlite:///folder/file.db`" + ` |
| Redis | ` + "`redis://:password@host:6379`" + ` |
| Redis with Sentinel | ` + "`redis+sentinel://host1:26379,host2,host3/mymaster`" + ` |
| Redis Cluster | ` + "`redis+cluster://host1:6379,host2,host3`" + ` |
| ZooKeeper, etcd | ` + "`host1:2181,host2:2181/prefix`" + `; etcd: port 2379; several shops can share the servers under different prefixes |

Shop:
`)
	writeFlags(&b, "\n", flagsUnder(root, "serve", underShop))
	b.WriteString("\nIn `rush` and `verify`, `--sold-out-check` and `--admission` are off by default, because they would answer in place of the strategy.\n\nOutput:\n")
	writeFlags(&b, "\n", flagsUnder(root, "rush", underOutput))
	return b.String()
}
