package bridge

import (
	"context"
	"log/slog"
)

// sdkLogger is what the SDK logs to. What it takes for worth telling, that a client has come or gone, happens with
// each request of a stateless client, and has the id by which a connection can be used: for whoever debugs.
func sdkLogger(logger *slog.Logger) *slog.Logger { return slog.New(quietHandler{logger.Handler()}) }

type quietHandler struct{ slog.Handler }

func quiet(level slog.Level) slog.Level {
	if level == slog.LevelInfo {
		return slog.LevelDebug
	}
	return level
}

func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.Handler.Enabled(ctx, quiet(level))
}

func (h quietHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = quiet(r.Level)
	return h.Handler.Handle(ctx, r)
}

func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.Handler.WithAttrs(attrs)}
}

func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.Handler.WithGroup(name)}
}
