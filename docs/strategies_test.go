package docs_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/oversell/oversell/internal/engine/dialect"
	"github.com/oversell/oversell/internal/golden"
	"github.com/oversell/oversell/internal/judge/promise"
	"github.com/oversell/oversell/internal/judge/verdict"
	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/tier"
)

// TestStrategyPages compares docs/reference/strategies.md and the page of each family with the catalogue.
func TestStrategyPages(t *testing.T) {
	tier.Test(t, "it starts the shop for each page")
	for _, e := range lockstrategy.All() {
		if e.Summary == "" {
			t.Fatalf("%s has no summary in internal/lockstrategy/catalogue.json: run make generate", e.Name)
		}
	}
	pages := map[string]string{"reference/strategies.md": page(t, "strategies.md", template.FuncMap{"count": func() int { return len(lockstrategy.All()) }, "strategies": strategyRows})}
	for _, family := range families() {
		path := "strategies/" + slug(family) + ".md"
		pages["reference/"+path] = page(t, path, template.FuncMap{"family": func() string { return strategiesOf(family) }})
	}
	golden.Folder(t, "reference/strategies", pages)
}

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

// strategyLink returns a link from a page in docs/reference to a strategy's section.
func strategyLink(e lockstrategy.Entry) string {
	return fmt.Sprintf("[`%s`](strategies/%s.md#%s)", e.Name, slug(e.Family), e.Name)
}

func strategyRows() string {
	var rows []string
	for _, e := range lockstrategy.All() {
		safe := safetyCell(e, dialect.MySQL)
		if breaks := brokenBy(e); breaks != "" {
			safe = "**not safe**: " + breaks
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |", strategyLink(e), safe, strings.ReplaceAll(e.Summary, "|", `\|`)))
	}
	return strings.Join(rows, "\n")
}

// safetyCell returns Entry.Safety with a warning in bold.
func safetyCell(e lockstrategy.Entry, database string) string {
	text := e.Safety(database)
	if rest, broken := strings.CutPrefix(text, "not safe"); broken {
		return "**not safe**" + rest
	}
	return text
}

// brokenBy lists the first conditions that break a strategy on MariaDB, by verdict. If two buyers
// without a fault break it, every condition does, so brokenBy lists only the first.
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
		names := by[v]
		if n := len(names) - mostBreaks; n > 0 {
			names = append(names[:mostBreaks:mostBreaks], fmt.Sprintf("%d more", n))
		}
		texts = append(texts, string(v)+" by "+strings.Join(names, ", "))
	}
	return strings.Join(texts, "; ")
}

// mostBreaks is the maximum number of conditions per verdict in the index. The matrix lists all.
const mostBreaks = 2

// needWords are the words for needs whose names do not explain themselves.
var needWords = map[string]string{
	dialect.NamedLocks: "a server with named locks", dialect.SkipLocked: "SKIP LOCKED", string(lockstrategy.NeedsRedlock): "Redlock nodes",
}

func strategiesOf(family string) string {
	var b strings.Builder
	for _, e := range lockstrategy.All() {
		if e.Family == family {
			writeStrategy(&b, e)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// writeStrategy writes one strategy's section, without the Notes of its entry.
func writeStrategy(b *strings.Builder, e lockstrategy.Entry) {
	fmt.Fprintf(b, "\n## %s\n\n", e.Name)
	safety := sentence(e.Safety(dialect.MySQL))
	if first, by, broken := strings.Cut(safety, ": "); broken {
		safety = first + ": `" + by + "` breaks it"
	}
	fmt.Fprintf(b, "**%s.** %s.", safety, sentence(e.Summary))
	if len(e.Needs) > 0 {
		var words []string
		for _, need := range e.Needs {
			words = append(words, cmp.Or(needWords[string(need)], string(need)))
		}
		fmt.Fprintf(b, " Needs %s.", strings.Join(words, ", "))
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

func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
