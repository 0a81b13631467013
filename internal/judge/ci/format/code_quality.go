package format

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"

	"github.com/oversell/oversell/internal/judge/ci/result"
	"github.com/oversell/oversell/internal/judge/report"
)

const qualityName = "gl-code-quality.json"

// CodeQuality writes GitLab's report on code quality (docs.gitlab.com, "Code Quality", "Code Quality report
// format") into the folder.
func CodeQuality(folder string, r result.Result) error {
	files, err := inJSON(qualityName, qualityOf(r))
	if err != nil {
		return err
	}
	return report.Replace(filepath.Join(folder, files[0].Name), files[0].Text)
}

type (
	qualityIssue struct {
		Description string          `json:"description"`
		CheckName   string          `json:"check_name"`
		Fingerprint string          `json:"fingerprint"` // among issues with the same value, GitLab shows only one
		Severity    string          `json:"severity"`    // info, minor, major, critical or blocker
		Location    qualityLocation `json:"location"`
	}
	qualityLocation struct {
		Path  string       `json:"path"`
		Lines qualityLines `json:"lines"`
	}
	qualityLines struct {
		Begin int `json:"begin"`
	}
)

// qualityOf returns an issue for each check that does not hold. It omits checks without a file, since the
// format requires one.
func qualityOf(r result.Result) []qualityIssue {
	issues := []qualityIssue{}
	for _, c := range r.Checks {
		if c.File == "" || c.Status == result.Holds {
			continue
		}
		name := "oversell/" + string(c.Status)
		severity := "minor"
		switch {
		case c.Status == result.Broken:
			name, severity = *sarifRules[ruleOf(c)].ID, "major"
			if r.Fails(c) {
				severity = "critical"
			}
		case c.Status == result.Error:
			severity = "major"
		}
		hash := sha256.Sum256([]byte(c.Name + "\n" + name))
		issues = append(issues, qualityIssue{c.Why, name, hex.EncodeToString(hash[:16]), severity, qualityLocation{c.File, qualityLines{max(c.Line, 1)}}})
	}
	return issues
}
