package web

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/oversell/oversell/internal/purchase"
)

type metrics struct {
	registry *prometheus.Registry
	buys     *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	waited   *prometheus.HistogramVec
	sections *prometheus.SummaryVec
	inFlight prometheus.Gauge
}

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
			Name: "shop_section_seconds", Help: "Time from the buyer's turn until its answer; of sold buys, in the last 10 minutes. A section that outlasts its lease may end as lock_lost instead.",
			Objectives: map[float64]float64{0.5: 0.01, 0.99: 0.001, 0.999: 0.0001},
		}, []string{"strategy"}),
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

// turnedAway counts a buy that was refused because too many buys were in flight.
func (m *metrics) turnedAway(strategy string) {
	m.buys.WithLabelValues(strategy, string(purchase.Busy)).Inc()
}

func (m *metrics) called() { m.inFlight.Inc() }

func (m *metrics) returned(strategy string, r purchase.Receipt, outcome purchase.Outcome, took, inside time.Duration) {
	m.inFlight.Dec()
	if r.Replayed {
		m.buys.WithLabelValues(strategy, "replayed").Inc()
		return
	}
	m.buys.WithLabelValues(strategy, string(outcome)).Inc()
	m.seconds.WithLabelValues(strategy).Observe(took.Seconds())
	if outcome == purchase.Sold {
		m.waited.WithLabelValues(strategy).Observe(r.Waited.Seconds())
		m.sections.WithLabelValues(strategy).Observe(max(0, inside-r.Waited).Seconds())
	}
}
