package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/tier"
)

const generated = "<!-- generated from the entries in internal/lockstrategy by make generate -->\n"

// TestStrategyPages compares docs/reference/strategies.md and the page of each family with the
// catalogue. With -update it writes them.
func TestStrategyPages(t *testing.T) {
	tier.Test(t, "it starts the shop for each page")
	const folder = "docs/reference/strategies"
	pages := map[string]string{folder + ".md": strategyIndex(t)}
	for _, family := range families() {
		pages[folder+"/"+slug(family)+".md"] = familyPage(t, family)
	}
	comparePages(t, folder, pages)
}

// families lists the families of the catalogue in display order.
func families() (all []string) {
	for _, e := range lockstrategy.All() {
		if !slices.Contains(all, e.Family) {
			all = append(all, e.Family)
		}
	}
	return all
}

// slug returns the file name of a family's page, without the ending.
func slug(family string) string { return strings.ReplaceAll(strings.ToLower(family), " ", "-") }

// strategyLink returns a link to a strategy's section; folder is the path to docs/reference/strategies.
func strategyLink(folder string, e lockstrategy.Entry) string {
	return fmt.Sprintf("[`%s`](%s%s.md#%s)", e.Name, folder, slug(e.Family), e.Name)
}

// strategyIndex returns the text of docs/reference/strategies.md.
func strategyIndex(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, generated+`# Lock strategies

This page tells a back-end developer which of the %d lock strategies keep the stock right, and what breaks the others.
To pick one for your shop, read [choose a strategy](../guides/choose-a-strategy.md) first.

The column "safe?" is the catalogue's promise on MariaDB with a single Redis server. A strategy is **not safe** if at least
one [condition](glossary.md#condition) breaks it: a rush of buyers (`+"`rush`"+`), a second process of the shop
(`+"`two-processes`"+`), or a [fault](faults.md). A failover to a database replica that lacks the last commits breaks every
strategy. [Databases](databases.md) covers other databases and other kinds of Redis. The [matrix](matrix/README.md) has the
verdict of every run.

Select a strategy with `+"`lock=NAME`"+` in the URL. `+"`lock=Y` means `redis`; `lock=N`, or no `lock`, means `none`"+`. The page of a
strategy lists the servers that it needs; the shop answers 501 without them. `+"`./shop strategies`"+` prints this table, and with `+"`--json`"+` the whole catalogue.

| strategy | safe? | what it does |
|---|---|---|
`, len(lockstrategy.All()))
	for _, e := range lockstrategy.All() {
		safe := safetyCell(e, dialect.MySQL)
		if breaks := brokenBy(e); breaks != "" {
			safe = "**not safe**: " + breaks
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strategyLink("strategies/", e), safe, cell(e.Summary))
	}
	fmt.Fprint(&b, `
## See one break

`+"`setnx-ttl`"+` holds in every rush, and one slow buyer breaks it: buyer 1's lock expires, buyer 2 takes it, and both sell the only
unit. The explorer shows [each step](witnesses/setnx-ttl.md):

`+endOf(t, "explore setnx-ttl --events expire --first", 3))
	return b.String()
}

// cell returns text as a cell of a Markdown table.
func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }

// safetyCell returns Entry.Safety with a warning in bold.
func safetyCell(e lockstrategy.Entry, database string) string {
	text := e.Safety(database)
	if rest, broken := strings.CutPrefix(text, "not safe"); broken {
		return "**not safe**" + rest
	}
	return text
}

// brokenBy lists the conditions that break a strategy on MariaDB, by verdict. A strategy that two
// buyers break without any fault is broken by all conditions, so only the first is listed.
func brokenBy(e lockstrategy.Entry) string {
	breaks := e.Breaks(dialect.MySQL)
	if len(breaks) > 0 && slices.Contains(promise.Crowds(), breaks[0]) {
		breaks = breaks[:1]
	}
	by := map[verdict.Verdict][]string{}
	for _, c := range breaks {
		v := e.Promised(c, dialect.MySQL)
		by[v] = append(by[v], string(c))
	}
	var texts []string
	for _, v := range slices.Sorted(maps.Keys(by)) {
		texts = append(texts, string(v)+" by "+strings.Join(by[v], ", "))
	}
	return strings.Join(texts, "; ")
}

// A familyIntro begins the page of a family.
type familyIntro struct {
	question string // the question that the page answers
	lead     string // introduces the example
	command  string // of shop; its output is the example
	last     int    // the last lines of the output that the page shows; 0: all
	output   string // of a command that needs servers; TestTranscribedPages runs it
}

// familyIntros are the introductions by family.
var familyIntros = map[string]familyIntro{
	"no control": {
		question: "why code without a lock, or with its lock in the wrong place, sells the same unit twice",
		lead:     "Two buyers read the same stock before either writes: see [the shortest schedule](../witnesses/none.md).",
		command:  "explore none", last: 3,
	},
	"in-process": {
		question: "what a lock or a queue in the memory of the shop protects",
		lead:     "The explorer gives each buyer its own process, and so its own mutex: see [the shortest schedule](../witnesses/mutex.md).",
		command:  "explore mutex", last: 3,
	},
	"SQL": {
		question: "how the database alone can keep the stock right, and what each way costs",
		lead:     "No interleaving of two buyers breaks `conditional`:",
		command:  "explore conditional --format mermaid",
	},
	"Redis locks": {
		question: "what a lock in Redis guarantees, from the first SETNX to a fencing token",
		lead:     "Only `fenced` stays correct when its lease expires early. The explorer tries that at every step:",
		command:  "explore fenced --events expire --bound 1 --format mermaid",
	},
	"Redis stock": {
		question: "what happens to a stock that is counted in Redis",
		lead:     "With `redis-decr`, a buyer that crashes after its DECRBY takes the unit with it: see [the shortest schedule](../witnesses/redis-decr.md).",
		command:  "explore redis-decr --events crash", last: 3,
	},
	"coordination": {
		question: "what a lock in ZooKeeper or etcd guarantees",
		lead:     "A pause of the holder breaks a lock in etcd; the fencing token of `etcd-fenced` stops the late holder:",
		command:  "verify --engine local --strategy etcd,etcd-fenced --fault pause",
		output: `...
 strategy     pause
 etcd         oversold
 etcd-fenced  holds
2 cells in 8~s: 2 as promised, 0 contradict, 0 inconclusive
`,
	},
	"throughput": {
		question: "how a shop sells one popular product faster without losing the guarantee",
		lead: "Sell a product with one strategy at a time: `bucketed` and `unit-rows` move its stock into rows of their own. " +
			"No interleaving of two buyers breaks `coalesced`:",
		command: "explore coalesced --format mermaid",
	},
}

// familyPage returns the text of the page of a family.
func familyPage(t *testing.T, family string) string {
	intro := familyIntros[family]
	var b strings.Builder
	fmt.Fprintf(&b, generated+"# Lock strategies: %s\n\nThis page of the [strategies](../strategies.md) tells a back-end developer %s.\n", family, intro.question)
	for _, e := range lockstrategy.All() {
		if e.Family == family {
			writeStrategy(&b, e)
		}
	}
	b.WriteString("\n## Example\n\n" + intro.lead + "\n")
	switch {
	case intro.output != "":
		b.WriteString("\n```console\n$ ./shop " + intro.command + "\n" + intro.output + "```\n")
	case intro.last > 0:
		b.WriteString("\n" + endOf(t, intro.command, intro.last))
	default:
		b.WriteString("\n" + exampleOf(t, intro.command))
	}
	return b.String()
}

// writeStrategy writes one strategy's section. The notes of an entry are for a reader of its code.
func writeStrategy(b *strings.Builder, e lockstrategy.Entry) {
	fmt.Fprintf(b, "\n## %s\n\n", e.Name)
	fmt.Fprintf(b, "**%s.** %s.", sentence(strings.Replace(e.Safety(dialect.MySQL), ": ", ": broken by ", 1)), sentence(e.Summary))
	if len(e.Needs) > 0 {
		fmt.Fprintf(b, " Needs %s.", needs(e))
	}
	file := strings.ReplaceAll(e.Name, "-", "_") + ".go"
	code := "../../../internal/lockstrategy/"
	fmt.Fprintf(b, " [Code](%s%s), [statements](%stestdata/sql/%s.sql)", code, file, code, e.Name)
	for _, w := range e.WitnessSearches() {
		fmt.Fprintf(b, ", [witness%s](../witnesses/%s%s.md)", strings.NewReplacer("-releases-other", " of a wrong release", "-forget", " of a lost key", "-delay-", " of a delay ", "-check", " the check").Replace(w.Suffix), e.Name, w.Suffix)
	}
	b.WriteString(".\n\n")
	line := func(label, text string) {
		if text != "" {
			fmt.Fprintf(b, "- **%s**: %s\n", label, text)
		}
	}
	line("Guarantees", e.Guarantees)
	switch {
	case e.HowItBreaks == "":
		line("Breaks", sentence(e.BreaksWhen)+".")
	case len(e.Breaks(dialect.MySQL)) == 0:
		line("Breaks", sentence(e.BreaksWhen)+". "+e.HowItBreaks)
	default: // HowItBreaks repeats BreaksWhen at length
		line("Breaks", e.HowItBreaks)
	}
	line("Cost", e.Cost)
	line("Source", e.Source)
}

// sentence returns text with a capital letter at the beginning.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// exampleOf runs a command of shop and returns it with its output in Markdown.
func exampleOf(t *testing.T, command string) string {
	t.Helper()
	return asMarkdown(command, outputOf(t, command, 0))
}

// endOf runs a command that finds a break. It returns the command with the last lines of its output in Markdown.
func endOf(t *testing.T, command string, lines int) string {
	t.Helper()
	all := strings.SplitAfter(outputOf(t, command, exitBroken), "\n")
	return fmt.Sprintf("```console\n$ ./shop %s | tail -%d\n%s```\n", command, lines, strings.Join(all[len(all)-1-lines:], ""))
}

// asMarkdown returns a command and its output in Markdown.
func asMarkdown(command, output string) string {
	if strings.HasPrefix(output, "sequenceDiagram") {
		return "```\n$ ./shop " + command + "\n```\n\n```mermaid\n" + output + "```\n"
	}
	return "```\n$ ./shop " + command + "\n" + output + "```\n"
}
