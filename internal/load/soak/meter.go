package soak

import (
	"slices"
	"sync"
	"time"

	"github.com/oversell/oversell/internal/load/quantile"
)

// A meter counts the answers since the last read.
type meter struct {
	mu     sync.Mutex
	waits  []time.Duration // of successful buyers
	others int
}

func (m *meter) sold(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.waits = append(m.waits, took)
}

func (m *meter) refused() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.others++
}

// read returns the counts and resets them.
func (m *meter) read() (sold, refused int, p99 time.Duration) {
	m.mu.Lock()
	waits, refused := m.waits, m.others
	m.waits, m.others = nil, 0
	m.mu.Unlock()
	slices.Sort(waits)
	return len(waits), refused, quantile.Of(waits, 0.99)
}
