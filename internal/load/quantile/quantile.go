// Package quantile finds the value below which a share of measurements lies.
//
// It imports nothing but the standard library, because locktest, which other
// programs import, uses it.
package quantile

import "math"

// rounding is what a share such as 0.99 times a whole number may be too large
// by, as floating point has it.
const rounding = 1e-9

// Of returns the value at the share q of sorted values, 0 to 1, by the nearest
// rank: the smallest value that is not below a share q of them. 0.5 is the
// median, 1 the largest. The zero value when there are none.
//
// Source: Hyndman and Fan, Sample Quantiles in Statistical Packages, The
// American Statistician 50 (1996), definition 1.
func Of[N any](sorted []N, q float64) N {
	if len(sorted) == 0 {
		var none N
		return none
	}
	rank := int(math.Ceil(q*float64(len(sorted)) - rounding))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
