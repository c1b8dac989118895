package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// A TrustState says what the user has said about a file of a project.
type TrustState string

const (
	trustUnknown TrustState = "new"     // nothing
	trustChanged TrustState = "changed" // they trusted something else that it was then
	trustGiven   TrustState = "trusted"
)

// Trusted reports whether the file counts as it is.
func (s TrustState) Trusted() bool { return s == trustGiven }

// A Project is a directory with files that define servers.
type Project struct {
	Dir   string // absolute, without symbolic links
	Files []ProjectFile
}

// A ProjectFile is a file of a project that defines servers.
type ProjectFile struct {
	Path    string
	State   TrustState
	Servers []Preview // in the order of the file
	Problem string    // why the file can't be used, or empty
	sum     string
	named   map[string]string // checksums of the files that its entries name, see [trustStore]
}

// A Preview is a server as its file spells it, for people to look at. Variables
// are not expanded, so that it shows where values come from and none of the
// environment's secrets; the values of env and headers are left out.
type Preview struct {
	Name      string
	Transport string
	Target    string // command line, or URL without user and query
	EnvFile   string // as the entry names it; empty if it names none
	Problem   string // why the entry can't be used, or empty
}

// InspectProject reads all files of a directory that any client would take
// servers from. Those of the sources of opts count once [Project.Trust] has
// remembered them, and until one of them changes or a further one appears.
//
// What is remembered is the files themselves, and the files that values of their
// entries come from ("envFile", ${file:…}); not the programs that they start,
// which may be the project's too.
func InspectProject(ctx context.Context, opts Options, dir string) (*Project, error) {
	dir, err := realDir(dir)
	if err != nil {
		return nil, err
	}
	opts.Dir = dir
	l := newLoader(opts)
	project := &Project{Dir: dir}
	seen := make(map[string]bool)
	for _, source := range Sources() {
		for _, at := range l.locations(source) {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if at.project == "" || seen[at.path] {
				continue
			}
			seen[at.path] = true
			if file, ok := l.inspect(at); ok {
				project.Files = append(project.Files, file)
			}
		}
	}
	return project, nil
}

// inspect reads one file. It reports false for one that defines no servers.
func (l *loader) inspect(at location) (ProjectFile, bool) {
	file := ProjectFile{Path: at.path}
	data, err := l.read(at)
	if err != nil {
		file.Problem = err.Error()
		return file, true
	}
	if data == nil {
		return file, false
	}
	file.sum = checksum(data)
	file.State = l.trust.check(at.project, at.path, data)
	entries, err := at.parse(data, at)
	if errors.Is(err, errNoServers) {
		return file, false
	}
	if err != nil {
		file.Problem = err.Error()
	}
	reader := &loader{opts: l.opts, self: l.self, named: make(map[string]string)}
	for _, e := range entries {
		file.Servers = append(file.Servers, e.preview())
		reader.resolve(at, e) // for the files that it reads; what is wrong is said later
	}
	file.named = reader.named
	for path, sum := range file.named {
		if file.State.Trusted() && !l.trust.has(at.project, path, sum) {
			file.State = trustChanged
		}
	}
	return file, true
}

// errNotTrusted says that a file that an entry of a project names isn't what was
// trusted.
var errNotTrusted = errors.New("it is not what was trusted")

// readNamed reads a file that an entry names. Of a project's entries it must be
// as it was when the project was trusted.
func (l *loader) readNamed(at location, path string, limit int) ([]byte, error) {
	data, err := readFile(path, limit)
	if at.project == "" {
		return data, err
	}
	sum := noSum
	if err == nil {
		sum = checksum(data)
	}
	switch {
	case l.named != nil:
		l.named[relative(at.project, path)] = sum
	case !l.trust.has(at.project, relative(at.project, path), sum):
		return nil, errNotTrusted
	}
	return data, err
}

// realDir resolves symbolic links: the same directory is trusted under all of
// its names.
func realDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		return "", &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
	}
	return dir, nil
}

// Trust remembers the project's files as they were read.
func (p *Project) Trust(stateDir string) error {
	sums := make(map[string]string)
	for _, file := range p.Files {
		if file.sum != "" {
			sums[relative(p.Dir, file.Path)] = file.sum
			maps.Copy(sums, file.named)
		}
	}
	return changeTrust(stateDir, func(t trustStore) { t[p.Dir] = sums })
}

// RevokeTrust forgets a project. It reports whether it was known.
func RevokeTrust(stateDir, dir string) (known bool, err error) {
	real, err := realDir(dir)
	if err != nil {
		real = absolute(dir) // it is gone, but may be remembered
	}
	err = changeTrust(stateDir, func(t trustStore) {
		_, known = t[real]
		delete(t, real)
	})
	return known, err
}

// A trustStore holds the checksums of the files of each trusted project, and of
// those that their entries name: by its directory, and then by [relative].
type trustStore map[string]map[string]string

// noSum is in the place of the checksum of a file that can't be read.
const noSum = "none"

// has reports whether the file at a path as of [relative] was trusted with that
// checksum.
func (t trustStore) has(dir, path, sum string) bool {
	real, err := realDir(dir)
	return err == nil && t[real][path] == sum
}

// check looks up a file of the project dir.
func (t trustStore) check(dir, path string, data []byte) TrustState {
	real, err := realDir(dir)
	if err != nil {
		return trustUnknown
	}
	files, known := t[real]
	switch sum := files[relative(dir, path)]; {
	case !known:
		return trustUnknown
	case sum == checksum(data):
		return trustGiven
	}
	return trustChanged // or appeared since: not what was looked at
}

// relative is how the trust store names a file: by its path in the directory if
// it is in there, with slashes.
func relative(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		path = rel
	}
	return filepath.ToSlash(path)
}

func checksum(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// trustPath is the file of the trust store. The dot keeps it out of the state
// directory's configuration files.
func trustPath(stateDir string) string { return filepath.Join(stateDir, ".trust.json") }

// trustFile is the content of the trust store's file.
type trustFile struct {
	Projects trustStore `json:"projects"`
}

// readTrust reads the trust store. The result isn't nil.
func readTrust(stateDir string) (trustStore, error) {
	if stateDir == "" {
		return trustStore{}, nil
	}
	data, err := readFile(trustPath(stateDir), MaxClientFileSize)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return trustStore{}, nil
	case err != nil:
		return trustStore{}, errors.New(reason(err))
	}
	var file trustFile
	if err := json.Unmarshal(data, &file); err != nil {
		return trustStore{}, errors.New("the file is damaged; remove it, and trust projects again")
	}
	if file.Projects == nil {
		file.Projects = trustStore{}
	}
	return file.Projects, nil
}

func changeTrust(stateDir string, change func(trustStore)) error {
	if stateDir == "" {
		return errors.New("there is no state directory to remember it in")
	}
	store, err := readTrust(stateDir)
	if err != nil {
		return fmt.Errorf("%s: %w", trustPath(stateDir), err)
	}
	before := maps.Clone(store)
	change(store)
	if maps.EqualFunc(before, store, maps.Equal) {
		return nil
	}
	data, err := json.MarshalIndent(trustFile{store}, "", "\t")
	if err != nil {
		return err
	}
	return WriteFile(trustPath(stateDir), append(data, '\n'), 0o600)
}

// preview shows an entry.
func (e entry) preview() Preview {
	p := Preview{Name: e.name, EnvFile: ShellWord(e.envFile)}
	if e.envFile == "" {
		p.EnvFile = ""
	}
	kind, err := e.kind()
	switch {
	case checkName(e.name) != nil:
		p.Name = fmt.Sprintf("%.100q", e.name)
		err = checkName(e.name)
	case e.err != nil:
		err = e.err
	}
	if err != nil {
		p.Problem = err.Error()
		return p
	}
	p.Transport = kind
	if kind != TransportStdio {
		p.Target = PublicURL(e.url)
		return p
	}
	words := append([]string{e.command}, e.args...)
	for _, key := range slices.Backward(slices.Sorted(maps.Keys(e.env))) {
		words = slices.Insert(words, 0, key+"=…")
	}
	p.Target = shellLine(words)
	return p
}
