// Package artifact keeps what runs leave behind: a folder for each run that saved files, with its code and output.
//
// The folders lie in the directory that scripts see as /projects, so that scripts write into theirs as into any
// other; a script can do there what it likes. Package bridge names the folder before a run and finishes it after.
//
// # Why a folder's name begins with its time
//
// Then the newest folders are known from their names. Times of modification change when a script, or a person, touches
// an old one.
//
// # Why there is no lock
//
// Several processes share the directory. Each makes folders of names that no other makes, and removes what it
// finds beyond the newest; to remove a folder that another has removed does no harm. A folder that isn't finished yet
// is left alone for an hour, which is longer than any run.
package artifact

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	// Dir is the directory of the folders in that of /projects.
	Dir = "executions"

	// What [Folder.Finish] writes.
	codeFile   = "code.py"
	outputFile = "output.txt"

	// DefaultKeep is how many folders are kept.
	DefaultKeep = 50

	maxFiles   = 1000      // that Finish looks at
	unfinished = time.Hour // after which a folder without code counts as finished
)

// A Mode says which runs have a folder.
type Mode string

const (
	Written Mode = "written" // those that saved something
	All     Mode = "all"
	None    Mode = "none" // none: scripts can't save any files this way
)

// A Store is where the folders are. The nil Store has none.
type Store struct {
	projects string
	mode     Mode
	keep     int
}

// Open returns the store in a directory, which scripts see as /projects. It does nothing yet. With [None], or without
// a directory, there is none.
func Open(projects string, mode Mode, keep int) *Store {
	if projects == "" || mode == None {
		return nil
	}
	return &Store{projects: projects, mode: cmp.Or(mode, Written), keep: cmp.Or(keep, DefaultKeep)}
}

// A Folder is where a run saves files. The nil Folder is that of a run which can save none.
type Folder struct {
	store *Store
	name  string
}

// Folder names the folder of a run that begins now. The id must be random, of letters and digits.
func (s *Store) Folder(id string, now time.Time) *Folder {
	if s == nil {
		return nil
	}
	return &Folder{s, now.UTC().Format(timeLayout) + "-" + strings.ToLower(id[:min(len(id), idLength)])}
}

const (
	timeLayout = "20060102-150405"
	idLength   = 8
)

var folderName = regexp.MustCompile(`^\d{8}-\d{6}-[a-z0-9]{1,8}$`)

// made returns when a folder of a name was made, if it is one of ours.
func made(name string) (time.Time, bool) {
	if !folderName.MatchString(name) {
		return time.Time{}, false
	}
	t, err := time.Parse(timeLayout, name[:len(timeLayout)])
	return t, err == nil
}

// Path is the folder as scripts see it.
func (f *Folder) Path() string {
	if f == nil {
		return ""
	}
	return "/projects/" + Dir + "/" + f.name
}

// URL is the folder as a file:// URL of this machine.
func (f *Folder) URL() string {
	if f == nil {
		return ""
	}
	return fileURL(filepath.Join(f.store.projects, Dir, f.name), runtime.GOOS == "windows")
}

// FileURL is a file of the folder as a file:// URL of this machine. The name has slashes.
func (f *Folder) FileURL(name string) string {
	return f.URL() + "/" + (&url.URL{Path: name}).EscapedPath()
}

// fileURL writes an absolute path as a URL, see RFC 8089; a Windows path may begin with a drive or a host.
func fileURL(p string, windows bool) string {
	u := url.URL{Scheme: "file"}
	if windows {
		p = strings.ReplaceAll(strings.TrimPrefix(p, `\\?\`), `\`, "/")
		if rest, ok := strings.CutPrefix(p, "//"); ok {
			u.Host, p, _ = strings.Cut(rest, "/")
		}
		p = "/" + strings.TrimPrefix(p, "/")
	}
	u.Path = p
	if u.Host == "" {
		return "file://" + u.EscapedPath()
	}
	return u.String()
}

// A File is a file that a run saved.
type File struct {
	Path string // in the directory of all folders: "<folder>/<name>"
	Name string // in its folder, with slashes
	URL  string // file:// on this machine
	Size int64
}

// Save writes a file into the folder from outside of the run. The name has at most one slash. Nothing is replaced:
// it fails if there is such a file.
func (f *Folder) Save(name string, data []byte) (File, error) {
	root, err := f.open(true)
	if err != nil {
		return File{}, err
	}
	defer root.Close()
	if dir := path.Dir(name); dir != "." {
		if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return File{}, fmt.Errorf("saving %s: %w", name, err)
		}
	}
	if err := write(root, name, data); err != nil {
		return File{}, err
	}
	return f.file(name, int64(len(data))), nil
}

func (f *Folder) file(name string, size int64) File {
	return File{
		Path: f.name + "/" + name,
		Name: name,
		URL:  f.FileURL(name),
		Size: size,
	}
}

// write makes a file that isn't there, in particular not as a symbolic link.
func write(root *os.Root, name string, data []byte) error {
	w, err := root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	_, err = w.Write(data)
	if err = errors.Join(err, w.Close()); err != nil {
		return fmt.Errorf("saving %s: %w", name, err)
	}
	return nil
}

// open opens the folder, which it makes first if it is told so. It fails where a script has put a symbolic link in its
// place.
func (f *Folder) open(create bool) (*os.Root, error) {
	folders, err := f.store.open(create)
	if err != nil {
		return nil, err
	}
	defer folders.Close()
	return subfolder(folders, f.name, create)
}

func (s *Store) open(create bool) (*os.Root, error) {
	projects, err := os.OpenRoot(s.projects)
	if err != nil {
		return nil, fmt.Errorf("opening the directory of /projects: %w", err)
	}
	defer projects.Close()
	return subfolder(projects, Dir, create)
}

func subfolder(root *os.Root, name string, create bool) (*os.Root, error) {
	if create {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a folder", name)
	}
	return root.OpenRoot(name)
}

// Finish writes the code and the output of a run into its folder if there is one, or all runs have one; it
// returns the other files in it, by name, and removes folders beyond those that are kept.
func (f *Folder) Finish(code, output string) ([]File, error) {
	if f == nil {
		return nil, nil
	}
	root, err := f.open(f.store.mode == All)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the folder of the run: %w", err)
	}
	defer root.Close()
	files := f.list(root)
	// A script may have files of these names; they are its own. The code comes last: with it, the folder counts as
	// finished, and another process may remove it.
	var errs []error
	for _, w := range []struct{ name, text string }{{outputFile, output}, {codeFile, code}} {
		if err := write(root, w.name, []byte(w.text)); !errors.Is(err, fs.ErrExist) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, f.store.prune(f.name, time.Now()))
	return files, errors.Join(errs...)
}

func (f *Folder) list(root *os.Root) []File {
	var files []File
	// An error is one of a folder that can't be read; what else there is still counts.
	_ = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || !utf8.ValidString(name) {
			return nil
		}
		if len(files) == maxFiles {
			return fs.SkipAll
		}
		if info, err := entry.Info(); err == nil {
			files = append(files, f.file(name, info.Size()))
		}
		return nil
	})
	return files
}

// prune removes the oldest folders but not the one of the given name, which counts as the newest.
func (s *Store) prune(newest string, now time.Time) error {
	folders, err := s.open(false)
	if err != nil {
		return err
	}
	defer folders.Close()
	entries, err := fs.ReadDir(folders.FS(), ".")
	if err != nil {
		return err
	}
	var old []string
	for _, entry := range entries {
		when, ours := made(entry.Name())
		if !ours || !entry.IsDir() || entry.Name() == newest {
			continue
		}
		if now.Sub(when) < unfinished {
			if _, err := folders.Lstat(filepath.Join(entry.Name(), codeFile)); errors.Is(err, fs.ErrNotExist) {
				continue // a run is still going on
			}
		}
		old = append(old, entry.Name())
	}
	slices.Sort(old)
	var errs []error
	for _, name := range old[:max(len(old)-(s.keep-1), 0)] {
		if err := folders.RemoveAll(name); err != nil {
			errs = append(errs, fmt.Errorf("removing the folder of an old run: %w", err))
		}
	}
	return errors.Join(errs...)
}
