package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"codeexec/bridge/config"
)

const (
	recordSuffix = ".jsonl"

	// What the folder may come to. Its files are ordered by their last use.
	maxFiles = 1000
	maxBytes = 256 << 20
	unused   = 90 * 24 * time.Hour
)

// A Catalog is a folder of records. Its methods may be called concurrently, and
// any number of processes may use the folder at the same time.
type Catalog struct {
	dir string // empty: nothing is written
	log *slog.Logger

	sweep sync.Once // of the folder, after the first write
}

// Open returns the catalogue in a folder, which is made when there is something
// to write. If dir is empty, records live as long as the catalogue.
//
// A catalogue never fails: what can't be read is unknown, what can't be written
// is known in this process only, and either is logged. Records that no process
// has used for 90 days are removed, and beyond 1,000 records or 256 MiB those
// that were used longest ago. A nil logger means none.
func Open(dir string, logger *slog.Logger) *Catalog {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Catalog{dir: dir, log: logger}
}

// Record returns the record of a server, whether or not there is anything in
// it. Everything of the configuration counts that decides which program or
// endpoint the server is and how it is started: not its description, its
// limits, and where it is configured.
func (c *Catalog) Record(server config.Server) *Record {
	r := &Record{catalog: c, server: server.Name, log: c.log.With("server", server.Name)}
	if c.dir != "" {
		r.path = filepath.Join(c.dir, key(server)+recordSuffix)
	}
	return r
}

// key returns the hash of a server's configuration.
func key(server config.Server) string {
	server.Source, server.Description, server.Disabled, server.Timeout = "", "", false, 0
	// A program that is named by a relative path is another one elsewhere.
	// What the server's arguments mean is its own business: with those counted
	// too, each folder would have a catalogue of its own.
	dir := ""
	if strings.ContainsAny(server.Command, `/\`) && !filepath.IsAbs(server.Command) && !filepath.IsAbs(server.Cwd) {
		dir, _ = os.Getwd()
	}
	data, err := json.Marshal([]any{server, dir})
	if err != nil {
		panic(err) // it has only strings, numbers, and maps and lists of them
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

// write replaces a file of the folder.
func (c *Catalog) write(path string, data []byte) error {
	// A crash of the machine may leave a damaged file, which is no worse than
	// none.
	if err := config.ReplaceFile(path, data, 0o600); err != nil {
		return err
	}
	c.sweep.Do(c.removeUnused)
	return nil
}

// removeUnused brings the folder back within its limits. Another process may do
// the same, or write a record that is removed here: it is written again when
// its server runs.
func (c *Catalog) removeUnused() {
	// It may be older than this rule, or made by hand.
	if info, err := os.Stat(c.dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(c.dir, 0o700); err != nil {
			c.log.Debug("the catalogue is open to others", "error", err)
		}
	}
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		c.log.Debug("the catalogue can't be tidied", "error", err)
		return
	}
	var files []fs.FileInfo
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		switch {
		case strings.HasPrefix(info.Name(), config.TempPrefix) && time.Since(info.ModTime()) > time.Hour: // its writer has died
			c.remove(info.Name())
		case isOurs(info.Name()):
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	var size int64
	for i, info := range files {
		size += info.Size()
		if i >= maxFiles || size > maxBytes || time.Since(info.ModTime()) > unused {
			c.remove(info.Name())
		}
	}
}

func (c *Catalog) remove(name string) {
	if err := os.Remove(filepath.Join(c.dir, name)); err != nil {
		c.log.Debug("a file of the catalogue can't be removed", "error", err)
	}
}
