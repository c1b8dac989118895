package packages

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"codeexec/bridge/config/syntax"
)

// ReadTree returns the distribution of a directory, which is a package of modules, with an __init__.py, or a
// project with packages in it or in its src. Name and version are those of a project's pyproject.toml, where
// it has them, else the name of the directory and "0". No code of the project's is executed, so what a build
// would generate isn't there. The distribution must be closed.
func ReadTree(dir string) (dist *Distribution, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return nil, err
	}
	t := tree{root: root, dist: &Distribution{metadata: metadata{name: filepath.Base(abs), version: "0"}, close: root.Close}}
	if err := t.read(filepath.Base(abs)); err != nil {
		root.Close()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return t.dist, nil
}

// A tree is a directory that is being read.
type tree struct {
	root  *os.Root
	dist  *Distribution
	names fileNames
	total int64
}

func (t *tree) read(base string) error {
	if t.isFile("__init__.py") {
		if !isIdentifier(base) {
			return fmt.Errorf("%q can't be the name of a package in Python", base)
		}
		if err := t.add(".", base); err != nil {
			return err
		}
	} else {
		if err := t.readProject(); err != nil {
			return err
		}
		from, found, err := t.findPackages()
		if err != nil {
			return err
		}
		for _, name := range found {
			if err := t.add(path.Join(from, name), name); err != nil {
				return err
			}
		}
	}
	if !namePattern.MatchString(t.dist.name) || !versionPattern.MatchString(t.dist.version) {
		return fmt.Errorf("%q %q is no name and version of a package", t.dist.name, t.dist.version)
	}
	t.addMetadata()
	return nil
}

func (t *tree) isFile(name string) bool {
	info, err := t.root.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// readProject takes name and version from pyproject.toml.
func (t *tree) readProject() error {
	data, err := readBounded(t.root, "pyproject.toml")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	file, err := syntax.TOML(data)
	if err != nil {
		return fmt.Errorf("pyproject.toml: %w", err)
	}
	project, _ := file["project"].(map[string]any)
	text := func(key string) string { // "" where it is missing, or made by a build
		value, _ := project[key].(string)
		return oneLine(value)
	}
	m := &t.dist.metadata
	m.name = cmp.Or(text("name"), m.name)
	m.version = cmp.Or(text("version"), m.version)
	m.summary, m.requiresPython = text("description"), text("requires-python")
	if !allowsPython(m.requiresPython, Python) {
		return fmt.Errorf("it is for Python %s, and the sandbox has %s", m.requiresPython, Python)
	}
	dependencies, _ := project["dependencies"].([]any)
	for _, dependency := range dependencies {
		if requirement, ok := dependency.(string); ok {
			m.requires = append(m.requires, oneLine(requirement))
		}
	}
	return nil
}

// besides are directories of projects that hold no package of theirs.
var besides = []string{"benchmarks", "build", "dist", "doc", "docs", "examples", "scripts", "test", "tests", "tools"}

// findPackages returns the directory with the packages and modules of a project, and their names.
func (t *tree) findPackages() (from string, found []string, err error) {
	for _, from := range []string{"src", "."} {
		entries, err := fs.ReadDir(t.root.FS(), from)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, err
		}
		for _, entry := range entries {
			name := entry.Name()
			switch module, isModule := strings.CutSuffix(name, ".py"); {
			case entry.IsDir() && isIdentifier(name) && t.isFile(path.Join(from, name, "__init__.py")):
				if from == "src" || !slices.Contains(besides, name) {
					found = append(found, name)
				}
			case isModule && isIdentifier(module) && (from == "src" || normalized(module) == normalized(t.dist.name)):
				found = append(found, name)
			}
		}
		if found != nil {
			return from, found, nil
		}
	}
	return "", nil, errors.New("it is no Python package (a directory with an __init__.py), and there is none in it or in its src")
}

// add adds a file, or a directory with all that is in it.
func (t *tree) add(from, to string) error {
	return fs.WalkDir(t.root.FS(), from, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if name != from && (base == "__pycache__" || strings.HasPrefix(base, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(base, ".pyc") || strings.HasPrefix(base, ".") {
			return nil
		}
		target := to
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			target = path.Join(to, rest)
		} else if from == "." {
			target = path.Join(to, name)
		}
		if !entry.Type().IsRegular() {
			return fmt.Errorf("%s is a link or another special file; put a copy in its place", name)
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if t.total += info.Size(); t.total > MaxBytes {
			return fmt.Errorf("its files have more than %d bytes", MaxBytes)
		}
		if err := t.names.add(target); err != nil {
			return err
		}
		t.dist.files = append(t.dist.files, file{path: target, open: func() (io.ReadCloser, error) { return t.root.Open(name) }})
		return nil
	})
}

// addMetadata adds what a wheel would have.
func (t *tree) addMetadata() {
	m := t.dist.metadata
	var text strings.Builder
	fmt.Fprintf(&text, "Metadata-Version: 2.1\nName: %s\nVersion: %s\n", m.name, m.version)
	if m.summary != "" {
		fmt.Fprintf(&text, "Summary: %s\n", m.summary)
	}
	for _, requirement := range m.requires {
		fmt.Fprintf(&text, "Requires-Dist: %s\n", requirement)
	}
	for name, contents := range map[string]string{
		"METADATA": text.String(),
		"WHEEL":    "Wheel-Version: 1.0\nGenerator: " + installer + "\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
	} {
		t.dist.files = append(t.dist.files, file{
			path: t.dist.infoDir() + "/" + name,
			open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(contents)), nil },
		})
	}
}
