package sandboxfs

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental/sys"
)

// HostModule is the import module that [Instantiate] makes: what a file system
// needs and WASI preview 1 lacks, which is permissions and locks. Every function
// returns a number of WASI's errno, 0 for success, unless it says otherwise.
//
//	create_mode(mode i32)
//	    The permissions of what the next path_open with O_CREAT, or the next
//	    path_create_directory, makes. The umask is the guest's business. Returns nothing.
//	chmod(path i32, len i32, mode i32) -> i32
//	    Sets the permissions of what is at the path, from "/", of len bytes.
//	lock(dev i64, ino i64, kind i32, start i64, len i64) -> i32
//	    As fcntl(F_SETLK) on an open file, which is known by its numbers in
//	    fd_filestat_get. Kinds: 0 to read, 1 to write, 2 to unlock; len 0 is to
//	    the end. EAGAIN: another session or process holds what is in the way.
//	locked(dev i64, ino i64, start i64, len i64) -> i32
//	    Returns 1 if such a lock in the way of writing is held, 0 if none is.
//
// Permissions reach the guest in the upper half of the device number that
// fd_filestat_get and path_filestat_get give, whose lower half is the number.
const HostModule = "codeexec_files"

// Instantiate makes the import module [HostModule]. Guests are to be called with
// a context from [FS.Context].
func Instantiate(ctx context.Context, rt wazero.Runtime) error {
	const i32, i64 = api.ValueTypeI32, api.ValueTypeI64
	builder := rt.NewHostModuleBuilder(HostModule)
	export := func(name string, params []api.ValueType, results int, call func(f *FS, memory api.Memory, args []uint64) uint32) {
		builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(ctx context.Context, mod api.Module, stack []uint64) {
			result := errnoNumber(sys.ENOSYS)
			if f, ok := ctx.Value(contextKey{}).(*FS); ok {
				result = call(f, mod.Memory(), stack)
			}
			if results > 0 {
				stack[0] = uint64(result)
			}
		}), params, []api.ValueType{i32}[:results]).Export(name)
	}
	export("create_mode", []api.ValueType{i32}, 0, func(f *FS, _ api.Memory, args []uint64) uint32 {
		f.setCreateMode(fs.FileMode(args[0]) & fs.ModePerm)
		return 0
	})
	export("chmod", []api.ValueType{i32, i32, i32}, 1, func(f *FS, memory api.Memory, args []uint64) uint32 {
		path, ok := memory.Read(uint32(args[0]), uint32(args[1]))
		if !ok {
			return errnoNumber(sys.EFAULT)
		}
		return errnoNumber(f.Chmod(strings.Clone(string(path)), fs.FileMode(args[2])&fs.ModePerm))
	})
	export("lock", []api.ValueType{i64, i64, i32, i64, i64}, 1, func(f *FS, _ api.Memory, args []uint64) uint32 {
		return errnoNumber(f.lock(fileID{args[0], args[1]}, lockKind(args[2]), int64(args[3]), int64(args[4])))
	})
	export("locked", []api.ValueType{i64, i64, i64, i64}, 1, func(f *FS, _ api.Memory, args []uint64) uint32 {
		if f.locked(fileID{args[0], args[1]}, int64(args[2]), int64(args[3])) {
			return 1
		}
		return 0
	})
	if _, err := builder.Instantiate(ctx); err != nil {
		return fmt.Errorf("instantiating %s: %w", HostModule, err)
	}
	return nil
}

// errnoNumber returns WASI's number of an error.
func errnoNumber(errno sys.Errno) uint32 {
	if errno&wasiErrno != 0 {
		return uint32(errno &^ wasiErrno)
	}
	switch errno {
	case 0:
		return 0
	case sys.EACCES:
		return 2
	case sys.EAGAIN:
		return 6
	case sys.EBADF:
		return 8
	case sys.EFAULT:
		return 21
	case sys.EINVAL:
		return 28
	case sys.ELOOP:
		return 32
	case sys.ENAMETOOLONG:
		return 37
	case sys.ENOENT:
		return 44
	case sys.ENOSYS:
		return 52
	case sys.ENOTDIR:
		return 54
	case sys.ENOTSUP:
		return 58
	case sys.EPERM:
		return 63
	case sys.EROFS:
		return 69
	}
	return wasiEIO
}

// deviceNumber returns what a guest gets as the device of a file: the number's 32
// bits, and above them the permissions.
func deviceNumber(dev uint64, mode fs.FileMode) uint64 {
	return uint64(mode.Perm())<<32 | uint64(uint32(dev)^uint32(dev>>32))
}

// setCreateMode sets the permissions of what is created next.
func (f *FS) setCreateMode(mode fs.FileMode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.createMode, f.createModeSet = mode, true
}

// takeCreateMode returns the permissions for something new: those that the guest
// asked for, or else wazero's.
func (f *FS) takeCreateMode(wazeros fs.FileMode) fs.FileMode {
	if !f.createModeSet {
		return wazeros & fs.ModePerm
	}
	f.createModeSet = false
	return f.createMode
}
