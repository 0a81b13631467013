package runner

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// block is a directive of a Jenkinsfile: a section with children, or a step with its argument.
type block struct {
	name, argument string
	children       []block
}

var token = regexp.MustCompile(`'(?:[^'\\]|\\.)*'|[A-Za-z]+|[{}()]|\n`)

// parseJenkinsfile reads the part of the declarative syntax that docs/ci/Jenkinsfile uses: sections,
// and steps with one quoted argument. Anything else is an error.
func parseJenkinsfile(text string) ([]block, error) {
	if rest := strings.TrimSpace(token.ReplaceAllString(text, "")); rest != "" {
		return nil, fmt.Errorf("unknown syntax %q", rest)
	}
	tokens := token.FindAllString(text, -1)
	blocks, rest, err := parseBlocks(tokens)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("a } too many")
	}
	return blocks, err
}

func parseBlocks(tokens []string) (blocks []block, rest []string, err error) {
	for len(tokens) > 0 && tokens[0] != "}" {
		if tokens[0] == "\n" {
			tokens = tokens[1:]
			continue
		}
		b := block{name: tokens[0]}
		if strings.ContainsAny(b.name, "'{()") {
			return nil, nil, fmt.Errorf("%s where a directive begins", b.name)
		}
		for tokens = tokens[1:]; len(tokens) > 0 && tokens[0] != "\n" && tokens[0] != "{" && tokens[0] != "}"; tokens = tokens[1:] {
			if tokens[0] != "(" && tokens[0] != ")" {
				b.argument += strings.Trim(tokens[0], "'")
			}
		}
		if len(tokens) > 0 && tokens[0] == "{" {
			if b.children, tokens, err = parseBlocks(tokens[1:]); err != nil {
				return nil, nil, err
			}
			if len(tokens) == 0 {
				return nil, nil, fmt.Errorf("%s has no }", b.name)
			}
			tokens = tokens[1:]
		}
		blocks = append(blocks, b)
	}
	return blocks, tokens, nil
}

// jenkins runs the pipeline: every step of the stages until one fails, and then the section post.
func (m machine) jenkins(t *testing.T, repository string) result {
	t.Helper()
	blocks, err := parseJenkinsfile(read(t, filepath.Join(repository, "Jenkinsfile")))
	if err != nil {
		t.Fatal(err)
	}
	env := m.job("CI=true", "JENKINS_URL=http://127.0.0.1/", "BUILD_NUMBER=1", "JOB_NAME=shop", "WORKSPACE="+repository)
	start := time.Now()
	var r result
	var execute func(section string, blocks []block)
	execute = func(section string, blocks []block) {
		for _, b := range blocks {
			switch section + "/" + b.name {
			case "/pipeline", "pipeline/stages", "stages/stage", "stage/steps", "pipeline/post", "post/always":
				execute(b.name, b.children)
			case "pipeline/agent":
				if b.argument != "any" {
					t.Errorf("agent %s", b.argument)
				}
			case "steps/sh":
				if r.code == 0 {
					var out string
					r.code, out = m.run(t, repository, env, "sh", "-xe", "-c", b.argument)
					r.log += out
				}
			case "always/junit":
				r.summary = read(t, filepath.Join(repository, b.argument)) // the page of a build shows the tests
			case "always/archiveArtifacts":
				r.files = filepath.Join(repository, strings.TrimSuffix(b.argument, "/**"))
			default:
				t.Errorf("unknown directive %s in %s", b.name, section)
			}
		}
	}
	execute("", blocks)
	r.took = time.Since(start)
	return r
}

func TestJenkins(t *testing.T) {
	t.Parallel()
	job := read(t, filepath.Join(root(), "docs/ci/Jenkinsfile"))
	for mode := range verdicts {
		t.Run(mode, func(t *testing.T) {
			newMachine(t).jenkins(t, node.repository(t, mode, "Jenkinsfile", job)).judge(t, mode)
		})
	}
}

func TestParseJenkinsfileRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"pipeline {\n agent any\n":              "no }",
		"pipeline {\n}\n}\n":                    "too many",
		"pipeline {\n sh \"double quotes\"\n}":  "unknown syntax",
		"pipeline {\n 'text'\n}":                "where a directive begins",
		"pipeline {\n environment { A = '1' }}": "unknown syntax",
	} {
		if _, err := parseJenkinsfile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}
