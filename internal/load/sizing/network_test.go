package sizing

import (
	"math"
	"testing"
)

// TestThroughput: the algorithm meets the known limits of a closed network.
func TestThroughput(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		buyers   int
		delay    float64
		stations []station
		want     float64 // sales a ms
	}{
		{"one buyer waits for nobody", 1, 3, []station{{demand: 1, servers: 1}, {demand: 2, servers: 2}}, 1.0 / 6},
		{"one station that is full", 1000, 5, []station{{demand: 2, servers: 1}}, 0.5},
		{"four servers that are full", 1000, 5, []station{{demand: 2, servers: 4}}, 2},
		{"only delay: Little's law", 10, 5, nil, 2},
		// N/(D (1 + (N-1)/P)), the balanced network (Zahorjan et al., CACM 25(2), 1982).
		{"32 buyers of ten products", 32, 0, []station{{demand: 3, servers: 1, copies: 10}}, 32 / (3 * (1 + 31.0/10))},
	} {
		got, use := throughput(tt.buyers, tt.delay, tt.stations)
		if math.Abs(got/tt.want-1) > 0.01 {
			t.Errorf("%s: %.4f a ms, want %.4f", tt.name, got, tt.want)
		}
		for i, u := range use {
			if u < 0 || u > 1.0001 {
				t.Errorf("%s: station %d is used %.3f", tt.name, i, u)
			}
		}
	}
}
