package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"codeexec/bridge"
	"codeexec/bridge/config"
	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

// serverFlags say which MCP servers scripts may call, beside those of the state directory.
type serverFlags struct {
	files   []string
	servers []string
}

func (f *serverFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.files, "config", nil, "file with {\"mcpServers\": {…}}; may be repeated")
	cmd.Flags().StringArrayVar(&f.servers, "server", nil, "MCP server to start, as `NAME=COMMAND`; may be repeated")
}

// load reads the configuration of servers. Problems with what the flags name are fatal if strict; all others
// are logged, since one bad entry must not take all servers from all scripts.
func (f *serverFlags) load(cmd *cobra.Command, s settings, logger *slog.Logger, strict bool) (config.Set, error) {
	set, err := config.Load(cmd.Context(), config.Options{
		StateDir:  s.stateDir,
		Files:     f.files,
		Flags:     f.servers,
		AllowSelf: s.allowSelf,
	})
	if err != nil {
		return set, err
	}
	for _, p := range set.Problems {
		if strict && p.Entry == "" && (p.File == "--server" || f.names(p.File)) {
			return set, usagef(cmd, "%s", p)
		}
		logger.Warn("configuration", "problem", p.String())
	}
	return set, nil
}

// names reports whether a flag names the file.
func (f *serverFlags) names(file string) bool {
	return slices.ContainsFunc(f.files, func(name string) bool {
		abs, err := filepath.Abs(name)
		return name == file || err == nil && abs == file
	})
}

// newLogger logs to w, one line an entry.
func newLogger(w io.Writer, s settings, warnings []error) *slog.Logger {
	logger := slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: s.logLevel}))
	for _, w := range warnings {
		logger.Warn(w.Error())
	}
	return logger
}

// openBridge puts the parts together. opts holds what the command decides.
func openBridge(ctx context.Context, s settings, opts bridge.Options, progress func(string)) (*bridge.Bridge, *bridge.LazyEngine) {
	engine := bridge.NewLazyEngine(wasmhost.Options{
		CacheDir: s.cacheDir,
		Memory:   s.memory,
		Progress: progress,
		Logger:   opts.Logger,
	})
	opts.Engine = engine
	opts.Version = programVersion()
	opts.Memory = s.memory
	supervisor, err := upstream.SelfSupervisor()
	if err != nil {
		opts.Logger.Warn("servers may outlive a kill of codeexec", "error", err)
	}
	opts.Supervisor = supervisor
	if opts.Timeout == 0 {
		opts.Timeout = s.timeout
	}
	if opts.MaxTimeout == 0 {
		opts.MaxTimeout = s.maxTimeout
	}
	opts.Projects = projectsDir(s, opts.Logger)
	return bridge.New(ctx, opts), engine
}

// projectsDir makes the directory that scripts see as /projects. Without one they run too.
func projectsDir(s settings, logger *slog.Logger) string {
	if s.stateDir == "" {
		return ""
	}
	dir := filepath.Join(s.stateDir, "user_tools")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		logger.Warn("scripts have no /projects", "error", err)
		return ""
	}
	return dir
}

// closeTime bounds how long stopping everything may take.
const closeTime = 10 * time.Second

// closeBridge stops everything, also when ctx has ended.
func closeBridge(ctx context.Context, b *bridge.Bridge) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := b.Close(ctx); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	return nil
}

// terminalProgress returns a function that shows on w what takes long, or nil if nobody looks at w.
func terminalProgress(w io.Writer) func(string) {
	f, ok := w.(*os.File)
	if !ok {
		return nil
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return nil
	}
	return func(message string) { fmt.Fprintf(w, "codeexec: %s\n", message) }
}
