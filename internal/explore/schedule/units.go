package schedule

import (
	"slices"
	"strconv"
	"strings"
)

// Units lists how many units each buyer asks for. The list repeats: with 1 and 2, buyer 3 asks for 1.
// If the list is empty, each buyer asks for one.
type Units []int64

// Of returns the number of units that a buyer asks for. Buyers count from 1.
func (u Units) Of(buyer int) int64 {
	if len(u) == 0 {
		return 1
	}
	return u[(buyer-1)%len(u)]
}

// Mixed reports whether two buyers may ask for different numbers.
func (u Units) Mixed() bool {
	return slices.ContainsFunc(u, func(n int64) bool { return n != u[0] })
}

// String returns the numbers separated by commas, or one number if all are equal: "1,2" or "1".
func (u Units) String() string {
	if !u.Mixed() {
		return strconv.FormatInt(u.Of(1), 10)
	}
	var texts []string
	for _, n := range u {
		texts = append(texts, strconv.FormatInt(n, 10))
	}
	return strings.Join(texts, ",")
}

// parseUnits parses the text that String returns.
func parseUnits(text string) (u Units) {
	for _, number := range strings.Split(text, ",") {
		n, _ := strconv.ParseInt(number, 10, 64)
		u = append(u, n)
	}
	if !u.Mixed() {
		return u[:1]
	}
	return u
}
