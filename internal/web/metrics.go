package web

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/oversell/oversell/internal/lockstrategy"
	"github.com/oversell/oversell/internal/purchase"
)

// metrics are the metrics of /metrics, in a registry of their own.
type metrics struct {
	registry *prometheus.Registry
	buys     *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waited   *prometheus.HistogramVec
	sections *prometheus.SummaryVec
	inFlight prometheus.Gauge

	mu      sync.Mutex
	entered map[holder]time.Time // the holders of locks, until they report the release
}

// A holder is a buyer inside the critical section.
type holder struct{ strategy, product, purchaser, token string }

func newMetrics() *metrics {
	buckets := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		buys: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "shop_buys_total", Help: "Buys that ended, by strategy and outcome; replayed: a sale made before was told of again.",
		}, []string{"strategy", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shop_buy_seconds", Help: "Time of a buy inside its strategy, whatever the outcome.", Buckets: buckets,
		}, []string{"strategy"}),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "shop_lock_wait_seconds", Help: "Time from the call until the buyer had its turn; of sold buys.", Buckets: buckets,
		}, []string{"strategy"}),
		sections: prometheus.NewSummaryVec(prometheus.SummaryOpts{
			Name: "shop_section_seconds", Help: "Time from the grant of a lock until just before its release, in the last 10 minutes.",
			Objectives: map[float64]float64{0.5: 0.01, 0.99: 0.001, 0.999: 0.0001},
		}, []string{"strategy"}),
		entered: map[holder]time.Time{},
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "shop_buys_in_flight", Help: "Buys inside a strategy now.",
		}),
	}
	m.registry.MustRegister(m.buys, m.seconds, m.waited, m.sections, m.inFlight,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// turnedAway counts a buy that was refused at the admission. It took no time inside.
func (m *metrics) turnedAway(strategy string) {
	m.buys.WithLabelValues(strategy, string(purchase.Busy)).Inc()
}

func (m *metrics) called() { m.inFlight.Inc() }

func (m *metrics) returned(strategy string, r purchase.Receipt, outcome purchase.Outcome, took time.Duration) {
	m.inFlight.Dec()
	if r.Replayed {
		m.buys.WithLabelValues(strategy, "replayed").Inc()
		return
	}
	m.buys.WithLabelValues(strategy, string(outcome)).Inc()
	m.seconds.WithLabelValues(strategy).Observe(took.Seconds())
	if outcome == purchase.Sold {
		m.waited.WithLabelValues(strategy).Observe(r.Waited.Seconds())
	}
}

// lockEvent measures the critical section: it begins when a buyer reports that it has the lock, and ends when
// it reports that it is about to release the lock.
func (m *metrics) lockEvent(e lockstrategy.Event) {
	if e.Kind != lockstrategy.Acquired && e.Kind != lockstrategy.Released {
		return
	}
	h := holder{e.Strategy, e.Product, e.Purchaser, e.Token}
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.Kind == lockstrategy.Acquired {
		m.entered[h] = e.At
		return
	}
	if entered, known := m.entered[h]; known {
		m.sections.WithLabelValues(e.Strategy).Observe(e.At.Sub(entered).Seconds())
	}
	delete(m.entered, h)
}
