package system

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/oversell/oversell/internal/judge/ci/result"
)

// gitHub shows annotations at the lines of the files, the step's summary, and a comment at the pull
// request (docs.github.com, "Workflow commands for GitHub Actions").
func gitHub() System {
	return System{
		Name:    "GitHub",
		Present: func(env Env) bool { return env("GITHUB_ACTIONS") == "true" },
		Root:    func(env Env) string { return env("GITHUB_WORKSPACE") },
		Publish: func(ctx context.Context, p Publication) []error {
			return []error{annotate(p), stepSummary(p), outputs(p), comment(ctx, p)}
		},
	}
}

// Limits of GitHub: annotations of each level in a step, and bytes of a step's summary.
const (
	mostAnnotations = 10
	mostSummary     = 1 << 20
)

// An annotation is a message at a line of a file.
type annotation struct {
	level, file string
	line        int
	title, text string
}

// String returns the workflow command.
func (a annotation) String() string {
	var properties []string
	if a.file != "" {
		properties = append(properties, "file="+escapeProperty(a.file), fmt.Sprintf("line=%d", max(a.line, 1)))
	}
	properties = append(properties, "title="+escapeProperty(a.title))
	return fmt.Sprintf("::%s %s::%s", a.level, strings.Join(properties, ","), escapeData(a.text))
}

// escapeData and escapeProperty escape as the runner's own toolkit does (actions/toolkit, command.ts).
func escapeData(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

func escapeProperty(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escapeData(text))
}

// annotations returns the annotations for the checks that do not hold, the most urgent first. Annotations for
// broken rules come before annotations for source lines.
func annotations(r result.Result) (all []annotation) {
	var sources []annotation
	for _, status := range []result.Status{result.Broken, result.Error, result.Inconclusive} {
		for _, c := range r.With(status) {
			level := "error"
			if status == result.Inconclusive || status == result.Broken && !r.Fails(c) {
				level = "warning"
			}
			title := fmt.Sprintf("%s: %s", c.Name, status)
			if c.Change != "" {
				title += fmt.Sprintf(" (%s)", c.Change)
			}
			text := c.Why
			if c.Witness != nil {
				text += "\nReplay: " + c.Witness.Command
			}
			all = append(all, annotation{level, c.File, c.Line, title, text})
			for _, s := range c.Sources {
				sources = append(sources, annotation{level, s.File, s.Line, title, "The program's log names this line: " + s.Text + "\n" + c.Why})
			}
		}
	}
	return append(all, sources...)
}

func annotate(p Publication) error {
	shown := map[string]int{}
	hidden := 0
	for _, a := range annotations(p.Result) {
		if shown[a.level]++; shown[a.level] > mostAnnotations {
			hidden++
			continue
		}
		if _, err := fmt.Fprintln(p.Log, a); err != nil {
			return err
		}
	}
	if hidden > 0 {
		return fmt.Errorf("%d more annotations are left out: GitHub shows %d of a level in a step; the summary has all", hidden, mostAnnotations)
	}
	return nil
}

// stepSummary appends the summary to the step's summary. It shortens it to the bytes that GitHub still allows.
func stepSummary(p Publication) error {
	path := p.Env("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	room := int64(mostSummary)
	if info, err := os.Stat(path); err == nil {
		room -= info.Size()
	}
	const note = "\nThe rest is left out: GitHub limits a step's summary to 1 MiB. The file summary.md has it.\n"
	text := cut(p.Summary, int(max(room, 0)), note)
	if int64(len(text)) > room {
		return fmt.Errorf("no summary: the step's summary has no room left of its %d bytes", mostSummary)
	}
	return appended(path, text)
}

func outputs(p Publication) error {
	path := p.Env("GITHUB_OUTPUT")
	if path == "" {
		return nil
	}
	return appended(path, fmt.Sprintf("exit=%d\nheadline=%s\nfolder=%s\n", p.Result.Exit, p.Result.Headline(), p.Folder))
}

func appended(path, text string) error {
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}
