// Package wasmbin reads WebAssembly binaries and rewrites what codeexec needs
// rewritten in them once the linker is done: checks that let the host into
// running code, and the removal of data that a snapshot replaces.
//
// It knows the binary format of WebAssembly 2.0
// (https://www.w3.org/TR/wasm-core-2/#binary-format%E2%91%A0) and tail calls.
// What it doesn't know is an error that says where in the binary it is, since
// an unknown instruction could hide an index that has to change. The recipe
// that builds the interpreter uses it; it imports nothing of this module.
//
// # Why sections stay bytes
//
// A [Module] keeps each section as it was read and decodes only what a
// rewriter has to look at. What isn't touched is then the same byte for byte,
// padding of numbers included, and there is one description of the module that
// counts: after a rewrite everything else is derived from the sections again.
//
// # Why loop headers are enough
//
// Code without a loop or a tail call ends after at most as many instructions
// as it has, or calls another function; and chains of calls are bounded by the
// engine's limit on the stack. A tree of calls that are never repeated by a
// loop can still take long, but the interpreter in the module gets into one
// only through its own evaluation loop.
//
// # Why the check looks as it does
//
//	loop
//	  global.get $fuel  i32.const 1  i32.sub  local.tee $tmp  global.set $fuel
//	  local.get $tmp  i32.const 0  i32.gt_s
//	  if
//	  else
//	    call $refill
//	    br 1
//	  end
//
// It is shaped by wazero's optimizing compiler, whose output was read and
// timed for eight forms. The local variable saves loading the global a second
// time. The call ends in a jump to the loop's header instead of meeting the
// usual way again: where two ways meet, the register allocator takes over the
// state of one of them, and behind a call that is "everything is in memory",
// so that each pass of the loop would load all its values again. The call is
// in the else branch because the compiler then puts it behind the function's
// other code. What is left on the usual way is load, subtract, store, compare
// and a branch that isn't taken, and stores of what the loop changes.
//
// Nine small Python programs were slowed down by 5 % on average, where the
// obvious "if zero, call" cost 13 %. Eight of them lost 8 % at most; the ninth
// does nothing but multiply big integers, in the tightest of loops, and lost
// 43 %. CPython's code became only 0.2 % longer, since the function indexes
// that the linker had padded became short.
//
// As the header is passed again after the call, the refill function adds one
// unit, which keeps the interval exact. A loop with parameters can't be
// continued without them: there, and before tail calls, the check gets a loop
// of its own that is passed once.
//
// # Why not the engine's own means
//
// wazero can be told to look at the context at every loop header, but leaves
// the machine code for Go each time, which made CPython more than three times
// slower.
package wasmbin
