package scan

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/oversell/oversell/internal/explore"
	"github.com/oversell/oversell/internal/explore/app"
)

// notInNames matches the characters of a request that a folder's name leaves out.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// longestName is the maximum length of a request in the name of a folder.
const longestName = 40

// folder returns a unique name for the pair's folder, such as "post-buy_post-cancel".
func (s *scan) folder(p *Pair) string {
	var names []string
	for _, name := range p.Requests {
		name = notInNames.ReplaceAllString(strings.ToLower(name), "-")
		names = append(names, strings.Trim(name[:min(len(name), longestName)], "-"))
	}
	first := strings.Join(names, "_")
	name := first
	for n := 2; slices.Contains(s.saved, name); n++ {
		name = fmt.Sprintf("%s-%d", first, n)
	}
	s.saved = append(s.saved, name)
	return name
}

// save writes an oversell.yaml and the replay of a broken pair to a folder in Save, if Save is set.
func (s *scan) save(p *Pair, x *explore.Explorer, buyers []app.Request, unmatched []string) error {
	if s.Save == "" {
		return nil
	}
	folder := filepath.Join(s.Save, s.folder(p))
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	except := slices.DeleteFunc(slices.Clone(s.app.Except), func(e string) bool { return slices.Contains(unmatched, e) })
	text, err := s.app.Derived(folder, buyers, except)
	if err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	file, replay := filepath.Join(folder, "oversell.yaml"), filepath.Join(folder, "replay")
	text = append([]byte("# shop scan wrote this: "+p.Name()+"\n"), text...)
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	if err := x.Save(p.Search.Witness, replay); err != nil {
		return fmt.Errorf("--save: %w", err)
	}
	p.Replay = s.Command(file, replay)
	return nil
}
