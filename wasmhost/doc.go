// Package wasmhost runs Python code in a sandbox: a CPython built for WASI, in
// memory, without network, threads or processes.
//
// An [Engine] compiles the interpreter once. A [Session] is a fork of an
// interpreter that is already warm; it runs code many times, and keeps
// variables, imports and files between the runs:
//
//	engine, err := wasmhost.New(ctx, wasmhost.Options{})
//	session, err := engine.NewSession(ctx, wasmhost.SessionOptions{})
//	result, err := session.Run(ctx, wasmhost.Request{Code: "print(6 * 7)"})
//
// The package knows nothing of MCP. What code may ask of its host goes to
// [SessionOptions.Handler] through package hostfuncs. It is used by package
// bridge, and may import hostfuncs and python-wasm only.
//
// # Why a fork is a mapping
//
// Starting CPython takes 100 ms and more. A session's linear memory is instead
// a private copy-on-write mapping of the memory of one that has started: the
// kernel copies the pages that the session writes, some hundred KiB, and no
// others. Where the operating system can't do that, the memory is copied.
//
// # Why memory is used again
//
// Making and unmapping a mapping, and the faults of the pages that every session
// writes, are half of what a fork costs. So a few mappings are kept when their
// sessions close: the kernel says which pages were written to, and those, and no
// others, get the snapshot's bytes back before the next session sees them. Where
// the kernel doesn't say, or a session has written much, the mapping goes.
//
// # Why the base of linear memory never moves
//
// The whole limit is reserved as address space at the start and costs nothing
// until it is written. So memory can grow in place, and a goroutine that
// interrupts the run may write words of it while the guest runs.
//
// # Why two steps to end a run
//
// When the context of a run ends, a SIGINT is made pending in the interpreter:
// Python raises an exception, finally blocks run, and the session lives with its
// variables. Code that doesn't stop within [Request.Grace] is ended at the next
// loop header, wherever it is; such an instance can't be used again, because its
// stack isn't unwound, and the session starts anew at its next run. The interrupt
// is repeated until the run returns, because an exception in a __del__ method
// or in an except clause swallows one.
//
// # Why not wazero's own check of the context
//
// WithCloseOnContextDone leaves the machine code at every loop header, which
// made programs three times slower. The fuel checks of package pythonwasm cost
// 4 to 7 %.
//
// # Security
//
// Code in a session reads and writes only its linear memory, its file system,
// and what the Handler gives it. All sessions of an Engine share the secret of
// Python's str hashes, since it is part of the snapshot; random numbers differ.
package wasmhost
