package wasmhost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sync/errgroup"

	"codeexec/hostfuncs"
	pythonwasm "codeexec/python-wasm"
	"codeexec/wasmhost/internal/sandboxfs"
)

// Options configure an [Engine]. The zero value is usable.
type Options struct {
	// CacheDir is where machine code is kept between processes, in a folder of
	// its own for each build. Empty: "codeexec" in the user's cache directory.
	// Where it can't be used or is damaged, each process compiles anew.
	CacheDir string

	// Memory is the limit of a session's linear memory, in bytes; Python raises
	// MemoryError beyond it. Zero: 256 MiB. Values below 64 MiB or above 4 GiB
	// are moved there.
	Memory int64

	// Progress is told in a few words what takes long, before it starts:
	// compiling, at the first start of a build on a machine. It is called from New, never after.
	Progress func(stage string)

	// Logger gets what goes wrong and is made up for. Nil: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultMemory = 256 << 20
	minMemory     = 64 << 20
	maxMemory     = 4 << 30
	// staleAfter is how long the machine code of another build is kept unused.
	staleAfter = 30 * 24 * time.Hour
)

func (o Options) withDefaults() Options {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	o.Memory = min(max(o.Memory, minMemory), maxMemory) / pythonwasm.PageSize * pythonwasm.PageSize
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// An Engine holds the compiled interpreter and the memory of a warm one. Its
// methods may be called from several goroutines at a time.
type Engine struct {
	opts     Options
	manifest pythonwasm.Manifest
	runtime  wazero.Runtime
	cache    wazero.CompilationCache // nil without a usable cache directory
	compiled wazero.CompiledModule
	image    *image
	base     *sandboxfs.Base

	mu       sync.Mutex
	sessions map[*Session]struct{} // nil when closed
}

// New compiles the interpreter, or loads what an earlier process compiled:
// seconds the first time on a machine, 0.1 to 0.2 s after. It returns an error
// that wraps [pythonwasm.ErrNotBuilt] where the binary holds no Python.
func New(ctx context.Context, opts Options) (*Engine, error) {
	artifacts, err := pythonwasm.Open()
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: opts.withDefaults(), manifest: artifacts.Manifest, sessions: map[*Session]struct{}{}}

	// The two halves take about as long as each other.
	var group errgroup.Group
	group.Go(func() error {
		module, err := artifacts.Module()
		if err != nil {
			return fmt.Errorf("unpacking the interpreter: %w", err)
		}
		return e.compile(ctx, module)
	})
	group.Go(func() (err error) {
		if e.image, err = newImage(artifacts.Manifest.MemoryBytes, artifacts.ReadMemory); err != nil {
			return fmt.Errorf("unpacking the interpreter's memory: %w", err)
		}
		files, err := artifacts.RootFS()
		if err != nil {
			return fmt.Errorf("unpacking the sandbox's files: %w", err)
		}
		e.base, err = sandboxfs.NewBase(files)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, e.Close(context.WithoutCancel(ctx)))
	}
	return e, nil
}

// compile sets e.runtime and e.compiled. A damaged cache is replaced, and one
// that can't be used is done without.
func (e *Engine) compile(ctx context.Context, module []byte) error {
	dir, known, err := e.cacheDir(module)
	if !known {
		e.opts.Progress("compiling Python for this machine; only the first run takes this long")
	}
	if err == nil {
		if e.cache, err = wazero.NewCompilationCacheWithDir(dir); err == nil {
			compileErr := e.compileWith(ctx, module)
			if compileErr == nil || ctx.Err() != nil || isOutOfMemory(compileErr) {
				return compileErr
			}
			e.opts.Logger.Warn("discarding cached machine code", "dir", dir, "error", compileErr)
			if err = e.discardCache(ctx, dir); err == nil {
				e.cache, err = wazero.NewCompilationCacheWithDir(dir)
			}
		}
	}
	if err != nil {
		e.cache = nil
		e.opts.Logger.Warn("machine code can't be cached; every start compiles anew", "error", err)
	}
	return e.compileWith(ctx, module)
}

// isOutOfMemory reports whether address space ran out, as it does under ulimit -v; no other cache would help. wazero
// keeps the text of the system's error only.
func isOutOfMemory(err error) bool {
	return strings.Contains(err.Error(), syscall.ENOMEM.Error())
}

// discardCache removes what the cache holds. The runtime that used it goes too.
func (e *Engine) discardCache(ctx context.Context, dir string) error {
	err := errors.Join(e.runtime.Close(ctx), e.cache.Close(ctx), os.RemoveAll(dir))
	e.runtime, e.cache = nil, nil
	if err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}

func (e *Engine) compileWith(ctx context.Context, module []byte) error {
	config := wazero.NewRuntimeConfig().WithDebugInfoEnabled(false)
	if e.cache != nil {
		config = config.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if _, err := wasi_snapshot_preview1.Instantiate(sandboxfs.WithErrnos(ctx), e.runtime); err != nil {
		return fmt.Errorf("instantiating WASI: %w", err)
	}
	if err := sandboxfs.Instantiate(ctx, e.runtime); err != nil {
		return err
	}
	if err := hostfuncs.Instantiate(ctx, e.runtime); err != nil {
		return err
	}
	var err error
	e.compiled, err = e.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)), module)
	if err != nil {
		return fmt.Errorf("compiling the interpreter: %w", err)
	}
	return nil
}

// cacheDir makes the folder for this build's machine code, which only its owner
// may enter, and says whether it was there. It removes those of builds that
// nobody has used for long.
func (e *Engine) cacheDir(module []byte) (dir string, known bool, err error) {
	root := e.opts.CacheDir
	if root == "" {
		if root, err = os.UserCacheDir(); err != nil {
			return "", false, err
		}
		root = filepath.Join(root, "codeexec")
	}
	sum := sha256.Sum256(module)
	dir = filepath.Join(root, "native", hex.EncodeToString(sum[:8]))
	if _, err := os.Stat(dir); err == nil {
		known = true
		now := time.Now()
		if err := os.Chtimes(dir, now, now); err != nil {
			e.opts.Logger.Debug("marking the cache as used", "error", err)
		}
	} else if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", false, err
	}
	builds, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return "", known, err
	}
	for _, build := range builds {
		info, err := build.Info()
		if err != nil || time.Since(info.ModTime()) < staleAfter {
			continue
		}
		if err := os.RemoveAll(filepath.Join(filepath.Dir(dir), build.Name())); err != nil {
			e.opts.Logger.Debug("removing a stale cache", "error", err)
		}
	}
	return dir, known, nil
}

// CPython is the version of the interpreter, such as "3.13.5".
func (e *Engine) CPython() string { return e.manifest.CPython }

// MemoryLimit is the limit of a session's linear memory, in bytes.
func (e *Engine) MemoryLimit() int64 { return e.opts.Memory }

// Close ends all sessions, as [Session.Close] does, and frees what the engine
// holds. ctx bounds how long it waits for runs that are going on.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	sessions := e.sessions
	e.sessions = nil
	e.mu.Unlock()
	var errs []error
	for s := range sessions {
		s.interruptForGood()
	}
	for s := range sessions {
		errs = append(errs, s.Close(ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return err // a guest still runs: what it uses must stay
	}
	if e.runtime != nil {
		errs = append(errs, e.runtime.Close(ctx))
	}
	if e.cache != nil {
		errs = append(errs, e.cache.Close(ctx))
	}
	if e.image != nil {
		errs = append(errs, e.image.close())
	}
	return errors.Join(errs...)
}

// errClosed is what a closed engine or session answers.
var errClosed = fmt.Errorf("wasmhost: %w", fs.ErrClosed)
