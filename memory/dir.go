package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	// tempName is that of the file that a commit writes and then gives its name. There is one at a
	// time, under the lock.
	tempName = ".commit.tmp"

	// asideSuffix is put after the name of a damaged file that a save replaces.
	asideSuffix = ".damaged"

	// maxAside is how many damaged files of one name are kept.
	maxAside = 100

	// maxFiles times Limits.Keys is how many files List looks at.
	maxFiles = 4

	// maxListed is how many bytes of metadata List returns.
	maxListed = 64 << 20
)

// A Dir is a Store in a directory of JSON files. It holds nothing open between operations, so there
// is nothing to close. A process should have one for each directory: the goroutines that use it then
// queue for the lock fairly.
type Dir struct {
	path   string
	limits Limits
	lock   *commitLock
	sync   func(*os.File) error
}

// OpenDir returns the store in a directory, which is made, with the one that it is in, by the first
// commit. Untrusted code may write in both. lock is the path of a file that all processes which use
// the directory name, and that is in neither of them; it is made where it doesn't exist, and never
// removed. Nothing is read yet.
func OpenDir(path, lock string, limits Limits) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening memory: %w", err)
	}
	if lock, err = filepath.Abs(lock); err != nil {
		return nil, fmt.Errorf("opening memory: %w", err)
	}
	above := filepath.Dir(path)
	if rel, err := filepath.Rel(above, lock); err == nil && filepath.IsLocal(rel) {
		return nil, fmt.Errorf("opening memory: the lock %s must not be in %s, where untrusted code may write", lock, above)
	}
	return &Dir{path: path, limits: limits.WithDefaults(), lock: newCommitLock(lock), sync: (*os.File).Sync}, nil
}

// Get implements Store.
func (d *Dir) Get(ctx context.Context, key string) (Record, error) {
	if err := CheckKey(key); err != nil {
		return Record{}, err
	}
	if ctx.Err() != nil {
		return Record{}, context.Cause(ctx)
	}
	root, err := d.open()
	if errors.Is(err, fs.ErrNotExist) {
		return Record{}, notFound(key)
	}
	if err != nil {
		return Record{}, fmt.Errorf("loading memory %q: %w", abridge(key), err)
	}
	defer root.Close()
	found, err := d.find(root, key)
	switch {
	case err != nil:
		return Record{}, fmt.Errorf("loading memory %q: %w", abridge(key), err)
	case found.damage != nil:
		return Record{}, found.damage
	case found.file == "":
		return Record{}, notFound(key)
	}
	return found.record, nil
}

func notFound(key string) error {
	return fmt.Errorf("memory %q: %w", abridge(key), ErrNotFound)
}

// CompareAndSet implements Store.
func (d *Dir) CompareAndSet(ctx context.Context, rec Record) (Record, error) {
	rec, err := d.limits.Check(rec)
	if err != nil {
		return Record{}, err
	}
	data := encode(rec)
	err = d.change(ctx, func(root *os.Root) error { return d.commit(root, rec, data) })
	if err != nil {
		return Record{}, fmt.Errorf("saving memory %q: %w", abridge(rec.Key), err)
	}
	rec.Revision = revision(data)
	return rec, nil
}

// Delete implements Store.
func (d *Dir) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// Nothing is made on the disk in order to say that nothing is there.
	if root, err := d.open(); errors.Is(err, fs.ErrNotExist) {
		return notFound(key)
	} else if err == nil {
		root.Close()
	}
	if err := d.change(ctx, func(root *os.Root) error { return d.remove(root, key) }); err != nil {
		return fmt.Errorf("deleting memory %q: %w", abridge(key), err)
	}
	return nil
}

// List implements Store. A file of which the record isn't loaded by the key that it holds, because
// its name is that of another key, has Err set.
func (d *Dir) List(ctx context.Context, prefix string) ([]Info, error) {
	list, err := d.list(ctx, prefix)
	if err != nil {
		return nil, fmt.Errorf("listing memory: %w", err)
	}
	return list, nil
}

// open opens the directory.
func (d *Dir) open() (*os.Root, error) {
	parent, err := os.OpenRoot(filepath.Dir(d.path))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	// Without the dot it would be opened before it is known to be a directory, and a pipe block.
	return parent.OpenRoot(filepath.Base(d.path) + "/.")
}

// create opens the directory and makes it if there is none.
func (d *Dir) create() (*os.Root, error) {
	root, err := d.open()
	if !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	above := filepath.Dir(d.path)
	if err := os.MkdirAll(above, 0o700); err != nil {
		return nil, err
	}
	parent, err := os.OpenRoot(above)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	if err := parent.Mkdir(filepath.Base(d.path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := d.syncDir(parent); err != nil {
		return nil, err
	}
	return d.open()
}

// change lets do work on the directory under the lock, and makes what it did durable.
func (d *Dir) change(ctx context.Context, do func(*os.Root) error) error {
	release, err := d.lock.Acquire(ctx)
	if err != nil {
		return err
	}
	root, err := d.create()
	if err != nil {
		release()
		return err
	}
	defer root.Close()
	err = do(root)
	release()
	if err != nil {
		return err
	}
	// Others needn't wait for this: what they do is durable no earlier than what we did.
	return d.syncDir(root)
}

// syncDir makes the names in a directory durable.
func (d *Dir) syncDir(root *os.Root) error {
	if runtime.GOOS == "windows" {
		return nil // it can't, and needn't: NTFS keeps a journal of them
	}
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return d.sync(dir)
}

// commit replaces the record of rec.Key, or what is damaged of it, by the contents of a file.
func (d *Dir) commit(root *os.Root, rec Record, data []byte) error {
	found, err := d.find(root, rec.Key)
	if err != nil {
		return err
	}
	if found.revision() != rec.Revision {
		return ErrConflict
	}
	target := found.file
	if own := namesOf(rec.Key).own; found.damage != nil && !slices.Contains(own, target) || target == "" {
		if target, err = d.free(root, own); err != nil {
			return err
		}
	}
	if err := d.writeTemp(root, data); err != nil {
		return err
	}
	restore := func() {}
	if found.damage != nil {
		restore, err = setAside(root, found.file)
	}
	if err == nil {
		err = root.Rename(tempName, target)
	}
	if err != nil {
		restore()
		root.Remove(tempName)
		return err
	}
	if found.damage != nil && found.file != target {
		root.Remove(found.file)
	}
	return nil
}

// free returns the first of the names of a new record that nothing has, if there may be another
// record.
func (d *Dir) free(root *os.Root, names []string) (string, error) {
	count := 0
	for _, err := range recordFiles(root) {
		if err != nil {
			return "", err
		}
		if count++; count >= d.limits.Keys {
			return "", &LimitError{What: "records", Limit: d.limits.Keys, Actual: count + 1}
		}
	}
	for _, name := range names {
		if _, err := root.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name, nil
		} else if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("%s: holds another key", strings.Join(names, ", "))
}

// writeTemp makes the contents of a file durable under the name tempName.
func (d *Dir) writeTemp(root *os.Root, data []byte) (err error) {
	if err := root.RemoveAll(tempName); err != nil {
		return err
	}
	file, err := root.OpenFile(tempName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			root.Remove(tempName)
		}
	}()
	_, err = file.Write(data)
	if err == nil {
		err = d.sync(file)
	}
	return errors.Join(err, file.Close())
}

// setAside gives a damaged file a second name, so that there is no moment without it; what a link
// can't be made to is renamed. It returns a function that undoes that.
func setAside(root *os.Root, name string) (restore func(), err error) {
	aside := name + asideSuffix
	for i := 2; i <= maxAside; i++ {
		if _, err := root.Lstat(aside); err != nil {
			break
		}
		aside = fmt.Sprintf("%s%s-%d", name, asideSuffix, i)
	}
	if root.Link(name, aside) == nil {
		return func() { root.Remove(aside) }, nil
	}
	return func() { root.Rename(aside, name) }, root.Rename(name, aside)
}

// remove removes all files that are records of a key.
func (d *Dir) remove(root *os.Root, key string) error {
	var files []string
	for _, name := range namesOf(key).all() {
		found, err := d.look(root, key, name)
		if err != nil {
			return err
		}
		if found.file != "" {
			files = append(files, name)
		}
	}
	if files == nil {
		return ErrNotFound
	}
	// The one that is loaded goes last: a crash doesn't bring an older one back.
	for _, name := range slices.Backward(files) {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// found is what there is for a key: a record, something damaged, or, where file is "", nothing.
type found struct {
	file   string
	record Record
	damage *DamagedError
}

func (f found) revision() string {
	if f.damage != nil {
		return f.damage.Revision
	}
	return f.record.Revision
}

// find returns what there is for a key.
func (d *Dir) find(root *os.Root, key string) (found, error) {
	for _, name := range namesOf(key).all() {
		if found, err := d.look(root, key, name); err != nil || found.file != "" {
			return found, err
		}
	}
	return found{}, nil
}

// look returns what a file is for a key, of which it has one of the names.
func (d *Dir) look(root *os.Root, key, name string) (found, error) {
	rec, damage, err := d.read(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return found{}, nil
	case err != nil:
		return found{}, err
	case damage != nil:
		if slices.Contains(namesOf(key).old, name) {
			return found{}, nil // more likely another key's
		}
		damage.Key = key
		return found{file: name, damage: damage}, nil
	case rec.Key != key:
		return found{}, nil
	}
	return found{file: name, record: rec}, nil
}

// read returns the record in a file, or what is wrong with it. The error is about the file system.
func (d *Dir) read(root *os.Root, name string) (Record, *DamagedError, error) {
	damaged := func(revision, reason string) (Record, *DamagedError, error) {
		return Record{}, &DamagedError{File: name, Reason: reason, Revision: "damaged-" + revision}, nil
	}
	special := func(info fs.FileInfo, reason string) (Record, *DamagedError, error) {
		state := fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
		return damaged(revision([]byte(state)), reason)
	}

	file, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		// What is there may still be something that can't be opened or leads nowhere.
		if info, lerr := root.Lstat(name); lerr == nil && !info.Mode().IsRegular() {
			return special(info, "it is "+kind(info.Mode())+" that can't be opened")
		}
		return Record{}, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return Record{}, nil, err
	}
	if !info.Mode().IsRegular() {
		return special(info, "it is "+kind(info.Mode()))
	}
	limit := d.limits.maxFile()
	tooLarge := fmt.Sprintf("it has more than %d bytes", limit)
	if info.Size() > int64(limit) {
		return special(info, tooLarge)
	}
	data := make([]byte, 0, info.Size()+1)
	for len(data) <= limit { // it may have grown
		n, err := file.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		if err == io.EOF {
			break
		}
		if err != nil {
			return Record{}, nil, err
		}
		data = slices.Grow(data, 1)
	}
	if len(data) > limit {
		return special(info, tooLarge)
	}
	rec, err := d.limits.decode(data, info.ModTime())
	if err != nil {
		return damaged(revision(data), err.Error())
	}
	rec.Revision = revision(data)
	return rec, nil, nil
}

// kind names what isn't a regular file.
func kind(mode fs.FileMode) string {
	switch mode.Type() {
	case fs.ModeDir:
		return "a directory"
	case fs.ModeSymlink:
		return "a symbolic link"
	case fs.ModeNamedPipe:
		return "a pipe"
	case fs.ModeSocket:
		return "a socket"
	}
	return "a device"
}

func revision(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:16])
}

func (d *Dir) list(ctx context.Context, prefix string) ([]Info, error) {
	root, err := d.open()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()

	// Of several files for a key the one that find returns counts: that with the lowest rank.
	type ranked struct {
		Info
		rank int
	}
	best := map[string]ranked{}
	files, metadata := 0, 0
	for name, err := range recordFiles(root) {
		if err != nil {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if files++; files > maxFiles*d.limits.Keys {
			return nil, &LimitError{What: "files in the directory", Limit: maxFiles * d.limits.Keys, Actual: files}
		}
		info, rank, err := d.describe(root, name)
		if err != nil || !strings.HasPrefix(info.Key, prefix) {
			continue
		}
		if old, ok := best[info.Key]; ok && old.rank <= rank {
			continue
		}
		if metadata += len(info.Metadata); metadata > maxListed {
			return nil, &LimitError{What: "bytes of metadata in the list", Limit: maxListed, Actual: metadata}
		}
		best[info.Key] = ranked{info, rank}
	}
	list := make([]Info, 0, len(best))
	for _, key := range slices.Sorted(maps.Keys(best)) {
		list = append(list, best[key].Info)
	}
	return list, nil
}

// describe returns what List says of a file, and its rank among the files that are listed under that
// key. The error is fs.ErrNotExist if the file has been removed.
func (d *Dir) describe(root *os.Root, name string) (info Info, rank int, err error) {
	const last = math.MaxInt
	rankFor := func(key string) int {
		if i := slices.Index(namesOf(key).all(), name); i >= 0 {
			return i
		}
		return last
	}

	listed := strings.ToValidUTF8(strings.TrimSuffix(name, extension), "\uFFFD")
	rec, damage, err := d.read(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Info{}, 0, err
	case err != nil:
		return Info{Key: listed, Err: err}, rankFor(listed), nil
	case damage != nil:
		damage.Key = listed
		return Info{Key: listed, Err: damage}, rankFor(listed), nil
	}
	rank = rankFor(rec.Key)
	if rank == last {
		err := fmt.Errorf("%s holds the key %q, whose file is named %s; rename it", name, abridge(rec.Key), namesOf(rec.Key).own[0])
		return Info{Key: listed, Err: err}, last, nil
	}
	info = Info{
		Key:      rec.Key,
		Metadata: rec.Metadata,
		Created:  rec.Created,
		Updated:  rec.Updated,
		Size:     len(rec.Value),
		Revision: rec.Revision,
	}
	return info, rank, nil
}

// recordFiles yields the names in a directory that a record may have, and an error if it can't be
// read.
func recordFiles(root *os.Root) func(yield func(string, error) bool) {
	return func(yield func(string, error) bool) {
		dir, err := root.Open(".")
		if err != nil {
			yield("", err)
			return
		}
		defer dir.Close()
		for {
			names, err := dir.Readdirnames(1024)
			for _, name := range names {
				if len(name) > len(extension) && strings.HasSuffix(name, extension) && !yield(name, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
		}
	}
}
