package upstream

import (
	"context"
	"log/slog"
	"sync/atomic"

	"golang.org/x/time/rate"
)

const (
	// logRate is how many entries a second a server can cause in the log, in the
	// long run; logBurst how many at once.
	logRate  = 10
	logBurst = 200
)

// bounded returns a logger for what a server causes by what it sends. What is too
// much is left out, and counted.
func bounded(log *slog.Logger) *slog.Logger {
	return slog.New(quota{log.Handler(), &allowance{limiter: rate.NewLimiter(logRate, logBurst)}})
}

// A quota is a handler that takes no more than its allowance.
type quota struct {
	slog.Handler
	*allowance
}

type allowance struct {
	limiter *rate.Limiter
	omitted atomic.Int64 // since the last entry that was taken
}

func (q quota) Handle(ctx context.Context, record slog.Record) error {
	if !q.limiter.Allow() {
		q.omitted.Add(1)
		return nil
	}
	if n := q.omitted.Swap(0); n > 0 {
		record = record.Clone()
		record.AddAttrs(slog.Int64("left_out_before", n))
	}
	return q.Handler.Handle(ctx, record)
}

func (q quota) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quota{q.Handler.WithAttrs(attrs), q.allowance}
}

func (q quota) WithGroup(name string) slog.Handler {
	return quota{q.Handler.WithGroup(name), q.allowance}
}
