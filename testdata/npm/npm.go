// Package npm installs what tests need from npm, above all real MCP servers and a real client: what package.json
// names, in the versions that package-lock.json pins.
//
// The lockfile records no addresses (see .npmrc), so packages come from
// whatever registry the machine is configured for. It is made again by
//
//	npm install --package-lock-only --omit-lockfile-registry-resolved
package npm

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

var (
	//go:embed package.json
	packageJSON []byte
	//go:embed package-lock.json
	packageLock []byte
	//go:embed .npmrc
	npmrc []byte
)

// ErrNoNode says that node or npm isn't installed.
var ErrNoNode = errors.New("node and npm are needed to run MCP servers from npm")

// Bin returns the directory of the servers' programs (mcp-server-everything,
// mcp-server-filesystem, …). It installs them first if they aren't yet, into
// the user's cache directory: one directory for each state of the lockfile,
// shared by all tests.
func Bin(ctx context.Context) (string, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", ErrNoNode
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(append(append([]byte(nil), packageLock...), packageJSON...))
	dir := filepath.Join(cache, "codeexec-test", fmt.Sprintf("npm-%x", key[:8]))
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
	for name, data := range map[string][]byte{"package.json": packageJSON, "package-lock.json": packageLock, ".npmrc": npmrc} {
		if err := os.WriteFile(filepath.Join(aside, name), data, 0o600); err != nil {
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
