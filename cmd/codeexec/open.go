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
	"codeexec/bridge/audit"
	"codeexec/bridge/catalog"
	"codeexec/bridge/config"
	"codeexec/bridge/oauth"
	"codeexec/bridge/policy"
	"codeexec/bridge/upstream"
	"codeexec/memory"
	"codeexec/wasmhost"
)

// serverFlags say which MCP servers scripts may call.
type serverFlags struct {
	files   []string
	servers []string
	sources string
	only    string // if not empty, the one server that matters: what is wrong with others isn't worth a warning
}

func (f *serverFlags) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&f.files, "config", nil, "`FILE` that defines MCP servers, of any client; may be repeated")
	cmd.Flags().StringArrayVar(&f.servers, "server", nil, "MCP server, as `NAME=COMMAND` or NAME=URL; may be repeated")
	cmd.Flags().StringVar(&f.sources, "sources", "", "where else servers are looked for, as `A,B`: state, project, user, a client such as cursor, or default, all, none")
}

// options says where servers are looked for.
func (f *serverFlags) options(cmd *cobra.Command, s settings) (config.Options, error) {
	opts := config.Options{
		StateDir:  s.stateDir,
		Files:     f.files,
		Flags:     f.servers,
		Sources:   s.sources,
		AllowSelf: s.allowSelf,
	}
	if cmd.Flags().Changed("sources") {
		sources, err := config.ParseSources(f.sources)
		if err != nil {
			return opts, usagef(cmd, "--sources: %w", err)
		}
		opts.Sources = sources
	}
	return opts, nil
}

// load reads the configuration of servers. Problems with what the flags name are fatal if strict; all others
// are logged, since one bad entry must not take all servers from all scripts.
func (f *serverFlags) load(cmd *cobra.Command, s settings, logger *slog.Logger, strict bool) (config.Set, error) {
	opts, err := f.options(cmd, s)
	if err != nil {
		return config.Set{}, err
	}
	set, err := config.Load(cmd.Context(), opts)
	if err != nil {
		return set, err
	}
	for _, p := range set.Problems {
		if strict && p.Entry == "" && !p.Hint && (p.File == "--server" || f.names(p.File)) {
			return set, usagef(cmd, "%s", p)
		}
		level := slog.LevelWarn
		if p.Hint || f.only != "" && p.Entry != "" && p.Entry != f.only {
			level = slog.LevelInfo
		}
		logger.Log(cmd.Context(), level, "configuration", "problem", p.String())
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
	opts.SessionIdle = s.idle
	opts.MaxSessions, opts.MaxCalls, opts.MaxInFlight = s.sessions, s.calls, s.inFlight
	opts.Supervisor = supervisor(opts.Logger)
	if opts.Timeout == 0 {
		opts.Timeout = s.timeout
	}
	if opts.MaxTimeout == 0 {
		opts.MaxTimeout = s.maxTimeout
	}
	opts.Projects = projectsDir(s, opts.Logger)
	recoverPackages(ctx, s, opts.Logger)
	opts.Store = memoryStore(s, opts.Projects, opts.Logger)
	opts.ToolsLock = filepath.Join(s.stateDir, "user_tools.lock")
	opts.KeepRuns = s.keepRuns
	opts.Policy, opts.Audit = ownersRules(s, opts.Logger)
	opts.Catalog = catalogDir(s, opts.Logger)
	opts.Logins = loginsDir(s)
	return bridge.New(ctx, opts), engine
}

// openManager makes servers usable without a sandbox. It starts none.
func openManager(s settings, set config.Set, logger *slog.Logger) *upstream.Manager {
	return upstream.NewManager(set.Servers, managerOptions(s, logger))
}

func managerOptions(s settings, logger *slog.Logger) upstream.Options {
	return upstream.Options{
		Logger:     logger,
		Version:    programVersion(),
		Supervisor: supervisor(logger),
		Catalog:    catalog.Open(catalogDir(s, logger), logger),
		OAuth:      oauth.New(oauth.Options{Dir: loginsDir(s), Logger: logger}),
	}
}

// loginsDir is where the tokens of remote servers are kept.
func loginsDir(s settings) string {
	if s.stateDir == "" {
		return ""
	}
	return filepath.Join(s.stateDir, "logins")
}

// closeManager stops all servers, also when ctx has ended.
func closeManager(ctx context.Context, m *upstream.Manager) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	if err := m.Close(ctx); err != nil {
		return fmt.Errorf("stopping: %w", err)
	}
	return nil
}

// supervisor is the command line that lets no server outlive codeexec.
func supervisor(logger *slog.Logger) []string {
	command, err := upstream.SelfSupervisor()
	if err != nil {
		logger.Warn("servers may outlive a kill of codeexec", "error", err)
	}
	return command
}

// ownersRules reads codeexec.toml of the state directory, and opens the audit log as it says. A policy that can't
// be read denies all calls; the log is done without.
func ownersRules(s settings, logger *slog.Logger) (*policy.Policy, *audit.Log) {
	if s.stateDir == "" {
		return nil, nil
	}
	path := filepath.Join(s.stateDir, "codeexec.toml")
	rules, err := policy.Load(path)
	if err != nil {
		logger.Error("all calls of tools are denied", "error", err)
	}
	settings, err := audit.LoadSettings(path)
	if err != nil {
		logger.Warn("audit log", "error", err)
	}
	if !settings.Enabled {
		return rules, nil
	}
	log, err := audit.Open(audit.Options{Dir: filepath.Join(s.stateDir, "log"), Arguments: settings.Arguments, Logger: logger})
	if err != nil {
		logger.Warn("nothing is recorded", "error", err)
	}
	return rules, log
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

// memoryStore opens what scripts save by key, in the folder memory of projects. Its lock is out of their reach.
func memoryStore(s settings, projects string, logger *slog.Logger) memory.Store {
	if projects == "" {
		return nil
	}
	dir, err := memory.OpenDir(filepath.Join(projects, "memory"), filepath.Join(s.stateDir, "memory.lock"), memory.Limits{})
	if err != nil {
		logger.Warn("scripts can save nothing by key", "error", err)
		return nil
	}
	return dir
}

// catalogDir is where it is kept what is known of servers that aren't running.
func catalogDir(s settings, logger *slog.Logger) string {
	root := s.cacheDir
	if root == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			logger.Warn("what servers can do is forgotten when codeexec ends", "error", err)
			return ""
		}
		root = filepath.Join(dir, "codeexec") // as for compiled code
	}
	return filepath.Join(root, "catalog")
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
