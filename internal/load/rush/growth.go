package rush

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/oversell/oversell/internal/load/measure"
	"github.com/oversell/oversell/internal/load/quantile"
)

const sampleEvery = time.Second

// enough is the number of samples that a trend needs: two in each quarter.
const enough = 8

// A use is one sample of an idle shop process.
type use struct {
	goroutines, descriptors, bytes int
	started                        int // start of the process, in seconds of Unix time
}

// A life is the time in which one process ran. A killed process and its successor have separate lives.
type life struct {
	process int
	uses    []use
}

// Growth compares the resources that idle shop processes use during a long rush of several bursts of buyers.
type Growth struct {
	lives []*life
	last  time.Time
}

// Sample measures each process of a shop, at most once a second. Call it when all buyers have their answers. It
// waits until two measurements are equal, for at most two seconds. It ignores a process without these metrics.
func (g *Growth) Sample(ctx context.Context, urls []string) {
	if time.Since(g.last) < sampleEvery {
		return
	}
	g.last = time.Now()
	for process, url := range urls {
		now := useOf(ctx, url)
		for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline) && ctx.Err() == nil; {
			before := now
			time.Sleep(50 * time.Millisecond)
			now = useOf(ctx, url)
			if now.goroutines == before.goroutines && now.descriptors == before.descriptors {
				break
			}
		}
		if now.goroutines > 0 {
			g.add(process, now)
		}
	}
}

func useOf(ctx context.Context, url string) use {
	text := measure.Metrics(ctx, url)
	return use{
		goroutines: int(measure.Metric(text, "go_goroutines")), descriptors: int(measure.Metric(text, "process_open_fds")),
		bytes: int(measure.Metric(text, "process_resident_memory_bytes")), started: int(measure.Metric(text, "process_start_time_seconds")),
	}
}

func (g *Growth) add(process int, now use) {
	for _, l := range g.lives {
		if l.process == process && l.uses[0].started == now.started {
			l.uses = append(l.uses, now)
			return
		}
	}
	g.lives = append(g.lives, &life{process, []use{now}})
}

// Sentences describes the longest life of each process if it has two samples, and each life in which a figure
// grows.
func (g *Growth) Sentences() (all []string) {
	longest := map[int]*life{}
	for _, l := range g.lives {
		if has := longest[l.process]; has == nil || len(l.uses) > len(has.uses) {
			longest[l.process] = l
		}
	}
	for _, l := range g.lives {
		if growing := l.growing(); longest[l.process] == l && len(l.uses) > 1 || growing != "" {
			all = append(all, l.sentence()+growing)
		}
	}
	return all
}

func (l *life) sentence() string {
	const mb = 1 << 20
	first, last := l.uses[0], l.uses[len(l.uses)-1]
	return fmt.Sprintf("idle process %d, from the first of %d samples to the last: %d to %d goroutines, %d to %d descriptors, %d to %d MB",
		l.process+1, len(l.uses), first.goroutines, last.goroutines, first.descriptors, last.descriptors, first.bytes/mb, last.bytes/mb)
}

// growing describes each figure that rises in every quarter of the life. It leaves out the memory, which rises
// until the next garbage collection anyway.
func (l *life) growing() (text string) {
	var goroutines, descriptors []int
	for _, u := range l.uses {
		goroutines, descriptors = append(goroutines, u.goroutines), append(descriptors, u.descriptors)
	}
	if grows(goroutines) {
		text += "; the goroutines grow"
	}
	if grows(descriptors) {
		text += "; the descriptors grow"
	}
	return text
}

// grows reports whether values rise in every quarter of their time: the lower quartile of each quarter
// is above the upper quartile of the previous one. A pool that fills up stops growing, and a leak does
// not. Fewer than eight values never grow.
func grows(values []int) bool {
	if len(values) < enough {
		return false
	}
	before := 0
	for q := range 4 {
		quarter := slices.Sorted(slices.Values(values[q*len(values)/4 : (q+1)*len(values)/4]))
		if q > 0 && quantile.Of(quarter, 0.25) <= before {
			return false
		}
		before = quantile.Of(quarter, 0.75)
	}
	return true
}
