package hostfuncs

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The opcodes and types that the test guest is made of.
const (
	i32, i64 = api.ValueTypeI32, api.ValueTypeI64

	opLoop, opEnd, opBrIf, opBr, opCall = 0x03, 0x0b, 0x0d, 0x0c, 0x10
	opDrop, opGet, opSet, opTee         = 0x1a, 0x20, 0x21, 0x22
	opI32Const, opI64Const              = 0x41, 0x42
	opI32Sub, noResult                  = 0x6b, 0x40
)

// A wasmFunc is a function of a module in the making: an import if it has no body, else exported.
type wasmFunc struct {
	name            string
	params, results []api.ValueType
	locals          int // of type i32
	body            []byte
}

// wasmModule assembles a module that imports and defines funcs, imports first, and exports a memory of so many pages, if
// any. Its numbers are below 128, which are their own LEB128.
func wasmModule(pages byte, funcs []wasmFunc) []byte {
	section := func(id byte, items ...[]byte) []byte {
		content := slices.Concat(append([][]byte{{byte(len(items))}}, items...)...)
		// Lengths of sections may need two bytes.
		return slices.Concat([]byte{id, byte(len(content)&0x7f) | 0x80, byte(len(content) >> 7)}, content)
	}
	str := func(s string) []byte { return append([]byte{byte(len(s))}, s...) }

	var types, imports, functions, exports, codes [][]byte
	for i, f := range funcs {
		types = append(types, slices.Concat([]byte{0x60}, str(string(f.params)), str(string(f.results))))
		if f.body == nil {
			imports = append(imports, slices.Concat(str(ModuleName), str(f.name), []byte{0x00, byte(i)}))
			continue
		}
		functions = append(functions, []byte{byte(i)})
		exports = append(exports, slices.Concat(str(f.name), []byte{0x00, byte(i)}))
		code := slices.Concat([]byte{1, byte(f.locals), i32}, f.body, []byte{opEnd})
		codes = append(codes, slices.Concat([]byte{byte(len(code))}, code))
	}
	var memories [][]byte
	if pages > 0 {
		memories = [][]byte{{0x01, pages, pages}}
		exports = append(exports, slices.Concat(str("memory"), []byte{0x02, 0}))
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types...), section(2, imports...), section(3, functions...),
		section(5, memories...), section(7, exports...), section(10, codes...))
}

const (
	guestPages  = 4
	guestMemory = guestPages << 16

	// Where the tests keep frames to submit and buffers to read into.
	guestOut, guestIn = 0x100, guestMemory / 2
)

// guestModule is a guest with a wrapper "do_x" of each import x, and with loops as a compiled guest would have them:
//
//	rounds(n, ptr, len, buf)   n times: submit, wait for it, size, read
//	gather(n, ptr, len, buf)   submit n times; then n times: wait for any, size, read
//	spin()                     yields for ever
func guestModule() []byte {
	const submit, wait, size, read, yield = 0, 1, 2, 3, 6
	imports := []wasmFunc{
		{name: "submit", params: []api.ValueType{i32, i32}, results: []api.ValueType{i32}},
		{name: "wait", params: []api.ValueType{i32, i64}, results: []api.ValueType{i32}},
		{name: "size", params: []api.ValueType{i32}, results: []api.ValueType{i32}},
		{name: "read", params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32}},
		{name: "cancel", params: []api.ValueType{i32}, results: []api.ValueType{i32}},
		{name: "write", params: []api.ValueType{i32, i32, i32}, results: []api.ValueType{i32}},
		{name: "yield"},
	}
	funcs := imports
	for i, imp := range imports {
		f := wasmFunc{name: "do_" + imp.name, params: imp.params, results: imp.results, body: []byte{}}
		for p := range imp.params {
			f.body = append(f.body, opGet, byte(p))
		}
		f.body = append(f.body, opCall, byte(i))
		funcs = append(funcs, f)
	}
	const n, ptr, length, buf, count, id = 0, 1, 2, 3, 4, 5
	// times repeats body local n times, which must not be 0.
	times := func(body ...byte) []byte {
		return slices.Concat([]byte{opGet, n, opSet, count, opLoop, noResult}, body,
			[]byte{opGet, count, opI32Const, 1, opI32Sub, opTee, count, opBrIf, 0, opEnd})
	}
	doRead := []byte{opGet, id, opGet, buf, opGet, id, opCall, size, opCall, read, opDrop}
	doSubmit := []byte{opGet, ptr, opGet, length, opCall, submit}
	const minusOne = 0x7f // as signed LEB128
	funcs = append(funcs,
		wasmFunc{name: "rounds", params: []api.ValueType{i32, i32, i32, i32}, locals: 2, body: times(slices.Concat(
			doSubmit, []byte{opTee, id, opI64Const, minusOne, opCall, wait, opDrop}, doRead)...)},
		wasmFunc{name: "gather", params: []api.ValueType{i32, i32, i32, i32}, locals: 2, body: slices.Concat(
			times(append(doSubmit, opDrop)...),
			times(append([]byte{opI32Const, 0, opI64Const, minusOne, opCall, wait, opSet, id}, doRead...)...))},
		wasmFunc{name: "spin", body: []byte{opLoop, noResult, opCall, yield, opBr, 0, opEnd}},
	)
	return wasmModule(guestPages, funcs)
}

// An engine is a runtime with the module and the compiled test guest.
type engine struct {
	rt       wazero.Runtime
	compiled wazero.CompiledModule
}

func newEngine(t testing.TB) *engine {
	t.Helper()
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	t.Cleanup(func() { rt.Close(ctx) })
	if err := Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	compiled, err := rt.CompileModule(ctx, guestModule())
	if err != nil {
		t.Fatal(err)
	}
	return &engine{rt: rt, compiled: compiled}
}

// A guest is an instance of the test guest and its host side.
type guest struct {
	*Instance
	t   testing.TB
	ctx context.Context
	mod api.Module
}

// guest starts a guest whose first run has not begun.
func (e *engine) guest(t testing.TB, opts Options) *guest {
	t.Helper()
	g := &guest{Instance: NewInstance(opts), t: t}
	g.ctx = g.Context(t.Context())
	mod, err := e.rt.InstantiateModule(g.ctx, e.compiled, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	g.mod = mod
	t.Cleanup(func() {
		g.End()
		mod.Close(context.Background())
	})
	return g
}

// running starts a guest in its first run.
func (e *engine) running(t testing.TB, opts Options) *guest {
	t.Helper()
	g := e.guest(t, opts)
	g.Begin(t.Context())
	return g
}

// running is for tests that need one guest in a run.
func running(t testing.TB, opts Options) *guest {
	t.Helper()
	return newEngine(t).running(t, opts)
}

// try calls an export.
func (g *guest) try(name string, args ...uint64) (int32, error) {
	results, err := g.mod.ExportedFunction(name).Call(g.ctx, args...)
	if err != nil || len(results) == 0 {
		return 0, err
	}
	return api.DecodeI32(results[0]), nil
}

// call calls an export that must not fail.
func (g *guest) call(name string, args ...uint64) int32 {
	g.t.Helper()
	result, err := g.try(name, args...)
	if err != nil {
		g.t.Fatalf("%s%v: %v", name, args, err)
	}
	return result
}

// poke writes p into the guest's memory.
func (g *guest) poke(ptr uint32, p []byte) {
	g.t.Helper()
	if !g.mod.Memory().Write(ptr, p) {
		g.t.Fatalf("no room for %d bytes at %#x", len(p), ptr)
	}
}

// submitFrame submits a frame as it is.
func (g *guest) submitFrame(p []byte) int32 {
	g.t.Helper()
	g.poke(guestOut, p)
	return g.call("do_submit", guestOut, uint64(len(p)))
}

// submit submits an operation without parameters.
func (g *guest) submit(op string, attachments ...[]byte) int32 {
	g.t.Helper()
	return g.submitFrame(request(op, "{}", attachments...))
}

// mustSubmit is submit for where the call must be accepted.
func (g *guest) mustSubmit(op string, attachments ...[]byte) int32 {
	g.t.Helper()
	id := g.submit(op, attachments...)
	if id <= 0 {
		g.t.Fatalf("submit %s = %s", op, codeName(id))
	}
	return id
}

const forever = -1

// wait calls wait. The timeout is in nanoseconds.
func (g *guest) wait(id int32, timeout int64) int32 {
	g.t.Helper()
	return g.call("do_wait", api.EncodeI32(id), uint64(timeout))
}

// A response is a response frame as the guest reads it.
type response struct {
	Value json.RawMessage `json:"value"`
	Error *struct {
		Kind    string          `json:"kind"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
	attachments [][]byte
}

// read reads the response to an answered call.
func (g *guest) read(id int32) response {
	g.t.Helper()
	size := g.call("do_size", api.EncodeI32(id))
	if size < 0 {
		g.t.Fatalf("size(%d) = %s", id, codeName(size))
	}
	if n := g.call("do_read", api.EncodeI32(id), guestIn, uint64(size)); n != size {
		g.t.Fatalf("read(%d) = %s, want %d", id, codeName(n), size)
	}
	p, _ := g.mod.Memory().Read(guestIn, uint32(size))
	f, err := ParseFrame(slices.Clone(p))
	if err != nil {
		g.t.Fatalf("read(%d): %v", id, err)
	}
	resp := response{attachments: f.Attachments}
	if err := json.Unmarshal(f.Header, &resp); err != nil {
		g.t.Fatalf("read(%d): header %s: %v", id, f.Header, err)
	}
	return resp
}

// ask is a synchronous call.
func (g *guest) ask(op string, attachments ...[]byte) response {
	g.t.Helper()
	id := g.mustSubmit(op, attachments...)
	if got := g.wait(id, forever); got != id {
		g.t.Fatalf("wait(%d) = %s", id, codeName(got))
	}
	return g.read(id)
}

// request encodes a request frame.
func request(op, params string, attachments ...[]byte) []byte {
	header, err := json.Marshal(map[string]any{"op": op, "params": json.RawMessage(params)})
	if err != nil {
		panic(err)
	}
	return Frame{Header: header, Attachments: attachments}.Append(nil)
}

// codeName makes failures readable.
func codeName(result int32) string {
	names := map[int32]string{
		codeTooBig: "TOO_BIG", codeFault: "FAULT", codeInvalid: "INVALID", codeLimit: "LIMIT",
		codeNoRun: "NO_RUN", codeIdle: "IDLE", codeInterrupted: "INTERRUPTED",
	}
	if name, ok := names[result]; ok {
		return name
	}
	return strconv.Itoa(int(result))
}
