package ci

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/report"
)

// An entry is the content of one file in the cache folder (--cache): the result of one search.
type entry struct {
	Schema int
	Commit string
	At     time.Time
	Check  result.Check
	Case   report.Case // stored here, since result.json does not contain it
}

var entryName = regexp.MustCompile(`^[0-9a-f]{64}\.json$`)

func (c Config) entryFile(fingerprint string) string {
	return filepath.Join(c.Cache, fingerprint+".json")
}

// kept returns the stored result of a search with the same fingerprint, or nil. It also returns nil if the
// check broke in the baseline, since the breaking schedule of the baseline must then run again.
func (c Config) kept(fingerprint string, j *appJob) *result.Check {
	if c.Cache == "" || fingerprint == "" || c.Baseline.Broke(j.name()) {
		return nil
	}
	text, err := os.ReadFile(c.entryFile(fingerprint))
	if err != nil {
		return nil
	}
	var e entry
	if err := json.Unmarshal(text, &e); err != nil || e.Schema != result.Schema || e.Check.Fingerprint != fingerprint {
		return nil // an unreadable entry only costs one more search
	}
	check := e.Check
	check.Case = e.Case
	check.Unchanged = &result.Unchanged{Commit: e.Commit, At: e.At}
	check.Change, check.ChangeWhy = "", ""
	check.Seconds = 0
	if check.Witness != nil {
		j.show(&check, *check.Witness)
	}
	c.Baseline.Compare(&check, result.Replay{})
	return &check
}

// keep stores a result that is complete and proves something. If it cannot store it, a later run only takes longer.
func (c Config) keep(ctx context.Context, check result.Check) {
	proves := check.Complete && (check.Status == result.Holds || check.Status == result.Broken && check.Witness != nil)
	if c.Cache == "" || check.Fingerprint == "" || !proves || ctx.Err() != nil {
		return
	}
	e := entry{Schema: result.Schema, Commit: head(ctx, c.Root), At: time.Now(), Check: check, Case: check.Case}
	var text bytes.Buffer
	err := report.JSON(&text, e)
	if err == nil {
		err = os.MkdirAll(c.Cache, 0o777)
	}
	if err == nil {
		err = report.Replace(c.entryFile(check.Fingerprint), text.Bytes())
	}
	if err != nil {
		c.Warn("--cache: the result is not kept: %s", oneLine(err))
	}
}
