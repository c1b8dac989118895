package packages

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// asidePrefix begins the names of directories in which changes are prepared.
const asidePrefix = ".codeexec-"

const (
	// maxJournal is the length in bytes of the longest journal that is read.
	maxJournal = 64 << 20

	// staleAfter is how long a directory in which nothing happens isn't taken for that of a killed process.
	staleAfter = time.Hour

	// syncs is how many files are synced at once, which takes little more time than one.
	syncs = 16
)

// A swap puts files of a folder in the place of others, all or none, also where the process is killed in the
// middle of it. It has a directory in the folder:
//
//	new/…    the new files, until they are moved to their places
//	old/…    the old ones, that have been moved away
//	journal  the names of all new files, one a line; while it is there, nothing is decided, and whoever has
//	         the lock moves back what has been moved
type swap struct {
	root  *os.Root
	aside string // the directory

	moving func() // of tests: called before each move
}

// newSwap returns a swap without making anything on the disk.
func newSwap(root *os.Root) *swap { return &swap{root: root, aside: asidePrefix + rand.Text()} }

// new is the directory of the new files.
func (s *swap) new() string { return path.Join(s.aside, "new") }

func (s *swap) old() string { return path.Join(s.aside, "old") }

func (s *swap) journal() string { return path.Join(s.aside, "journal") }

// close removes the directory, unless it is still needed.
func (s *swap) close() {
	if _, err := s.root.Lstat(s.journal()); errors.Is(err, fs.ErrNotExist) {
		s.root.RemoveAll(s.aside)
	}
}

// replace moves the new files to their places, and the old ones away, or changes nothing. Only old files may be
// in the way. The caller has the lock.
func (s *swap) replace(new []string, old map[string]bool) error {
	for _, name := range new {
		if _, err := s.root.Lstat(name); err == nil && !old[name] {
			return fmt.Errorf("%s is there already, and belongs to something else; remove that first", name)
		}
	}
	err := s.writeJournal(new)
	if err == nil {
		err = s.moveAll(new, old)
	}
	if err == nil {
		s.prune(maps.Keys(old))
		err = s.root.Remove(s.journal())
	}
	if err != nil {
		return errors.Join(err, s.undo())
	}
	return nil
}

// writeJournal makes the journal, at once and durably.
func (s *swap) writeJournal(new []string) (err error) {
	if err := s.root.MkdirAll(s.aside, 0o700); err != nil {
		return err
	}
	half := s.journal() + ".new"
	file, err := s.root.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strings.Join(new, "\n"))
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return s.root.Rename(half, s.journal())
}

func (s *swap) moveAll(new []string, old map[string]bool) error {
	// Also what has been compiled of old files: it would go on to be imported, or be left behind.
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if info, err := s.root.Lstat(name); err == nil && info.IsDir() {
			continue // nobody has recorded that, but a script
		}
		for _, gone := range append(compiledFiles(s.root, name), name) {
			if err := s.move(gone, path.Join(s.old(), gone)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for _, name := range new {
		if err := s.move(path.Join(s.new(), name), name); err != nil {
			return err
		}
	}
	return nil
}

func (s *swap) move(from, to string) error {
	if s.moving != nil {
		s.moving()
	}
	if err := s.root.MkdirAll(path.Dir(to), 0o700); err != nil {
		return err
	}
	return s.root.Rename(from, to)
}

// undo moves everything back, if there is a journal. Nothing is removed before all is in its place, so it may be
// cut short and be done again.
func (s *swap) undo() error {
	data, err := readUpTo(s.root, s.journal(), maxJournal)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var new []string
	for name := range strings.Lines(string(data)) {
		// Scripts can write here, too.
		if name = strings.TrimSuffix(name, "\n"); checkPath(name) == nil {
			new = append(new, name)
		}
	}
	for _, name := range new {
		staged := path.Join(s.new(), name)
		if _, err := s.root.Lstat(staged); !errors.Is(err, fs.ErrNotExist) {
			continue // it hasn't been moved, or is back already
		}
		if _, err := s.root.Lstat(name); err != nil {
			continue // a script has removed it, or made the journal
		}
		if err := s.move(name, staged); err != nil {
			return err
		}
	}
	err = fs.WalkDir(s.root.FS(), s.old(), func(from string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		return s.move(from, strings.TrimPrefix(from, s.old()+"/"))
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.prune(slices.Values(new))
	return s.root.Remove(s.journal())
}

// prune removes the directories of files that are empty.
func (s *swap) prune(files iter.Seq[string]) {
	for name := range files {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			s.removeDir(dir + "/__pycache__")
			if !s.removeDir(dir) {
				break
			}
		}
	}
	s.removeDir("__pycache__")
}

// removeDir removes a directory if it is empty, and reports whether it did.
func (s *swap) removeDir(name string) bool {
	info, err := s.root.Lstat(name)
	return err == nil && info.IsDir() && s.root.Remove(name) == nil // which fails where it isn't empty
}

// compiledFiles returns the files that Python has made of a module.
func compiledFiles(root *os.Root, name string) []string {
	module, ok := strings.CutSuffix(path.Base(name), ".py")
	if !ok {
		return nil
	}
	cache := path.Join(path.Dir(name), "__pycache__")
	entries, err := fs.ReadDir(root.FS(), cache)
	if err != nil {
		return nil
	}
	var found []string
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), module+".") && strings.HasSuffix(entry.Name(), ".pyc") {
			found = append(found, path.Join(cache, entry.Name()))
		}
	}
	return found
}

// leftSwaps returns the swaps that have a directory in a folder, of living and of killed processes.
func leftSwaps(root *os.Root) ([]*swap, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var found []*swap
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), asidePrefix) {
			found = append(found, &swap{root: root, aside: entry.Name()})
		}
	}
	return found, nil
}

// interrupted reports whether a swap is going on, or has been cut short.
func interrupted(root *os.Root) bool {
	swaps, err := leftSwaps(root)
	return err == nil && slices.ContainsFunc(swaps, func(s *swap) bool {
		_, err := root.Lstat(s.journal())
		return err == nil
	})
}

// tidy undoes swaps that have been cut short, and removes what they, and those that hadn't begun, have left. The
// caller has the lock, so no swap is going on.
func tidy(root *os.Root) error {
	swaps, err := leftSwaps(root)
	if err != nil {
		return err
	}
	for _, s := range swaps {
		info, err := root.Lstat(s.aside)
		if err != nil {
			continue
		}
		_, err = root.Lstat(s.journal())
		begun := err == nil
		if err := s.undo(); err != nil {
			return fmt.Errorf("undoing a change that was cut short: %w; what was replaced is in the folder's %s/old", err, s.aside)
		}
		if begun || time.Since(info.ModTime()) > staleAfter {
			s.close()
		}
	}
	return nil
}

// syncFiles makes the contents of files in a directory durable.
func syncFiles(ctx context.Context, root *os.Root, dir string, names []string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(syncs)
	for _, name := range names {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			file, err := root.OpenFile(path.Join(dir, name), os.O_RDWR, 0) // Windows syncs no others
			if err != nil {
				return err
			}
			return errors.Join(file.Sync(), file.Close())
		})
	}
	return group.Wait()
}
