package packages

import (
	"archive/zip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ReadWheel opens a wheel and checks all of it but the contents of its files, which [Folder.Add] checks.
// sum is the SHA-256 of the wheel in hexadecimal that it must have, "" for any. The distribution must be
// closed.
func ReadWheel(name, sum string) (dist *Distribution, err error) {
	opened, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			opened.Close()
			err = fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
	}()
	info, err := opened.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a file")
	}
	if dist, err = readWheel(opened, info.Size(), filepath.Base(name), sum); err != nil {
		return nil, err
	}
	dist.close = opened.Close
	return dist, nil
}

// readWheel is [ReadWheel] for what is open, whose file has a name.
func readWheel(r io.ReaderAt, size int64, name, sum string) (*Distribution, error) {
	if size > MaxBytes {
		return nil, fmt.Errorf("it has %d bytes, the limit is %d", size, MaxBytes)
	}
	if sum != "" {
		if err := checkSum(io.NewSectionReader(r, 0, size), sum); err != nil {
			return nil, err
		}
	}
	claimed, err := parseWheelName(name)
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("it is no wheel: %w", err)
	}
	w := wheel{archive: archive, entries: map[string]*zip.File{}}
	return w.read(claimed)
}

func checkSum(r io.Reader, want string) error {
	h := sha256.New()
	if _, err := io.Copy(h, r); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); !strings.EqualFold(got, want) {
		return fmt.Errorf("its SHA-256 is %s, and not %s", got, strings.ToLower(want))
	}
	return nil
}

// wheelName is what the name of a wheel's file says.
type wheelName struct{ name, version string }

// parseWheelName reads {name}-{version}(-{build})?-{python}-{abi}-{platform}.whl, and refuses what isn't for
// every machine.
func parseWheelName(file string) (wheelName, error) {
	stem, ok := strings.CutSuffix(file, ".whl")
	parts := strings.Split(stem, "-")
	if !ok || len(parts) < 5 || len(parts) > 6 || slices.Contains(parts, "") || len(parts) == 6 && !startsWithDigit(parts[2]) {
		return wheelName{}, errors.New("the name of a wheel is NAME-VERSION-py3-none-any.whl")
	}
	tags := parts[len(parts)-3:]
	if !slices.Contains(strings.Split(tags[1], "."), "none") || !slices.Contains(strings.Split(tags[2], "."), "any") {
		return wheelName{}, &CompiledError{What: strings.Join(tags, "-")}
	}
	if !slices.ContainsFunc(strings.Split(tags[0], "."), isForPython) {
		return wheelName{}, fmt.Errorf("it is for %s, and not for Python %s", tags[0], Python)
	}
	return wheelName{parts[0], parts[1]}, nil
}

func startsWithDigit(s string) bool { return '0' <= s[0] && s[0] <= '9' }

// isForPython reports whether a tag such as py3 or cp312 is that of Python, or an older one.
func isForPython(tag string) bool {
	major, minor, _ := strings.Cut(Python, ".")
	rest, ok := strings.CutPrefix(tag, "py"+major)
	if !ok {
		rest, ok = strings.CutPrefix(tag, "cp"+major)
	}
	if !ok || rest == "" {
		return ok
	}
	wanted, err := strconv.Atoi(rest)
	have, _ := strconv.Atoi(minor)
	return err == nil && wanted <= have
}

// A wheel is one that is being read.
type wheel struct {
	archive *zip.Reader
	entries map[string]*zip.File // the files in it
	info    string               // the directory of its metadata
}

func (w *wheel) read(claimed wheelName) (*Distribution, error) {
	if err := w.checkEntries(); err != nil {
		return nil, err
	}
	dist, err := w.readMetadata(claimed)
	if err != nil {
		return nil, err
	}
	digests, err := w.readRecord()
	if err != nil {
		return nil, err
	}
	data := strings.TrimSuffix(w.info, infoSuffix) + ".data"
	left := map[string]int{}
	var targets fileNames
	for _, entry := range w.archive.File {
		if strings.HasSuffix(entry.Name, "/") {
			continue
		}
		target := entry.Name
		if rest, ok := strings.CutPrefix(target, data+"/"); ok {
			kind, rest, _ := strings.Cut(rest, "/")
			if kind != "purelib" && kind != "platlib" || rest == "" {
				left[kind]++
				continue
			}
			target = rest
		}
		if dir, rest, _ := strings.Cut(target, "/"); dir == w.info {
			if isSignature(rest) || rest == "RECORD" || rest == "INSTALLER" || rest == "REQUESTED" || rest == "direct_url.json" {
				continue // these are the installer's
			}
			target = dist.infoDir() + "/" + rest
		}
		if err := targets.add(target); err != nil {
			return nil, err
		}
		dist.files = append(dist.files, file{path: target, open: entry.Open, digest: digests[entry.Name]})
	}
	for _, kind := range []string{"scripts", "headers", "data"} {
		if n := left[kind]; n > 0 {
			dist.Notes = append(dist.Notes, fmt.Sprintf("left out, for there is no place for them: %d of its %s", n, kind))
		}
	}
	return dist, nil
}

// checkEntries checks names, kinds and sizes of what is in the archive.
func (w *wheel) checkEntries() error {
	var names fileNames
	var total uint64
	for _, entry := range w.archive.File {
		name := entry.Name
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			if err := checkPath(dir); err != nil {
				return err
			}
			continue
		}
		if err := names.add(name); err != nil {
			return err
		}
		if mode := entry.Mode(); !mode.IsRegular() {
			return fmt.Errorf("%q is a link or another special file", name)
		}
		if entry.Flags&1 != 0 {
			return fmt.Errorf("%q is encrypted", name)
		}
		if entry.Method != zip.Store && entry.Method != zip.Deflate {
			return fmt.Errorf("%q is compressed in a way that wheels aren't", name)
		}
		// A size that isn't true shows when the file is unpacked.
		if total += min(entry.UncompressedSize64, MaxBytes+1); total > MaxBytes {
			return fmt.Errorf("its files have more than %d bytes", MaxBytes)
		}
		w.entries[name] = entry
		if dir, _, ok := strings.Cut(name, "/"); ok && strings.HasSuffix(dir, infoSuffix) {
			if w.info != "" && w.info != dir {
				return fmt.Errorf("it has both %s and %s", w.info, dir)
			}
			w.info = dir
		}
	}
	if w.info == "" {
		return errors.New("it has no " + infoSuffix + " directory")
	}
	return nil
}

func (w *wheel) readMetadata(claimed wheelName) (*Distribution, error) {
	data, err := w.contents("METADATA")
	if err != nil {
		return nil, err
	}
	m, err := parseMetadata(data)
	if err != nil {
		return nil, err
	}
	if normalized(m.name) != normalized(claimed.name) || normalized(m.version) != normalized(claimed.version) {
		return nil, fmt.Errorf("its metadata are those of %s %s", m.name, m.version)
	}
	if !allowsPython(m.requiresPython, Python) {
		return nil, fmt.Errorf("it is for Python %s, and the sandbox has %s", m.requiresPython, Python)
	}
	if data, err = w.contents("WHEEL"); err != nil {
		return nil, err
	}
	header, err := parseHeaders(data)
	if err != nil {
		return nil, fmt.Errorf("WHEEL: %w", err)
	}
	if version := header.Get("Wheel-Version"); !strings.HasPrefix(version, "1.") {
		return nil, fmt.Errorf("it is of version %q of the wheel format; version 1 is known", version)
	}
	if !strings.EqualFold(header.Get("Root-Is-Purelib"), "true") {
		return nil, &CompiledError{What: "Root-Is-Purelib: " + header.Get("Root-Is-Purelib")}
	}
	return &Distribution{metadata: m}, nil
}

// readRecord returns what RECORD says of each file, and checks that it says it of all, and of no others.
func (w *wheel) readRecord() (map[string]digest, error) {
	data, err := w.contents("RECORD")
	if err != nil {
		return nil, err
	}
	lines, err := parseRecord(data)
	if err != nil {
		return nil, err
	}
	digests := make(map[string]digest, len(lines))
	for _, line := range lines {
		if strings.HasSuffix(line.path, "/") {
			continue
		}
		if w.entries[line.path] == nil {
			return nil, fmt.Errorf("RECORD: there is no file %q", line.path)
		}
		if _, twice := digests[line.path]; twice {
			return nil, fmt.Errorf("RECORD: %q is there twice", line.path)
		}
		digests[line.path] = line.digest
	}
	for name := range w.entries {
		dir, base := path.Split(name)
		if dir == w.info+"/" && (base == "RECORD" || isSignature(base)) {
			continue
		}
		d, listed := digests[name]
		switch {
		case !listed:
			return nil, fmt.Errorf("RECORD: it lacks %q", name)
		case d.newHash() == nil:
			return nil, fmt.Errorf("RECORD: %q has no hash that is good enough; it must be SHA-256 or better", name)
		}
	}
	return digests, nil
}

func isSignature(base string) bool { return base == "RECORD.jws" || base == "RECORD.p7s" }

// contents returns a file of the wheel's metadata.
func (w *wheel) contents(name string) ([]byte, error) {
	entry := w.entries[w.info+"/"+name]
	if entry == nil {
		return nil, fmt.Errorf("it has no %s/%s", w.info, name)
	}
	r, err := entry.Open()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, maxMetadata+1))
	if err == nil && len(data) > maxMetadata {
		err = fmt.Errorf("it has more than %d bytes", maxMetadata)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return data, nil
}
