package naming

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/oversell/oversell/internal/explore/schedule"
)

// UpToTable returns the beginning of a statement, up to and including its first table.
func UpToTable(statement string) string {
	if at := table.FindStringIndex(statement); at != nil && at[1] < len(statement) {
		return statement[:at[1]] + " ..."
	}
	return statement
}

// Skeleton returns a statement with ? in place of its strings and numbers.
func Skeleton(statement string) string {
	return notSkeleton.ReplaceAllString(statement, "?")
}

// Values returns the positions of the strings and numbers in a statement, as pairs of offsets in bytes.
func Values(statement string) [][]int { return notSkeleton.FindAllStringIndex(statement, -1) }

var notSkeleton = regexp.MustCompile(`'(?:[^']|'')*'|\b\d[\w.-]*|` + named)

// longestName is the maximum length of a command in a result, in characters.
const longestName = 120

// Short shortens a command to longestName characters, for a line with several commands.
func Short(text string) string {
	if all := []rune(text); len(all) > longestName {
		return string(all[:longestName]) + "…"
	}
	return text
}

// Void returns a schedule.Void, for a run to be discarded. The reason (`why`) is the same text in every run. The
// details describe this run, without the values that differ between runs.
func Void(why, details string, args ...any) error {
	return schedule.Void{Why: why, Details: Plain(fmt.Sprintf(details, args...))}
}

// Buyers returns "buyer 1", or "buyers 1, 2 and 3".
func Buyers(ids []int) string {
	if len(ids) == 1 {
		return "buyer " + List(ids, "and")
	}
	return "buyers " + List(ids, "and")
}

// List returns "1", "1 and 2", or "1, 2 and 3". The parameter `last` is the word before the last number, such as "and".
func List(ids []int, last string) string {
	var all []string
	for _, id := range ids {
		all = append(all, fmt.Sprint(id))
	}
	if n := len(all) - 1; n > 0 {
		return strings.Join(all[:n], ", ") + " " + last + " " + all[n]
	}
	return strings.Join(all, "")
}
