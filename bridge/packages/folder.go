package packages

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"codeexec/memory/filelock"
)

// installer is what INSTALLER says.
const installer = "codeexec"

// A Folder is a directory of packages. Several processes may change it at once.
type Folder struct {
	path string
	lock *filelock.Lock
}

// Open returns the folder at a path, which is made when something is added. Untrusted code may write in it
// and in the directory above, but not where the file lock is. Nothing is read yet.
func Open(path, lock string) *Folder {
	return &Folder{path: path, lock: filelock.New(lock)}
}

// Path returns the path of the folder.
func (f *Folder) Path() string { return f.path }

// An Installed is a package in a folder.
type Installed struct {
	Name    string `json:"name"`
	Version string `json:"version"` // "" where it was put there by hand
	Summary string `json:"summary,omitempty"`
	Files   int    `json:"files"`

	// Needs are the names of packages that it needs and that aren't in the folder.
	Needs []string `json:"needs,omitempty"`

	// ByHand means that nothing is known of it but its name. It can't be removed here.
	ByHand bool `json:"by_hand,omitempty"`

	// Problem says why it can't be used, or removed, as it is.
	Problem string `json:"problem,omitempty"`

	// Replaced is the version that [Folder.Add] has replaced.
	Replaced string `json:"replaced,omitempty"`

	info  string // the directory of its metadata
	files []string
	needs []string
}

// Add adds distributions, all or none, in the place of other versions of them. The files have the hashes that
// their wheels say; where they haven't, nothing is added. It closes none of them.
func (f *Folder) Add(ctx context.Context, dists ...*Distribution) ([]Installed, error) {
	root, err := f.open(true)
	if err != nil {
		return nil, fmt.Errorf("adding packages: %w", err)
	}
	defer root.Close()
	s := newSwap(root)
	defer s.close()
	var new []string
	for _, dist := range dists {
		paths, err := stage(ctx, root, s.new(), dist)
		if err != nil {
			return nil, fmt.Errorf("adding %s %s to %s: %w", dist.name, dist.version, f.path, err)
		}
		new = append(new, paths...)
	}
	if err := syncFiles(ctx, root, s.new(), new); err != nil {
		return nil, fmt.Errorf("adding packages: %w", err)
	}

	release, err := f.begin(ctx, root)
	if err != nil {
		return nil, fmt.Errorf("adding packages: %w", err)
	}
	defer release()
	before, err := list(root)
	if err != nil {
		return nil, fmt.Errorf("adding packages: %w", err)
	}
	replaced := map[string]string{}
	owned := map[string]bool{}
	for _, old := range before {
		for _, dist := range dists {
			if !old.ByHand && normalized(old.Name) == normalized(dist.name) {
				replaced[normalized(dist.name)] = old.Version
				for _, name := range old.files {
					owned[name] = true
				}
			}
		}
	}
	if err := s.replace(new, owned); err != nil {
		return nil, fmt.Errorf("adding packages: %w", err)
	}
	after, err := list(root)
	if err != nil {
		return nil, fmt.Errorf("adding packages: %w", err)
	}
	var added []Installed
	for _, dist := range dists {
		i := slices.IndexFunc(after, func(p Installed) bool { return p.info == dist.infoDir() })
		if i < 0 {
			continue // a script has removed it already
		}
		after[i].Replaced = replaced[normalized(dist.name)]
		added = append(added, after[i])
	}
	return added, nil
}

// List returns the packages in the folder, sorted by name.
func (f *Folder) List(ctx context.Context) ([]Installed, error) {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	defer root.Close()
	if err := f.recover(ctx, root); err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	all, err := list(root)
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}
	return all, nil
}

// Recover undoes a change that was cut short by the end of a process, so that scripts find the packages as they were
// before it. It waits for a change that is going on. It costs little where there is neither.
func (f *Folder) Recover(ctx context.Context) error {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for interrupted changes of packages: %w", err)
	}
	defer root.Close()
	return f.recover(ctx, root)
}

func (f *Folder) recover(ctx context.Context, root *os.Root) error {
	if !interrupted(root) {
		return nil
	}
	release, err := f.begin(ctx, root)
	if err != nil {
		return err
	}
	release()
	return nil
}

// ErrNotFound means that no package of a name is in the folder.
var ErrNotFound = errors.New("there is no such package")

// Remove removes a package with all of its files, also those that Python has compiled. The error is
// [ErrNotFound] if there is none.
func (f *Folder) Remove(ctx context.Context, name string) (Installed, error) {
	root, err := f.open(false)
	if errors.Is(err, fs.ErrNotExist) {
		return Installed{}, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	if err != nil {
		return Installed{}, fmt.Errorf("removing %s: %w", name, err)
	}
	defer root.Close()
	release, err := f.begin(ctx, root)
	if err != nil {
		return Installed{}, fmt.Errorf("removing %s: %w", name, err)
	}
	defer release()
	all, err := list(root)
	if err != nil {
		return Installed{}, fmt.Errorf("removing %s: %w", name, err)
	}
	i := slices.IndexFunc(all, func(p Installed) bool { return normalized(p.Name) == normalized(name) })
	if i < 0 {
		return Installed{}, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	found := all[i]
	if found.ByHand {
		return Installed{}, fmt.Errorf("%s was put there by hand, and it isn't known what belongs to it; delete it in %s", name, f.path)
	}
	s := newSwap(root)
	defer s.close()
	owned := map[string]bool{}
	for _, name := range found.files {
		owned[name] = true
	}
	if err := s.replace(nil, owned); err != nil {
		return Installed{}, fmt.Errorf("removing %s: %w", name, err)
	}
	return found, nil
}

// open opens the folder, and makes it if it is to.
func (f *Folder) open(create bool) (*os.Root, error) {
	above := filepath.Dir(f.path)
	if create {
		if err := os.MkdirAll(above, 0o700); err != nil {
			return nil, err
		}
	}
	parent, err := os.OpenRoot(above)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	base := filepath.Base(f.path)
	if create {
		if err := parent.Mkdir(base, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	// Without the dot it would be opened before it is known to be a directory, and a pipe block.
	return parent.OpenRoot(base + "/.")
}

// begin waits for the lock, and puts in order what killed processes have left.
func (f *Folder) begin(ctx context.Context, root *os.Root) (release func(), err error) {
	release, err = f.lock.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if err := tidy(root); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// stage writes the files of a distribution into a directory, with its RECORD, and returns their paths.
func stage(ctx context.Context, root *os.Root, dir string, dist *Distribution) ([]string, error) {
	info := dist.infoDir()
	files := append(slices.Clone(dist.files), file{
		path: info + "/INSTALLER",
		open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(installer + "\n")), nil },
	})
	var record []recordLine
	var paths []string
	left := int64(MaxBytes)
	for _, file := range files {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		line, err := writeFile(root, path.Join(dir, file.path), file, left)
		if err != nil {
			if inner, ok := errors.AsType[*fs.PathError](err); ok {
				err = inner.Err // the path is only that of the copy aside
			}
			return nil, fmt.Errorf("%s: %w", file.path, err)
		}
		left -= line.size
		record = append(record, line)
		paths = append(paths, file.path)
	}
	own := info + "/RECORD"
	record = append(record, recordLine{path: own})
	if err := root.MkdirAll(path.Join(dir, info), 0o700); err != nil {
		return nil, err
	}
	return append(paths, own), root.WriteFile(path.Join(dir, own), formatRecord(record), 0o600)
}

// writeFile writes a file of up to limit bytes, and checks its digest if it has one.
func writeFile(root *os.Root, name string, file file, limit int64) (line recordLine, err error) {
	r, err := file.open()
	if err != nil {
		return line, err
	}
	defer r.Close()
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return line, err
	}
	w, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return line, err
	}
	own, wanted := sha256.New(), file.newHash()
	writers := []io.Writer{w, own}
	if wanted != nil {
		writers = append(writers, wanted)
	}
	size, err := io.Copy(io.MultiWriter(writers...), io.LimitReader(r, limit+1))
	switch err = errors.Join(err, w.Close()); {
	case err != nil:
		return line, err
	case size > limit:
		return line, fmt.Errorf("there are more than %d bytes", MaxBytes)
	case wanted != nil && (encodeSum(wanted) != file.sum || file.size >= 0 && file.size != size):
		return line, errors.New("its contents aren't what RECORD says; the wheel is damaged, or was changed")
	}
	return recordLine{file.path, digest{"sha256", encodeSum(own), size}}, nil
}

// list returns the packages in a folder.
func list(root *os.Root) ([]Installed, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var all []Installed
	owned := map[string]bool{} // names in the folder itself
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), infoSuffix) || !entry.IsDir() {
			continue
		}
		p := describe(root, entry.Name())
		all = append(all, p)
		for _, name := range p.files {
			top, _, _ := strings.Cut(name, "/")
			owned[top] = true
		}
	}
	for _, entry := range entries {
		name, module := strings.CutSuffix(entry.Name(), ".py")
		if owned[entry.Name()] || strings.HasSuffix(name, infoSuffix) || !entry.IsDir() && !module || !isIdentifier(name) || name == "__pycache__" {
			continue
		}
		all = append(all, Installed{Name: name, ByHand: true})
	}
	slices.SortFunc(all, func(a, b Installed) int {
		return cmp.Or(cmp.Compare(normalized(a.Name), normalized(b.Name)), cmp.Compare(a.info, b.info))
	})
	known := map[string]bool{}
	for _, p := range all {
		known[normalized(p.Name)] = true
	}
	for i, p := range all {
		for _, name := range p.needs {
			if !known[normalized(name)] && !slices.Contains(all[i].Needs, name) {
				all[i].Needs = append(all[i].Needs, name)
			}
		}
	}
	return all, nil
}

// describe returns the package of a directory of metadata.
func describe(root *os.Root, info string) Installed {
	name, version, _ := strings.Cut(strings.TrimSuffix(info, infoSuffix), "-")
	p := Installed{Name: name, Version: version, info: info}
	data, err := readBounded(root, info+"/METADATA")
	if err == nil {
		var m metadata
		if m, err = parseMetadata(data); err == nil {
			p.Name, p.Version, p.Summary, p.needs = m.name, m.version, m.summary, m.needs()
		}
	}
	data, recordErr := readBounded(root, info+"/RECORD")
	var lines []recordLine
	if recordErr == nil {
		lines, recordErr = parseRecord(data)
	}
	if err = errors.Join(err, recordErr); err != nil {
		p.Problem = oneLine(err.Error())
	}
	// The metadata go with the package, also where RECORD has been lost.
	names := map[string]bool{}
	if entries, err := fs.ReadDir(root.FS(), info); err == nil {
		for _, entry := range entries {
			names[info+"/"+entry.Name()] = true
		}
	}
	for _, line := range lines {
		if checkPath(line.path) == nil {
			names[line.path] = true
		}
	}
	p.files = slices.Sorted(maps.Keys(names))
	p.Files = len(p.files)
	return p
}

// readBounded returns a file of metadata.
func readBounded(root *os.Root, name string) ([]byte, error) {
	return readUpTo(root, name, maxMetadata)
}

func readUpTo(root *os.Root, name string, limit int64) ([]byte, error) {
	if info, err := root.Stat(name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, fmt.Errorf("%s is no file, or too large", name)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}

// isIdentifier reports whether Python could import a module of that name.
func isIdentifier(name string) bool {
	for i, r := range name {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r < 0x80 && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != ""
}
