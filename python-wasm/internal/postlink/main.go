// Command postlink turns the linked interpreter into what package pythonwasm
// embeds. It adds fuel checks, runs the interpreter up to the point where a
// script could start, and keeps the module and its memory apart:
//
//	module.wasm.zst  the module, without the data that the memory holds anyway
//	memory.zst       linear memory of the warmed interpreter
//	rootfs.zip       the sandbox's read-only files
//	manifest.json    versions, sizes and addresses (pythonwasm.Manifest)
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	pythonwasm "codeexec/python-wasm"
	"codeexec/python-wasm/internal/wasmbin"
)

// fuelInterval is how many loop headers run between two yields: a garbage
// collection of the host waits for one, at about 1.2 ms each.
const fuelInterval = 50_000

func main() {
	var in input
	flag.StringVar(&in.module, "module", "", "the linked `FILE`")
	flag.StringVar(&in.zoneinfo, "zoneinfo", "", "the `FOLDER` of compiled time zones")
	flag.StringVar(&in.cpython, "cpython", "", "the `VERSION` of CPython, for the manifest")
	flag.StringVar(&in.out, "out", ".", "the `FOLDER` to write to")
	flag.Parse()
	if err := run(context.Background(), in); err != nil {
		fmt.Fprintln(os.Stderr, "postlink:", err)
		os.Exit(1)
	}
}

type input struct {
	module, zoneinfo, cpython, out string
}

func run(ctx context.Context, in input) error {
	linked, err := os.ReadFile(in.module)
	if err != nil {
		return err
	}
	module, err := wasmbin.Parse(linked)
	if err != nil {
		return fmt.Errorf("reading %s: %w", in.module, err)
	}
	fuel := wasmbin.FuelOptions{Module: pythonwasm.HostModule, Name: "yield", Interval: fuelInterval}
	if err := wasmbin.AddFuel(module, fuel); err != nil {
		return fmt.Errorf("adding fuel checks to %s: %w", in.module, err)
	}
	manifest := pythonwasm.Manifest{CPython: in.cpython, FuelInterval: fuelInterval}
	memory, err := warm(ctx, module.Encode(), &manifest)
	if err != nil {
		return fmt.Errorf("warming the interpreter: %w", err)
	}
	manifest.MemoryBytes = int64(len(memory))

	if err := wasmbin.StripData(module); err != nil {
		return fmt.Errorf("stripping data: %w", err)
	}
	if err := module.SetMemoryMin(uint32(len(memory) / pythonwasm.PageSize)); err != nil {
		return err
	}
	bare := module.Encode()
	manifest.ModuleBytes = int64(len(bare))

	if err := writeZstd(filepath.Join(in.out, pythonwasm.ModuleFile), bare); err != nil {
		return err
	}
	if err := writeZstd(filepath.Join(in.out, pythonwasm.MemoryFile), memory); err != nil {
		return err
	}
	if err := writeRootFS(filepath.Join(in.out, pythonwasm.RootFSFile), in.zoneinfo); err != nil {
		return err
	}
	text, err := json.MarshalIndent(manifest, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(in.out, pythonwasm.ManifestFile), append(text, '\n'), 0o644)
}

// warm runs the module up to the point where a script could start. It returns
// a copy of the linear memory and fills in the manifest's addresses.
func warm(ctx context.Context, module []byte, manifest *pythonwasm.Manifest) ([]byte, error) {
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, rt); err != nil {
		return nil, err
	}
	if err := stubHost(ctx, rt); err != nil {
		return nil, err
	}
	compiled, err := rt.CompileModule(ctx, module)
	if err != nil {
		return nil, err
	}
	// The same descriptors and environment as in a session: libc keeps what it
	// has read of both in linear memory. Time and randomness are fixed, so that
	// the same module always gives the same snapshot.
	files := fstest.MapFS{}
	for _, dir := range pythonwasm.Mounts {
		files[dir] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
	}
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").
		WithFSConfig(wazero.NewFSConfig().WithFSMount(files, "/")).
		WithStdout(os.Stderr).WithStderr(os.Stderr)
	for _, variable := range pythonwasm.Environ {
		config = config.WithEnv(variable[0], variable[1])
	}
	guest, err := rt.InstantiateModule(ctx, compiled, config)
	if err != nil {
		return nil, err
	}
	if status, err := guest.ExportedFunction("codeexec_prepare").Call(ctx); err != nil {
		return nil, err
	} else if status[0] != 0 {
		return nil, fmt.Errorf("codeexec_prepare failed; its message is above")
	}
	words, err := guest.ExportedFunction("codeexec_words").Call(ctx)
	if err != nil {
		return nil, err
	}
	for i, field := range []*uint32{
		&manifest.Interrupt.Tripped, &manifest.Interrupt.IsTripped,
		&manifest.Interrupt.EvalBreaker, &manifest.Interrupt.Bit,
	} {
		word, ok := guest.Memory().ReadUint32Le(uint32(words[0]) + uint32(4*i))
		if !ok {
			return nil, fmt.Errorf("codeexec_words: address %#x lies outside memory", words[0])
		}
		*field = word
	}
	memory, _ := guest.Memory().Read(0, guest.Memory().Size())
	return bytes.Clone(memory), nil
}

// stubHost provides the host functions of packages hostfuncs and sandboxfs, none
// of which has anything to do before a script runs.
func stubHost(ctx context.Context, rt wazero.Runtime) error {
	type function struct {
		name            string
		params, results []api.ValueType
	}
	const i32, i64 = api.ValueTypeI32, api.ValueTypeI64
	one := []api.ValueType{i32}
	for module, functions := range map[string][]function{
		pythonwasm.HostModule: {
			{"submit", []api.ValueType{i32, i32}, one},
			{"wait", []api.ValueType{i32, i64}, one},
			{"size", []api.ValueType{i32}, one},
			{"read", []api.ValueType{i32, i32, i32}, one},
			{"cancel", []api.ValueType{i32}, one},
			{"write", []api.ValueType{i32, i32, i32}, one},
			{"yield", nil, nil},
		},
		pythonwasm.FilesModule: {
			{"create_mode", []api.ValueType{i32}, nil},
			{"chmod", []api.ValueType{i32, i32, i32}, one},
			{"lock", []api.ValueType{i64, i64, i32, i64, i64}, one},
			{"locked", []api.ValueType{i64, i64, i64, i64}, one},
		},
	} {
		builder := rt.NewHostModuleBuilder(module)
		for _, f := range functions {
			builder.NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
				if len(f.results) > 0 {
					stack[0] = 0
				}
			}), f.params, f.results).Export(f.name)
		}
		if _, err := builder.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func writeZstd(name string, data []byte) error {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	defer encoder.Close()
	return os.WriteFile(name, encoder.EncodeAll(data, nil), 0o644)
}

// writeRootFS packs the read-only files of the sandbox: the time zones, where
// CPython's zoneinfo looks for them.
func writeRootFS(name, zoneinfo string) (err error) {
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := file.Close(); err == nil {
			err = e
		}
	}()
	archive := zip.NewWriter(file)
	archive.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	source := os.DirFS(zoneinfo)
	err = fs.WalkDir(source, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// "right" and "posix" repeat every zone for other notions of a second.
		if entry.IsDir() {
			if path == "right" || path == "posix" {
				return fs.SkipDir
			}
			return nil
		}
		data, err := fs.ReadFile(source, path) // follows the links between zones
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: "usr/share/zoneinfo/" + path, Method: zip.Deflate, Modified: time.Unix(1_750_000_000, 0).UTC()}
		header.SetMode(0o644)
		writer, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = writer.Write(data)
		return err
	})
	if err != nil {
		return fmt.Errorf("packing %s: %w", zoneinfo, err)
	}
	return archive.Close()
}
