package quantile_test

import (
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/load/quantile"
)

func TestOf(t *testing.T) {
	counted := func(n int) (sorted []int) {
		for i := range n {
			sorted = append(sorted, i+1)
		}
		return sorted
	}
	for _, c := range []struct {
		name   string
		values int
		q      float64
		want   int
	}{
		{"none", 0, 0.5, 0},
		{"one", 1, 0.99, 1},
		{"the smallest", 200, 0, 1},
		{"the median of an even number", 200, 0.5, 100},
		{"the median of an odd number", 3, 0.5, 2},
		{"a share that is no whole rank", 10, 0.99, 10},
		{"a whole rank", 200, 0.99, 198},
		{"a rank that floating point makes too large", 100, 0.07, 7}, // 0.07*100 is above 7
		{"the largest", 200, 1, 200},
		{"beyond the largest", 200, 2, 200},
	} {
		expect.Equal(t, quantile.Of(counted(c.values), c.q), c.want, c.name, "the value at", c.q, "of", c.values)
	}
}
