// Package npm installs what tests need from npm: real MCP servers and a real client, and the official
// conformance suite. Each set is a package.json, with the versions that its package-lock.json pins.
//
// The lockfiles record no addresses (see .npmrc), so packages come from
// whatever registry the machine is configured for. They are made again by
//
//	npm install --package-lock-only --ignore-scripts --omit-lockfile-registry-resolved
//
// The conformance set overrides the version of vite, which the inspector depends on: newer ones have an optional
// dependency that not every registry has, and npm ci refuses a lockfile without it.
package npm

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"
	"time"
)

//go:embed package.json package-lock.json conformance/package.json conformance/package-lock.json
var sets embed.FS

//go:embed .npmrc
var npmrc []byte

// ErrNoNode says that node or npm isn't installed.
var ErrNoNode = errors.New("node and npm are needed to run MCP servers from npm")

// Bin returns the directory of the servers' programs (mcp-server-everything,
// mcp-server-filesystem, …).
func Bin(ctx context.Context) (string, error) { return install(ctx, "servers", ".") }

// Conformance returns the directory of the programs conformance, the official conformance suite of MCP,
// and inspector, and of the node (22) that both need: it must come first on their PATH.
func Conformance(ctx context.Context) (string, error) {
	bin, err := install(ctx, "conformance", "conformance")
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(filepath.Join(bin, "node")); err != nil {
		return "", fmt.Errorf("%w: npm has no Node 22 for this platform", ErrNoNode)
	}
	return bin, nil
}

// Need returns what Bin or Conformance return, and skips the test where there is no Node.
func Need(t testing.TB, programs func(context.Context) (string, error)) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the first time it is installed
	defer cancel()
	bin, err := programs(ctx)
	if errors.Is(err, ErrNoNode) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return bin
}

// install installs the set in the directory set of this package into the user's cache directory, unless it
// is there: one directory for each state of the lockfile, shared by all tests. It returns the directory of
// the programs.
func install(ctx context.Context, name, set string) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", ErrNoNode
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	files := map[string][]byte{".npmrc": npmrc}
	hash := sha256.New()
	for _, file := range []string{"package-lock.json", "package.json"} {
		data, err := sets.ReadFile(path.Join(set, file))
		if err != nil {
			return "", err
		}
		files[file] = data
		hash.Write(data)
	}
	dir := filepath.Join(cache, "codeexec-test", fmt.Sprintf("npm-%s-%x", name, hash.Sum(nil)[:8]))
	bin := filepath.Join(dir, "node_modules", ".bin")
	if _, err := os.Stat(bin); err == nil {
		return bin, nil
	}
	// Made aside and moved, so that another test never sees half of it.
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), "npm-new-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(aside)
	for file, data := range files {
		if err := os.WriteFile(filepath.Join(aside, file), data, 0o600); err != nil {
			return "", err
		}
	}
	for attempt := 1; ; attempt++ { // networks fail for a moment
		cmd := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts")
		cmd.Dir = aside
		out, err := cmd.CombinedOutput()
		if err == nil {
			break
		}
		if attempt == 3 || ctx.Err() != nil {
			return "", fmt.Errorf("npm ci: %w\n%s", err, out)
		}
		time.Sleep(time.Duration(attempt) * time.Second)
	}
	if err := os.Rename(aside, dir); err != nil {
		if _, statErr := os.Stat(bin); statErr == nil {
			return bin, nil // another test was faster
		}
		return "", err
	}
	return bin, nil
}
