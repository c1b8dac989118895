// Package metrics counts what a bridge does, for Prometheus.
//
// Its one job is to turn what a [bridge.Observer] hears, and the figures of a [bridge.Bridge], into metrics; the
// bridge knows nothing of it. Everything is in a registry of its own, so that several bridges in one process (in
// tests, for instance) don't meet.
//
// # Why calls are counted by server and not by tool
//
// The owner configures the servers, so there are few. The names of tools come from those servers, which may have
// as many as they like, and each would be a time series.
package metrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"codeexec/bridge"
)

// Metrics are the metrics of one bridge. They are its [bridge.Observer].
type Metrics struct {
	registry    *prometheus.Registry
	runs        *prometheus.CounterVec
	runTime     prometheus.Histogram
	interrupted *prometheus.CounterVec
	resets      prometheus.Counter
	calls       *prometheus.CounterVec
	callTime    *prometheus.HistogramVec
}

// New returns metrics that have counted nothing yet. version is that of this program.
func New(version string) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "codeexec_runs_total", Help: "Scripts that have run, by how they ended.",
		}, []string{"status"}),
		runTime: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "codeexec_run_duration_seconds", Help: "How long scripts ran, without the time that they waited for their turn.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 120},
		}),
		interrupted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "codeexec_runs_interrupted_total", Help: "Scripts that were stopped at their time limit or cancelled: by an interrupt, or by a kill where they didn't heed it.",
		}, []string{"by"}),
		resets: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "codeexec_session_resets_total", Help: "Sessions that have lost their variables by a kill, a crash or an exit.",
		}),
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "codeexec_tool_calls_total", Help: "Calls of tools, by server and how they ended. Those of servers that there aren't have no server.",
		}, []string{"server", "outcome"}),
		callTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "codeexec_tool_call_duration_seconds", Help: "How long calls of tools took.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30, 60, 120},
		}, []string{"server"}),
	}
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "codeexec_build_info", Help: "The version that runs; always 1.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	m.registry.MustRegister(
		m.runs, m.runTime, m.interrupted, m.resets, m.calls, m.callTime, build,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	// Known from the start, so that rates can be taken from the first one on.
	for _, status := range []bridge.Status{bridge.StatusSuccess, bridge.StatusError, bridge.StatusTimeout, bridge.StatusCancelled} {
		m.runs.WithLabelValues(string(status))
	}
	m.interrupted.WithLabelValues(byInterrupt)
	m.interrupted.WithLabelValues(byKill)
	return m
}

const (
	byInterrupt = "interrupt"
	byKill      = "kill"
)

// Watch adds the figures of b. It must be called at most once.
func (m *Metrics) Watch(b *bridge.Bridge) {
	gauge := func(name, help string, value func(bridge.Stats) float64) {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return value(b.Stats()) }))
	}
	gauge("codeexec_sessions", "Sessions that are alive.", func(s bridge.Stats) float64 { return float64(s.Sessions) })
	gauge("codeexec_runs_running", "Scripts that are running.", func(s bridge.Stats) float64 { return float64(s.Running) })
	gauge("codeexec_runs_waiting", "Scripts that wait for an earlier one of their session.", func(s bridge.Stats) float64 { return float64(s.Waiting) })
	gauge("codeexec_session_memory_bytes", "Linear memory of the sessions after their last run, mostly shared between them.", func(s bridge.Stats) float64 { return float64(s.Memory) })
}

// Handler answers with the metrics in the text format of Prometheus.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// RunEnded implements [bridge.Observer].
func (m *Metrics) RunEnded(status bridge.Status, reset bool, d time.Duration) {
	m.runs.WithLabelValues(string(status)).Inc()
	m.runTime.Observe(d.Seconds())
	if reset {
		m.resets.Inc()
	}
	if status == bridge.StatusTimeout || status == bridge.StatusCancelled {
		by := byInterrupt
		if reset {
			by = byKill
		}
		m.interrupted.WithLabelValues(by).Inc()
	}
}

// CallEnded implements [bridge.Observer].
func (m *Metrics) CallEnded(server string, outcome bridge.CallOutcome, d time.Duration) {
	m.calls.WithLabelValues(server, string(outcome)).Inc()
	m.callTime.WithLabelValues(server).Observe(d.Seconds())
}
