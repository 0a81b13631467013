package draft

import (
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

// A repository is the readable files of a folder.
type repository struct {
	root  fs.FS
	files []string // sorted by depth, then by name
	texts map[string]string
}

const (
	maxFiles    = 20_000
	maxFileSize = 1 << 20 // bytes; larger files are data
)

// skipped matches folders without the program's own code.
var skipped = regexp.MustCompile(`^(?:\..+|node_modules|vendor|bower_components|venv|env|__pycache__|site-packages|dist|build|out|target|obj|coverage|tmp|log|logs|tests?|__tests__|specs?|e2e|testdata|fixtures|docs?|examples?|public|static|assets|frontend|client)$`)

func open(root fs.FS) (*repository, error) {
	r := &repository{root: root, texts: map[string]string{}}
	err := fs.WalkDir(root, ".", func(file string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && file == ".":
			return err
		case err != nil: // skip an unreadable folder
			return fs.SkipDir
		case entry.IsDir() && file != "." && skipped.MatchString(entry.Name()):
			return fs.SkipDir
		case len(r.files) >= maxFiles:
			return fs.SkipAll
		case entry.Type().IsRegular():
			r.files = append(r.files, file)
		}
		return nil
	})
	slices.SortStableFunc(r.files, func(a, b string) int { return strings.Count(a, "/") - strings.Count(b, "/") })
	return r, err
}

func (r *repository) has(name string) bool {
	_, err := fs.Stat(r.root, name)
	return err == nil
}

// first returns the first name of an existing file or folder, or "".
func (r *repository) first(names ...string) string {
	for _, name := range names {
		if r.has(name) {
			return name
		}
	}
	return ""
}

// text returns the content of a file; "" if it cannot be read or is too large.
func (r *repository) text(name string) string {
	if text, known := r.texts[name]; known {
		return text
	}
	text := ""
	if info, err := fs.Stat(r.root, name); err == nil && info.Mode().IsRegular() && info.Size() <= maxFileSize {
		if content, err := fs.ReadFile(r.root, name); err == nil {
			text = string(content)
		}
	}
	r.texts[name] = text
	return text
}

// match returns the files whose path matches a pattern of path.Match. A pattern without a slash matches
// files at the top only; "**/" before it matches in every folder.
func (r *repository) match(patterns ...string) (files []string) {
	for _, file := range r.files {
		for _, pattern := range patterns {
			name := file
			if rest, deep := strings.CutPrefix(pattern, "**/"); deep {
				pattern, name = rest, path.Base(file)
			}
			if matched, _ := path.Match(pattern, name); matched {
				files = append(files, file)
				break
			}
		}
	}
	return files
}

// search returns the first match of an expression in the files, with its file; nil if there is none.
func (r *repository) search(files []string, expression *regexp.Regexp) (file string, groups []string) {
	for _, file := range files {
		if groups := expression.FindStringSubmatch(r.text(file)); groups != nil {
			return file, groups
		}
	}
	return "", nil
}

// groups returns the first group of each match of an expression.
func groups(expression *regexp.Regexp, text string) (all []string) {
	for _, m := range expression.FindAllStringSubmatch(text, -1) {
		all = append(all, m[1])
	}
	return all
}

// endsIn reports whether a file's path ends with a word of the list `ends`.
func endsIn(file, ends string) bool {
	return slices.ContainsFunc(strings.Fields(ends), func(end string) bool { return strings.HasSuffix(file, end) })
}

func (r *repository) json(name string, v any) bool {
	return json.Unmarshal([]byte(r.text(name)), v) == nil
}

func (r *repository) sourceFiles() []string {
	return r.match("**/*.js", "**/*.mjs", "**/*.cjs", "**/*.ts", "**/*.php", "**/*.go", "**/*.py", "**/*.rb", "**/*.java", "**/*.kt",
		"**/*.properties", "**/application*.yml", "**/application*.yaml")
}
