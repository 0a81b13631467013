package app

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"
)

// derivedKeys are the keys of the original that a derived file replaces or leaves out.
var derivedKeys = []string{"name", "folder", "buyer", "buyers", "requests", "never", "rules", "sold", "except"}

// Derived returns the text of a file for the given folder, about the same program with other buyers. A
// run is correct if it ends like a serial order: the buyers one after the other. The list `except` has
// the allowed differences.
func (a *App) Derived(folder string, buyers []Request, except []string) ([]byte, error) {
	text, err := os.ReadFile(a.file)
	if err != nil {
		return nil, err
	}
	var old yaml.MapSlice
	if err := yaml.Unmarshal(text, &old); err != nil {
		return nil, err
	}
	whole, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	home, err := filepath.Rel(whole, a.Dir)
	if err != nil {
		home = a.Dir
	}
	var list []yaml.MapSlice
	for _, r := range buyers {
		one := yaml.MapSlice{{Key: "request", Value: r.Method + " " + r.URL}}
		if len(r.Header) > 0 {
			one = append(one, yaml.MapItem{Key: "header", Value: r.Header})
		}
		if r.Body != "" {
			one = append(one, yaml.MapItem{Key: "body", Value: r.Body})
		}
		list = append(list, one)
	}
	made := yaml.MapSlice{{Key: "name", Value: a.Name}, {Key: "folder", Value: filepath.ToSlash(home)}}
	for _, item := range old {
		if key, _ := item.Key.(string); !slices.Contains(derivedKeys, key) {
			made = append(made, item)
		}
	}
	made = append(made, yaml.MapItem{Key: "buyers", Value: list}, yaml.MapItem{Key: "sold", Value: anySuccess})
	if len(except) > 0 {
		made = append(made, yaml.MapItem{Key: "except", Value: except})
	}
	return yaml.Marshal(made)
}
