package pythonwasm

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"codeexec/python-wasm/internal/wasmbin"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The embedded module must import these functions and no others: above all
// none of WASI's sock_*.
func TestImports(t *testing.T) {
	module := parse(t)
	var list strings.Builder
	for _, i := range module.Imports() {
		list.WriteString(i.Module + "." + i.Name + "\n")
		if strings.Contains(i.Name, "sock_") {
			t.Errorf("the module imports %s.%s", i.Module, i.Name)
		}
	}
	golden(t, "testdata/imports.txt", list.String())
}

func TestModuleHasNoDataAndStartsAtTheSnapshotsSize(t *testing.T) {
	module := parse(t)
	a, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	limits, ok := module.MemoryLimits()
	if !ok || int64(limits.Min)*PageSize != a.Manifest.MemoryBytes {
		t.Errorf("the module's memory starts with %d pages, the snapshot has %d bytes", limits.Min, a.Manifest.MemoryBytes)
	}
	memory := make([]byte, a.Manifest.MemoryBytes)
	if err := a.ReadMemory(memory); err != nil {
		t.Fatal(err)
	}
	for _, address := range []uint32{a.Manifest.Interrupt.Tripped, a.Manifest.Interrupt.IsTripped} {
		if !bytes.Equal(memory[address:address+4], make([]byte, 4)) {
			t.Errorf("an interrupt is pending in the snapshot at %#x", address)
		}
	}
}

func TestOpenReportsWhatIsMissingOrDamaged(t *testing.T) {
	good, err := fs.Sub(embedded, "artifacts")
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := fs.ReadFile(good, ManifestFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(fstest.MapFS{}); !errors.Is(err, ErrNotBuilt) {
		t.Errorf("no artifacts: %v, want ErrNotBuilt", err)
	}
	if _, err := open(fstest.MapFS{ManifestFile: {Data: []byte("{")}}); err == nil || !strings.Contains(err.Error(), ManifestFile) {
		t.Errorf("broken manifest: %v, want an error that names it", err)
	}
	a, err := open(fstest.MapFS{
		ManifestFile: {Data: manifest},
		ModuleFile:   {Data: []byte("not zstd")},
		RootFSFile:   {Data: []byte("not zip")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Module(); err == nil || !strings.Contains(err.Error(), ModuleFile) {
		t.Errorf("broken module: %v, want an error that names it", err)
	}
	if err := a.ReadMemory(nil); err == nil {
		t.Error("missing memory: no error")
	}
	if _, err := a.RootFS(); err == nil || !strings.Contains(err.Error(), RootFSFile) {
		t.Errorf("broken files: %v, want an error that names them", err)
	}
}

func TestRootFSHoldsTimeZones(t *testing.T) {
	a, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	files, err := a.RootFS()
	if err != nil {
		t.Fatal(err)
	}
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"} {
		data, err := fs.ReadFile(files, "usr/share/zoneinfo/"+zone)
		if err != nil || !bytes.HasPrefix(data, []byte("TZif")) {
			t.Errorf("%s: %.4q, %v", zone, data, err)
		}
	}
}

func parse(t *testing.T) *wasmbin.Module {
	t.Helper()
	a, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	binary, err := a.Module()
	if err != nil {
		t.Fatal(err)
	}
	module, err := wasmbin.Parse(binary)
	if err != nil {
		t.Fatal(err)
	}
	return module
}

// golden compares got with a file, line by line in order.
func golden(t *testing.T, name, got string) {
	t.Helper()
	lines := strings.Fields(got)
	slices.Sort(lines)
	got = strings.Join(lines, "\n") + "\n"
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update rewrites it); got:\n%s", name, got)
	}
}
