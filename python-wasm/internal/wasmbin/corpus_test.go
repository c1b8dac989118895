package wasmbin

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// beyond matches errors about what wazero knows but WebAssembly 2.0 doesn't:
// typed function references and exceptions. They are not behind a feature flag
// in all places.
var beyond = regexp.MustCompile(`unknown (value type 0x6[349]|reference type 0x|opcode 0x(08|0a|14|15|1f|d4|d5|d6)$)`)

// checkAgainstEngine holds a binary against what wazero says of it, and says
// whether it is a module that both accept.
func checkAgainstEngine(t *testing.T, runtime wazero.Runtime, wasm []byte) bool {
	t.Helper()
	ctx := context.Background()
	accepts := func(b []byte) error {
		m, err := runtime.CompileModule(ctx, b)
		if err == nil {
			m.Close(ctx)
		}
		return err
	}
	m, err := Parse(wasm)
	valid := accepts(wasm) == nil
	if err != nil {
		if valid && !beyond.MatchString(err.Error()) {
			t.Errorf("the engine accepts what Parse doesn't: %v", err)
		}
		return false
	}
	if !bytes.Equal(m.Encode(), wasm) {
		t.Errorf("Encode gives %x, was %x", m.Encode(), wasm)
	}
	if !valid {
		return false
	}

	if err := AddFuel(m, FuelOptions{Module: "host", Name: "yield", Global: "fuel left"}); err != nil {
		if !beyond.MatchString(err.Error()) {
			t.Errorf("the engine accepts what AddFuel doesn't: %v", err)
		}
	} else if err := accepts(m.Encode()); err != nil {
		t.Errorf("the engine rejects what AddFuel made: %v", err)
	}

	m = mustParse(t, wasm)
	if err := StripData(m); err != nil {
		if !strings.Contains(err.Error(), "uses a data segment") && !beyond.MatchString(err.Error()) {
			t.Errorf("the engine accepts what StripData doesn't: %v", err)
		}
	} else if err := accepts(m.Encode()); err != nil {
		t.Errorf("the engine rejects what StripData made: %v", err)
	}
	return true
}

// wazero comes with the specification's tests and the output of several
// compilers, if the module cache has it in full.
func TestCorpusOfEngine(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of modules")
	}
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Skipf("wazero's source can't be found: %v", err)
	}
	// The modules are validated, not run, so that the quicker engine will do.
	runtime := wazero.NewRuntimeWithConfig(context.Background(),
		wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2))
	defer runtime.Close(context.Background())

	files, modules := 0, 0
	err = filepath.WalkDir(strings.TrimSpace(string(dir)), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".wasm" {
			return err
		}
		wasm, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		t.Run(filepath.Base(path), func(t *testing.T) {
			if checkAgainstEngine(t, runtime, wasm) {
				modules++
			}
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d modules in %d files", modules, files)
}

func FuzzModule(f *testing.F) {
	f.Add(sample().build())
	f.Add(bytes.Clone(preamble))
	for _, code := range [][]byte{
		body(opLoop, blockVoid, opBr, 0, opEnd),
		body(opBlock, blockVoid, i32Const(1), opIf, blockVoid, opLoop, blockVoid, opEnd, opElse, opEnd, opEnd),
		body(i32Const(1), opLoop, 1, opDrop, i32Const(1), opBr, 0, opEnd),
	} {
		f.Add((&builder{
			types:     [][]byte{function(nil, nil), function([]byte{byte(I32)}, nil)},
			functions: [][]byte{{0}},
			code:      [][]byte{code},
		}).build())
	}
	runtime := wazero.NewRuntimeWithConfig(context.Background(),
		wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(16))
	f.Cleanup(func() { runtime.Close(context.Background()) })
	f.Fuzz(func(t *testing.T, wasm []byte) {
		m, err := Parse(wasm)
		if err != nil {
			return // the engine may allocate whatever such a module asks for
		}
		encoded := m.Encode()
		if again := mustParse(t, encoded).Encode(); !bytes.Equal(again, encoded) {
			t.Errorf("second encoding %x, first %x", again, encoded)
		}
		for _, r := range m.functionBodies() {
			if r.locals() > 1000 {
				return // likewise
			}
		}
		checkAgainstEngine(t, runtime, wasm)
	})
}
