package packages

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// MaxFiles is the number of files that a distribution may have.
	MaxFiles = 10_000

	// MaxBytes is the number of bytes that they may have together.
	MaxBytes = 256 << 20
)

// A Distribution is what can be added to a [Folder]: the modules of a package, with its name and version.
type Distribution struct {
	metadata
	files []file

	// Notes say what is left out of it.
	Notes []string

	close func() error
}

// Name returns the name of the distribution, as its author writes it.
func (d *Distribution) Name() string { return d.name }

// Close frees what it was read from.
func (d *Distribution) Close() error {
	if d.close == nil {
		return nil
	}
	return d.close()
}

// A file is one of a distribution's.
type file struct {
	path string // in the folder, with slashes
	open func() (io.ReadCloser, error)
	digest
}

// infoDir is the directory of the distribution's metadata.
func (d *Distribution) infoDir() string {
	return separators.ReplaceAllString(d.name, "_") + "-" + strings.ReplaceAll(d.version, "-", "_") + infoSuffix
}

const infoSuffix = ".dist-info"

// fileNames checks the names of a distribution's files as they are added.
type fileNames struct {
	spelled map[string]string // what each file and directory is called, by the name without case
	files   map[string]bool   // those without case that are files
}

// add returns an error for a name that a file may not have beside the others.
func (n *fileNames) add(name string) error {
	if err := checkPath(name); err != nil {
		return err
	}
	if len(n.files) >= MaxFiles {
		return fmt.Errorf("there are more than %d files", MaxFiles)
	}
	if n.spelled == nil {
		n.spelled, n.files = map[string]string{}, map[string]bool{}
	}
	for at := name; at != "."; at = path.Dir(at) {
		folded := strings.ToLower(at)
		old, known := n.spelled[folded]
		switch {
		case known && old != at:
			return fmt.Errorf("%q and %q are one file where case doesn't count", old, at)
		case known && at == name:
			return fmt.Errorf("there are two files %q", name)
		case n.files[folded]:
			return fmt.Errorf("%q is a file and a directory", at)
		}
		n.spelled[folded] = at
	}
	n.files[strings.ToLower(name)] = true
	return nil
}

// compiled is the end of the name of a file with machine code.
var compiled = regexp.MustCompile(`(?i)\.(so|pyd|dylib|dll)(\.\d+)*$`)

// checkPath returns an error for a name that leads out of a directory on some system, that can't be that of a
// file, or is that of machine code.
func checkPath(name string) error {
	switch {
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return fmt.Errorf("%q is no name of a file", name)
	case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:`):
		return fmt.Errorf("%q leads out of the package's directory", name)
	case compiled.MatchString(name):
		return &CompiledError{What: name}
	}
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > 255 || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return fmt.Errorf("%q can't be the name of a file everywhere", part)
		}
	}
	if strings.HasPrefix(name, asidePrefix) {
		return errors.New("names that begin with " + asidePrefix + " are reserved")
	}
	return nil
}

// A CompiledError reports machine code, which the sandbox can't run.
type CompiledError struct {
	What string // a file, or the tags of a wheel
}

func (e *CompiledError) Error() string {
	return fmt.Sprintf("%s: it is compiled for a machine, and the sandbox runs Python only; a wheel whose name ends with -py3-none-any.whl would do", e.What)
}
