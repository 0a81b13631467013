package naming

import "regexp"

// UpToTable returns the beginning of a statement, up to its first table.
func UpToTable(statement string) string {
	if at := table.FindStringIndex(statement); at != nil && at[1] < len(statement) {
		return statement[:at[1]] + " ..."
	}
	return statement
}

// Skeleton returns a statement without its strings and numbers.
func Skeleton(statement string) string {
	return notSkeleton.ReplaceAllString(statement, "?")
}

// Values returns the places of the strings and numbers in a statement, as pairs of offsets in bytes.
func Values(statement string) [][]int { return notSkeleton.FindAllStringIndex(statement, -1) }

var notSkeleton = regexp.MustCompile(`'(?:[^']|'')*'|\b\d[\w.-]*|` + named)

// longestName is the maximum length of a command in a result, in characters.
const longestName = 120

// Short shortens a command for a line that names several.
func Short(text string) string {
	if all := []rune(text); len(all) > longestName {
		return string(all[:longestName]) + "…"
	}
	return text
}
