package rush

import (
	"math"
	"strings"
	"testing"

	"github.com/oversell/oversell/internal/expect"
	"github.com/oversell/oversell/internal/judge/verdict"
)

// TestAddWave: a row contains the sums of its waves and the verdict of the worst one.
func TestAddWave(t *testing.T) {
	waveOf := func(promise, got verdict.Verdict) Result {
		return Result{Strategy: "any", Promise: promise, Verdict: got, Records: 10, P99MS: 5, PerSecond: 100, Outcomes: Outcomes{Sold: 10}}
	}
	for _, c := range []struct {
		name  string
		waves []Result
		want  verdict.Verdict
		worst string
	}{
		{"all hold", []Result{waveOf(verdict.Holds, verdict.Holds), waveOf(verdict.Holds, verdict.Holds)}, verdict.Holds, "a"},
		{"one proves nothing", []Result{waveOf(verdict.Holds, verdict.Holds), waveOf(verdict.Holds, verdict.Inconclusive)}, verdict.Inconclusive, "b"},
		{"one breaks", []Result{waveOf(verdict.Holds, verdict.Inconclusive), waveOf(verdict.Holds, verdict.Lost), waveOf(verdict.Holds, verdict.Drifted)}, verdict.Lost, "b"},
		{"the promised break is seen once", []Result{waveOf(verdict.Oversold, verdict.Holds), waveOf(verdict.Oversold, verdict.Oversold)}, verdict.Oversold, "b"},
		{"another break than the promised one", []Result{waveOf(verdict.Oversold, verdict.Oversold), waveOf(verdict.Holds, verdict.Stalled)}, verdict.Stalled, "b"},
	} {
		var r Report
		for i, wave := range c.waves {
			r.AddWave(string(rune('a'+i)), wave)
		}
		row, n := r.Results[0], int64(len(c.waves))
		if len(r.Results) != 1 || row.Verdict != c.want || !strings.HasPrefix(row.Reason, c.worst+": ") || row.Waves.All != len(c.waves) {
			t.Errorf("%s: %+v, %+v", c.name, row, row.Waves)
		}
		if row.Records != 10*n || row.Sold != 10*n || row.P99MS != 5 || math.Abs(row.PerSecond-100) > 0.001 {
			t.Errorf("%s: %+v", c.name, row)
		}
	}
}

func TestGrows(t *testing.T) {
	line := func(n int, at func(i int) float64) (values []int) {
		for i := range n {
			values = append(values, int(at(i)))
		}
		return values
	}
	noise := func(i int) float64 { return float64(i * 7 % 5) }
	for name, c := range map[string]struct {
		values []int
		want   bool
	}{
		"one a wave":          {line(8, func(i int) float64 { return float64(10 + i) }), true},
		"a leak under noise":  {line(100, func(i int) float64 { return 20 + 0.3*float64(i) + noise(i) }), true},
		"noise":               {line(100, noise), false},
		"a pool":              {line(100, func(i int) float64 { return 64 - 64*math.Exp(-float64(i)/4) }), false},
		"once":                {line(100, func(i int) float64 { return float64(10 + i/50) }), false},
		"grows and goes back": {line(100, func(i int) float64 { return float64(min(i, 100-i)) }), false},
		"too few":             {line(7, func(i int) float64 { return float64(i) }), false},
		"none":                {nil, false},
	} {
		expect.Equal(t, grows(c.values), c.want, name)
	}
}

// TestSentences: the use of a process is not compared with that of its successor after a restart.
func TestSentences(t *testing.T) {
	var g Growth
	for i := range 16 {
		g.add(0, use{goroutines: 10, descriptors: 20 + i, started: 1})
		g.add(1, use{goroutines: 10 + i, descriptors: 20, started: i / 2})
	}
	got := g.Sentences()
	if len(got) != 2 || !strings.HasSuffix(got[0], "; the descriptors grow") || strings.Contains(got[1], "grow") || !strings.Contains(got[1], "process 2, from the first of 2 samples") {
		t.Errorf("%q", got)
	}
}
