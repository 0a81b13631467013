// Package quantile finds the value below which a share of measurements lies.
//
// It imports nothing but the standard library, because locktest, which other programs import, uses it.
package quantile

import "math"

// rounding is more than the rounding error when a share such as 0.99 is multiplied by a whole number.
const rounding = 1e-9

// Of returns the quantile q (0 to 1) of sorted values by the nearest rank: the smallest value such that at
// least the share q of the values is not above it. 0.5 is the median and 1 the maximum. Of returns the zero
// value if there are no values.
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
