package sandboxfs_test

import (
	"context"
	"log"
	"testing/fstest"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"codeexec/wasmhost/internal/sandboxfs"
)

// The parts of a host that concern the file system: what is made once, what for
// each session, and what for each call.
func Example() {
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)

	// Once.
	if _, err := wasi_snapshot_preview1.Instantiate(sandboxfs.WithErrnos(ctx), runtime); err != nil {
		log.Fatal(err)
	}
	base, err := sandboxfs.NewBase(fstest.MapFS{"etc/motd": {Data: []byte("hello\n")}})
	if err != nil {
		log.Fatal(err)
	}

	// For each session.
	files, err := sandboxfs.New(sandboxfs.Options{Base: base})
	if err != nil {
		log.Fatal(err)
	}
	defer files.Close()
	config := wazero.NewModuleConfig().WithFSConfig(
		wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(files, "/"))

	// For each call into the guest that runtime.InstantiateModule(ctx, compiled,
	// config) returns.
	ctx = files.Context(ctx)
	_, _ = ctx, config
	// Output:
}
