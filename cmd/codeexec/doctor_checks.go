package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"codeexec/bridge/config"
	pythonwasm "codeexec/python-wasm"
	"codeexec/wasmhost"
)

// program checks whether a shell finds this program.
func (d *doctor) program() {
	exe, err := os.Executable()
	if err != nil {
		d.fail("program", "its own path isn't known: "+err.Error(), "start codeexec by its whole path")
		return
	}
	d.ok("program", "codeexec %s, %s", programVersion(), shortPath(exe))
	switch found, err := exec.LookPath("codeexec"); {
	case err != nil:
		d.note("PATH", "codeexec is not on PATH", `use its whole path where a client is configured by hand; "codeexec install" does`)
	case !sameFile(found, exe):
		d.note("PATH", "the codeexec on PATH is another one: "+shortPath(found), "remove one of the two, or mind which one you start")
	default:
		d.ok("PATH", "%s", shortPath(found))
	}
}

// python checks the interpreter that is part of the program.
func (d *doctor) python() bool {
	artifacts, err := pythonwasm.Open()
	if err == nil {
		_, err = artifacts.Module()
	}
	if err != nil {
		d.fail("python", err.Error(), `run "make python-wasm", and build codeexec again`)
		return false
	}
	d.ok("python", "CPython %s", artifacts.Manifest.CPython)
	return true
}

// sandboxTime bounds the check of the sandbox, which may compile Python first.
const sandboxTime = 2 * time.Minute

// spareAddresses is the address space in bytes that the program needs besides a session: the runtime's own,
// threads' stacks, machine code, and the interpreter while it is unpacked. Little of it is ever memory.
const spareAddresses = 3 << 29

// sandbox runs a script in a fork of the interpreter, and in a second one what must not see the first.
func (d *doctor) sandbox(ctx context.Context, s settings) {
	const check = "sandbox"
	if limit, want := addressSpace(), uint64(s.memory)+spareAddresses; limit > 0 && limit < want {
		// Not tried: where address space ends, the Go runtime does too, and nobody would see a table.
		d.fail(check, fmt.Sprintf("address space is limited to %d MiB", limit>>20), fmt.Sprintf("raise the limit to %d (ulimit -v), or lower CODEEXEC_MEMORY", want>>10))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sandboxTime)
	defer cancel()
	engine, err := wasmhost.New(ctx, wasmhost.Options{CacheDir: s.cacheDir, Memory: s.memory, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		d.fail(check, "Python can't be started: "+err.Error(), "if the machine is short of memory, free some; else please report it")
		return
	}
	defer engine.Close(context.WithoutCancel(ctx))
	var took time.Duration
	for _, code := range []string{"mark = 1; print('ready')", "print('mixed' if 'mark' in globals() else 'ready')"} {
		start := time.Now()
		out, err := runOnce(ctx, engine, code)
		if took = time.Since(start); err != nil {
			d.fail(check, "a session can't be forked: "+err.Error(), "if the machine is short of memory, free some, or lower CODEEXEC_MEMORY; else please report it")
			return
		}
		if strings.TrimSpace(out) != "ready" {
			d.fail(check, fmt.Sprintf("a script printed %q", out), `remove the cache directory, and try again; if that doesn't help, please report it`)
			return
		}
	}
	how := "copy-on-write"
	if runtime.GOOS == "windows" {
		how = "by copying, which this system does more slowly"
	}
	d.ok(check, "forked and run in %.1f ms, %s", float64(took.Microseconds())/1000, how)
}

// runOnce runs code in a session of its own, and returns what it printed.
func runOnce(ctx context.Context, engine *wasmhost.Engine, code string) (out string, err error) {
	session, err := engine.NewSession(ctx, wasmhost.SessionOptions{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	result, err := session.Run(ctx, wasmhost.Request{Code: code})
	if err != nil {
		return "", err
	}
	return result.Stdout.String(), nil
}

// cache checks the directory of compiled code. Whoever can write there decides what codeexec runs.
func (d *doctor) cache(s settings) {
	const check = "cache"
	dir := s.cacheDir
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			d.fail(check, err.Error(), "set CODEEXEC_CACHE_DIR; until then each start takes seconds")
			return
		}
		dir = filepath.Join(user, "codeexec")
	}
	if err := writable(dir); err != nil {
		d.fail(check, shortPath(dir)+": "+err.Error(), "make it a directory that you can write to, or set CODEEXEC_CACHE_DIR; until then each start takes seconds")
		return
	}
	for _, path := range []string{dir, filepath.Join(dir, "native")} {
		if mode, open := permissions(path, 0o077); open {
			d.fail(check, fmt.Sprintf("others may enter %s, mode %04o", shortPath(path), mode), "chmod 700 "+path)
			return
		}
	}
	d.ok(check, "%s", shortPath(dir))
}

// state checks the directory of servers' configuration and of what scripts keep.
func (d *doctor) state(s settings) {
	const check = "state"
	if s.stateDir == "" {
		return // among the warnings of the environment
	}
	for _, path := range []string{s.stateDir, filepath.Join(s.stateDir, "user_tools")} {
		if err := writable(path); err != nil {
			d.fail(check, shortPath(path)+": "+err.Error(), "make it a directory that you can write to, or set CODEEXEC_STATE_DIR; until then scripts can't keep anything")
			return
		}
		if mode, open := permissions(path, 0o022); open {
			d.fail(check, fmt.Sprintf("others may write to %s, mode %04o, and so decide which programs are started", shortPath(path), mode), "chmod go-w "+path)
			return
		}
	}
	if _, err := os.Stat(s.stateDir); errors.Is(err, fs.ErrNotExist) {
		d.ok(check, "%s, not there yet", shortPath(s.stateDir))
		return
	}
	d.ok(check, "%s", shortPath(s.stateDir))
}

// writable checks whether files can be made in a directory, or the directory where there is none. It leaves
// everything as it was.
func writable(dir string) error {
	for {
		info, err := os.Stat(dir)
		switch {
		case err == nil && !info.IsDir():
			return errors.New("not a directory")
		case err == nil:
			f, err := os.CreateTemp(dir, ".doctor-*")
			if err != nil {
				return plain(err)
			}
			return errors.Join(f.Close(), os.Remove(f.Name()))
		case !errors.Is(err, fs.ErrNotExist) || filepath.Dir(dir) == dir:
			return plain(err)
		}
		if _, err := os.Lstat(dir); err == nil {
			return errors.New("a symbolic link that leads nowhere")
		}
		dir = filepath.Dir(dir)
	}
}

// plain is err without the path of a file that no longer matters.
func plain(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

// permissions reports whether a directory has one of the given permissions. Windows has others.
func permissions(path string, bits fs.FileMode) (mode fs.FileMode, has bool) {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" {
		return 0, false
	}
	return info.Mode().Perm(), info.Mode().Perm()&bits != 0
}

// configuration lists what is wrong with the configuration of servers.
func (d *doctor) configuration(set config.Set) {
	const check = "configuration"
	if len(set.Servers) == 0 {
		d.note(check, "no servers", `scripts have nothing to call: see "codeexec servers --help" and "codeexec servers import"`)
	} else {
		d.ok(check, "%d servers", len(set.Servers))
	}
	for _, p := range set.Problems {
		where := shortPath(p.File)
		if p.Entry != "" {
			where += fmt.Sprintf(", server %q", p.Entry)
		}
		if p.Hint {
			d.note(check, where, p.Message)
		} else {
			d.fail(check, where, p.Message)
		}
	}
}

// client checks how an MCP client starts codeexec, if it does.
func (d *doctor) client(client config.Source, opts config.Options) {
	check := "client " + string(client)
	entries, present, problems := config.SelfEntries(opts, client)
	for _, p := range problems {
		d.fail(check, shortPath(p.File)+" can't be read", "correct the file: "+p.Message)
	}
	if present && len(entries) == 0 && len(problems) == 0 {
		d.note(check, "not installed", "codeexec install "+string(client))
	}
	exe, _ := os.Executable()
	for _, e := range entries {
		where := shortPath(e.File)
		found, err := exec.LookPath(e.Command)
		switch {
		case err != nil:
			d.fail(check, fmt.Sprintf("%s: server %q starts %s, which can't be run", where, e.Name, e.Command), "codeexec install "+string(client))
		case !slices.Contains(e.Args, "serve") && sameFile(found, exe):
			d.fail(check, fmt.Sprintf("%s: server %q doesn't have the argument serve", where, e.Name), "codeexec install "+string(client))
		case e.Disabled:
			d.note(check, fmt.Sprintf("%s: server %q is disabled", where, e.Name), "enable it in the client")
		case !sameFile(found, exe):
			d.note(check, fmt.Sprintf("%s: server %q starts another program, %s", where, e.Name, shortPath(found)), `if this one is meant: codeexec install `+string(client))
		default:
			d.ok(check, "%s", where)
		}
	}
}
