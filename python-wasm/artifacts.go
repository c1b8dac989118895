// Package pythonwasm holds CPython for WASI, ready to run: the module and the
// memory of an interpreter that has started and imported what scripts use most.
//
// The artifacts are made by build.sh in this folder (make python-wasm) and
// embedded. A checkout without them compiles; [Open] then says what to do.
//
// # Why the module and its memory are kept apart
//
// Starting CPython takes 100 to 300 ms. A copy-on-write mapping of the memory
// of one that has started takes less than one. So the module carries no data
// segments at all: instantiating it writes nothing, and [Artifacts.ReadMemory] gives
// the linear memory to map.
//
// # Why fuel checks
//
// Go can't preempt machine code that wazero made: a collection of the host's
// garbage would wait until the guest returns, and nothing could stop an endless
// loop. Every loop header of the module counts down and calls the imported
// codeexec.yield each [Manifest.FuelInterval] headers; there the scheduler gets
// in, and a run that must end is ended. It costs 4 to 7 % of speed; wazero's own
// check of a context at every loop header made programs three times slower.
//
// # Why the standard library is frozen
//
// Importing from marshalled code inside the module is twice as fast as from a
// zip archive in the file system, and leaves less memory private to a fork.
package pythonwasm

import (
	"archive/zip"
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/klauspost/compress/zstd"
)

// The names of the artifacts, in the folder that is embedded.
const (
	ModuleFile   = "module.wasm.zst"
	MemoryFile   = "memory.zst"
	RootFSFile   = "rootfs.zip"
	ManifestFile = "manifest.json"
)

// The import modules of the guest besides wasi_snapshot_preview1: the one that it
// calls its host by, and what its files need and WASI lacks.
const (
	HostModule  = "codeexec"
	FilesModule = "codeexec_files"
)

// PageSize is the unit of linear memory, in bytes.
const PageSize = 65536

// Mounts are the folders of the sandbox that must exist in "/", the one
// preopened directory. The snapshot was taken in the second, the working directory.
var Mounts = [...]string{"tmp", "workspace", "projects"}

// Environ are the environment variables of the sandbox, as name and value. The
// snapshot has read them, so a session can't be given others.
var Environ = [...][2]string{
	{"HOME", "/workspace"},
	{"LANG", "C.UTF-8"},
	{"PATH", ""},
	{"TMPDIR", "/tmp"},
	{"PWD", "/workspace"},
}

// A Manifest says what the artifacts are.
type Manifest struct {
	CPython      string    `json:"cpython"`       // version, such as "3.13.5"
	ModuleBytes  int64     `json:"module_bytes"`  // uncompressed size of the module
	MemoryBytes  int64     `json:"memory_bytes"`  // size of the snapshot, a multiple of PageSize
	FuelInterval int       `json:"fuel_interval"` // loop headers between two yields
	Interrupt    Interrupt `json:"interrupt"`
}

// Interrupt holds the addresses in linear memory of the words that make a
// SIGINT pending in the interpreter. Written in the order of the fields, from
// any thread, they interrupt Python code within milliseconds.
type Interrupt struct {
	Tripped     uint32 `json:"tripped"`      // _PyRuntime.signals.handlers[SIGINT].tripped, set to 1
	IsTripped   uint32 `json:"is_tripped"`   // _PyRuntime.signals.is_tripped, set to 1
	EvalBreaker uint32 `json:"eval_breaker"` // the thread state's eval_breaker; its low byte gets Bit
	Bit         uint32 `json:"bit"`          // _PY_SIGNALS_PENDING_BIT
}

//go:embed all:artifacts
var embedded embed.FS

// ErrNotBuilt means that this binary was compiled without the artifacts.
var ErrNotBuilt = errors.New("this build of codeexec holds no Python; run `make python-wasm`, then build again")

// Artifacts gives access to what was embedded.
type Artifacts struct {
	Manifest Manifest
	files    fs.FS
}

// Open reads the manifest of the embedded artifacts. It returns [ErrNotBuilt]
// where there are none.
func Open() (*Artifacts, error) {
	files, err := fs.Sub(embedded, "artifacts")
	if err != nil {
		return nil, err
	}
	return open(files)
}

func open(files fs.FS) (*Artifacts, error) {
	text, err := fs.ReadFile(files, ManifestFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotBuilt
	}
	if err != nil {
		return nil, err
	}
	a := &Artifacts{files: files}
	if err := json.Unmarshal(text, &a.Manifest); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	return a, nil
}

// Module returns the module's binary.
func (a *Artifacts) Module() ([]byte, error) {
	module := make([]byte, a.Manifest.ModuleBytes)
	if err := a.decompress(ModuleFile, module); err != nil {
		return nil, err
	}
	return module, nil
}

// ReadMemory fills dst with the linear memory of the warmed interpreter; dst
// must be [Manifest.MemoryBytes] long.
func (a *Artifacts) ReadMemory(dst []byte) error {
	return a.decompress(MemoryFile, dst)
}

// decompress fills dst with what the named file holds, which must be as long.
func (a *Artifacts) decompress(name string, dst []byte) error {
	compressed, err := fs.ReadFile(a.files, name)
	if err != nil {
		return err
	}
	decoder, err := zstd.NewReader(bytes.NewReader(compressed), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	defer decoder.Close()
	if _, err := io.ReadFull(decoder, dst); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if n, _ := decoder.Read(make([]byte, 1)); n != 0 {
		return fmt.Errorf("%s: longer than the %d bytes that the manifest says", name, len(dst))
	}
	return nil
}

// RootFS returns the read-only files of the sandbox, as paths relative to "/".
func (a *Artifacts) RootFS() (fs.FS, error) {
	data, err := fs.ReadFile(a.files, RootFSFile)
	if err != nil {
		return nil, err
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RootFSFile, err)
	}
	return archive, nil
}
