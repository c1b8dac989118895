package sandboxfs

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/experimental/sys"
)

// Errors that WASI has and wazero's sys.Errno lacks. wazero turns each into EIO
// on its way to the guest; [WithErrnos] turns that back into what was meant.
//
// The low byte is the number in WASI preview 1.
//
// See https://github.com/WebAssembly/WASI/blob/snapshot-01/phases/snapshot/docs.md#errno
const (
	EBUSY   = wasiErrno | 10 // the name is a mount point
	EDQUOT  = wasiErrno | 19 // the host's own quota is used up
	EFBIG   = wasiErrno | 22 // longer than a file may be
	EMFILE  = wasiErrno | 33 // too many open files
	EMLINK  = wasiErrno | 34 // too many links, on the host
	ENOSPC  = wasiErrno | 51 // the session's quota or the host's disk is used up
	ENXIO   = wasiErrno | 60 // a device without a driver, on the host
	ETXTBSY = wasiErrno | 74 // a running program, on the host
	EXDEV   = wasiErrno | 75 // rename or link between /, memory and /projects
)

// wasiErrno marks the errors above. wazero counts its own up from 1.
const wasiErrno sys.Errno = 0x100

const wasiEIO = 29

// WithErrnos returns a context to instantiate wasi_snapshot_preview1 with:
//
//	wasi_snapshot_preview1.Instantiate(sandboxfs.WithErrnos(ctx), runtime)
//
// A guest then gets ENOSPC, EMFILE, EFBIG, EXDEV and EBUSY where it would
// otherwise get EIO, if it is called with a context from [FS.Context].
//
// # Why a function listener
//
// wazero's set of errors is closed: what isn't in it becomes EIO in the layer
// between an FS and the guest. A listener sees a host function's results in the
// very stack slots that the guest reads, so it can put the right number there.
// The alternative is to write WASI's 45 functions anew. Only functions that may
// fail in such a way have a listener; reading and stat don't.
func WithErrnos(ctx context.Context) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, errnoListener{})
}

// Context returns the context for calls into a guest that mounts f. It serves
// [WithErrnos].
func (f *FS) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, contextKey{}, f)
}

type contextKey struct{}

type errnoListener struct{}

func (l errnoListener) NewFunctionListener(def api.FunctionDefinition) experimental.FunctionListener {
	for _, name := range def.ExportNames() {
		switch name {
		case "fd_allocate", "fd_filestat_set_size", "fd_pwrite", "fd_readdir", "fd_sync", "fd_datasync", "fd_write",
			"path_create_directory", "path_link", "path_open", "path_remove_directory", "path_rename",
			"path_symlink", "path_unlink_file":
			return l
		}
	}
	return nil
}

func (errnoListener) Before(context.Context, api.Module, api.FunctionDefinition, []uint64, experimental.StackIterator) {
}

func (errnoListener) After(ctx context.Context, _ api.Module, _ api.FunctionDefinition, results []uint64) {
	if results[0] != wasiEIO {
		return
	}
	if f, ok := ctx.Value(contextKey{}).(*FS); ok {
		if errno := sys.Errno(f.lastErrno.Swap(0)); errno&wasiErrno != 0 {
			results[0] = uint64(errno &^ wasiErrno)
		}
	}
}

func (errnoListener) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// report remembers an error for the listener on its way out of the FS. Every
// method that can return one of this package's errors returns through here.
func (f *FS) report(errno sys.Errno) sys.Errno {
	if errno != 0 {
		f.lastErrno.Store(uint32(errno))
	}
	return errno
}
