package wasmbin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

func yieldOptions(interval uint32) FuelOptions {
	return FuelOptions{Module: "host", Name: "yield", Interval: interval}
}

// withFuel returns the binary wasm with checks.
func withFuel(t testing.TB, wasm []byte, interval uint32) []byte {
	t.Helper()
	m := mustParse(t, wasm)
	if err := AddFuel(m, yieldOptions(interval)); err != nil {
		t.Fatal(err)
	}
	return m.Encode()
}

var errLeave = errors.New("the host leaves")

// host runs modules that import host.yield and env.
type host struct {
	ctx     context.Context
	runtime wazero.Runtime
	yields  int
	leaveAt int // the yield that panics, 0 for none
}

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	h := &host{ctx: context.Background()}
	h.runtime = wazero.NewRuntimeWithConfig(h.ctx, config)
	t.Cleanup(func() { h.runtime.Close(h.ctx) })
	_, err := h.runtime.NewHostModuleBuilder("host").NewFunctionBuilder().WithFunc(func(context.Context) {
		if h.yields++; h.yields == h.leaveAt {
			panic(errLeave)
		}
	}).Export("yield").Instantiate(h.ctx)
	if err != nil {
		t.Fatal(err)
	}
	// A host module can't export globals.
	env := &builder{
		types:     [][]byte{function([]byte{byte(I32)}, []byte{byte(I32)})},
		functions: [][]byte{{0}},
		globals:   [][]byte{cat(I32, 0, constant(i32Const(0)))},
		exports:   [][]byte{export("double", KindFunction, 0), export("base", KindGlobal, 0)},
		code:      [][]byte{body(opLocalGet, 0, i32Const(2), opI32Mul)},
	}
	if _, err := h.runtime.InstantiateWithConfig(h.ctx, env.build(), wazero.NewModuleConfig().WithName("env")); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h *host) instantiate(t testing.TB, wasm []byte) api.Module {
	t.Helper()
	m, err := h.runtime.InstantiateWithConfig(h.ctx, wasm, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (h *host) call(t testing.TB, m api.Module, name string, args ...uint64) []uint64 {
	t.Helper()
	results, err := m.ExportedFunction(name).Call(h.ctx, args...)
	if err != nil {
		t.Fatalf("%s%v: %v", name, args, err)
	}
	return results
}

// engines are wazero's two; the compiler isn't there on every platform.
func engines() map[string]wazero.RuntimeConfig {
	features := api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall
	return map[string]wazero.RuntimeConfig{
		"default":     wazero.NewRuntimeConfig().WithCoreFeatures(features),
		"interpreter": wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features),
	}
}

func TestAddFuelKeepsBehaviour(t *testing.T) {
	imports := sample()
	imports.imports = append([][]byte{importFunction("host", "yield", 1)}, imports.imports...)
	imports.shiftBy1()

	tests := []struct {
		name string
		wasm []byte
	}{
		{"yield not yet imported", sample().build()},
		{"yield imported already", imports.build()},
	}
	calls := []struct {
		function string
		arg      uint64
		headers  int // passed
		result   uint64
	}{
		{"sum", 1, 1, 1},
		{"sum", 1000, 1000, 500500},
		{"double", 21, 0, 42},
		{"countdown", 7, 7, 14},
		{"apply", 4, 12, 64},       // table[0] = double
		{"apply", 5, 12 + 40, 120}, // table[1] = sum, which passes 5 headers in each of 8 calls
	}
	for engine, config := range engines() {
		for _, tc := range tests {
			t.Run(tc.name+" on "+engine, func(t *testing.T) {
				h := newHost(t, config)
				plain := h.instantiate(t, tc.wasm)
				for _, interval := range []uint32{1, 2, 3, 7, 100} {
					fueled := h.instantiate(t, withFuel(t, tc.wasm, interval))
					h.yields = 0
					headers := 0
					for _, c := range calls {
						want := h.call(t, plain, c.function, c.arg)
						if want[0] != c.result {
							t.Fatalf("%s(%d) = %d without fuel, the test expects %d", c.function, c.arg, want[0], c.result)
						}
						if got := h.call(t, fueled, c.function, c.arg); !slices.Equal(got, want) {
							t.Errorf("%s(%d) = %v, without fuel %v", c.function, c.arg, got, want)
						}
						headers += c.headers
						if want := headers / int(interval); h.yields != want {
							t.Errorf("interval %d, after %s: %d yields, want %d", interval, c.function, h.yields, want)
						}
						left := int(interval) - headers%int(interval)
						if got := fueled.ExportedGlobal(DefaultGlobal).Get(); got != uint64(left) {
							t.Errorf("interval %d, after %s: %d units left, want %d", interval, c.function, got, left)
						}
					}
				}
			})
		}
	}
}

// shiftBy1 makes room for a function that is imported before all others in
// the sample.
func (b *builder) shiftBy1() {
	b.start = []byte{5}
	for i, e := range []int{1, 2, 3, 4} {
		at := &b.exports[3+i]
		*at = slices.Clone(*at)
		(*at)[len(*at)-1] = byte(e)
	}
	b.globals[1] = cat(FuncRef, 0, constant(opRefFunc, 2))
	b.globals[2] = cat(FuncRef, mutable, constant(opRefFunc, 1))
	b.elements = [][]byte{
		cat(0, constant(i32Const(0)), 3, 1, 2, 3),
		cat(4, constant(i32Const(3)), 1, constant(opRefFunc, 2)),
	}
	code := b.code[2]
	code[len(code)-6] = 0x81 // call double
}

// An instance that is told to stop at some yield stops, whatever its code does.
func TestYieldEndsCodeThatNeverEnds(t *testing.T) {
	run := func(parts ...any) *builder {
		return &builder{
			types:     [][]byte{function(nil, nil), function([]byte{byte(I32)}, nil)},
			functions: [][]byte{{0}, {1}},
			tables:    [][]byte{cat(FuncRef, 0, 1)},
			exports:   [][]byte{export("run", KindFunction, 0)},
			elements:  [][]byte{cat(0, constant(i32Const(0)), 1, 0)},
			code:      [][]byte{body(parts...), body(opLocalGet, 0, opReturnCall, 1)},
		}
	}
	tests := []struct {
		name string
		b    *builder
	}{
		{"empty loop", run(opLoop, blockVoid, opBr, 0, opEnd)},
		{"loop with a parameter", run(i32Const(1), opLoop, 1, opDrop, i32Const(1), opBr, 0, opEnd)},
		{"loop with a result", run(opLoop, I32, opBr, 0, opEnd, opDrop)},
		{"br_table", run(opLoop, blockVoid, i32Const(5), opBrTable, 1, 0, 0, opEnd)},
		{"loop behind unreachable code", run(opLoop, blockVoid, opBr, 0, opLoop, blockVoid, opBr, 0, opEnd, opEnd)},
		{"tail call of itself", run(opReturnCall, 0)},
		{"tail call with an argument", run(i32Const(3), opReturnCall, 1)},
		{"indirect tail call", run(i32Const(0), opReturnCallIndirect, 0, 0)},
	}
	for engine, config := range engines() {
		for _, tc := range tests {
			t.Run(tc.name+" on "+engine, func(t *testing.T) {
				h := newHost(t, config)
				h.leaveAt = 3
				m := h.instantiate(t, withFuel(t, tc.b.build(), 100))
				_, err := m.ExportedFunction("run").Call(h.ctx)
				if !errors.Is(err, errLeave) {
					t.Errorf("got error %v, want %v", err, errLeave)
				}
				if h.yields != 3 {
					t.Errorf("%d yields, want 3", h.yields)
				}
				// The fuel was reset before the host left.
				if left := m.ExportedGlobal(DefaultGlobal).Get(); left != 101 {
					t.Errorf("%d units left, want 101", left)
				}
			})
		}
	}
}

func TestHostBringsYieldForward(t *testing.T) {
	tests := []struct {
		name    string
		fuel    int32
		headers int // passed up to the next yield
	}{
		{"to the third header", 3, 3},
		{"to the next header", 1, 1},
		{"from zero", 0, 1},
		{"from below zero", -100, 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			h := newHost(t, wazero.NewRuntimeConfig())
			m := h.instantiate(t, withFuel(t, sample().build(), 1_000_000))
			fuel := m.ExportedGlobal(DefaultGlobal).(api.MutableGlobal)
			fuel.Set(api.EncodeI32(tc.fuel))
			if tc.headers > 1 {
				if h.call(t, m, "sum", uint64(tc.headers-1)); h.yields != 0 {
					t.Errorf("%d yields after %d headers, want 0", h.yields, tc.headers-1)
				}
			}
			if h.call(t, m, "sum", 1); h.yields != 1 {
				t.Errorf("%d yields after %d headers, want 1", h.yields, tc.headers)
			}
		})
	}
}

func TestAddFuelUsesWhatIsThere(t *testing.T) {
	m := mustParse(t, sample().build())
	types := len(m.types)
	if err := AddFuel(m, FuelOptions{Module: "host", Name: "yield", Global: "left"}); err != nil {
		t.Fatal(err)
	}
	if len(m.types) != types {
		t.Errorf("%d types, want %d: the module has the type of yield", len(m.types), types)
	}
	if want := (Import{"host", "yield", KindFunction}); !slices.Contains(m.Imports(), want) {
		t.Errorf("imports %v, want %v among them", m.Imports(), want)
	}
	globals := m.MutableGlobals()
	want := Global{Index: 8, Type: I32, Init: DefaultInterval, Const: true}
	if got := globals[len(globals)-1]; got != want {
		t.Errorf("got global %v, want %v", got, want)
	}
	if want := (Export{"left", KindGlobal, 8}); !slices.Contains(m.Exports(), want) {
		t.Errorf("exports %v, want %v among them", m.Exports(), want)
	}

	// Once more, under another name: one more global, the same import.
	imports := m.Imports()
	if err := AddFuel(m, FuelOptions{Module: "host", Name: "yield", Global: "more"}); err != nil {
		t.Fatal(err)
	}
	if got := m.Imports(); !slices.Equal(got, imports) {
		t.Errorf("got imports %v, want %v", got, imports)
	}
	if !bytes.Equal(mustParse(t, m.Encode()).Encode(), m.Encode()) {
		t.Error("the encoding isn't stable")
	}
}

func TestAddFuelErrors(t *testing.T) {
	code := func(parts ...any) *builder {
		return &builder{
			types:     [][]byte{function(nil, nil), function([]byte{byte(I32)}, nil)},
			functions: [][]byte{{0}, {0}},
			code:      [][]byte{body(), body(parts...)},
		}
	}
	imports := func(entry []byte) *builder {
		b := code()
		b.imports = [][]byte{entry}
		return b
	}
	exports := code()
	exports.exports = [][]byte{export(DefaultGlobal, KindFunction, 0)}
	tests := []struct {
		name string
		b    *builder
		o    FuelOptions
		want string
	}{
		{"no function", code(), FuelOptions{Module: "host"}, "no yield function is named"},
		{"interval too large", code(), yieldOptions(1<<30 + 1), "interval 1073741825 is above 1073741824"},
		{"name taken", exports, yieldOptions(1), `already exports "codeexec_fuel"`},
		{
			"yield is a memory", imports(cat(appendName(nil, "host"), appendName(nil, "yield"), int(KindMemory), 0, 1)),
			yieldOptions(1), `the import "host" "yield" is a memory, want a func`,
		},
		{
			"yield has a parameter", imports(importFunction("host", "yield", 1)),
			yieldOptions(1), `"host" "yield" has parameters or results`,
		},
		{"call of no function", code(opCall, 2), yieldOptions(1), "function 1: offset 0x20: function index 2 is out of range, there are 2"},
		{"unknown opcode", code(0x01, 0x06), yieldOptions(1), "function 1: offset 0x20: unknown opcode 0x06"},
		{"atomic instruction", code(0xfe, 0x00), yieldOptions(1), "function 1: offset 0x1f: unknown opcode 0xfe"},
		{"unknown bulk instruction", code(0xfc, 0x12), yieldOptions(1), "unknown opcode 0xfc 0x12"},
		{"unknown SIMD instruction", code(0xfd, 0x9a, 0x01), yieldOptions(1), "unknown opcode 0xfd 0x9a"},
		{"relaxed SIMD instruction", code(0xfd, 0x80, 0x02), yieldOptions(1), "unknown opcode 0xfd 0x100"},
		{"other memory", code(i32Const(0), 0x28, 0x42, 0x01, 0x00, opDrop), yieldOptions(1), "unknown memory argument flags 0x42"},
		{"block that isn't closed", code(opBlock, blockVoid), yieldOptions(1), "function 1: offset 0x22: unexpected end"},
		{"code after the end", code(opEnd), yieldOptions(1), "function 1: offset 0x20: 1 bytes left over"},
		{"too many local variables", &builder{
			types: code().types, functions: [][]byte{{1}},
			code: [][]byte{bodyWithLocals(cat(1, appendU32(nil, 1<<32-1), I32))},
		}, yieldOptions(1), "function 0: offset 0x1a: 4294967296 parameters and local variables"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			m := mustParse(t, tc.b.build())
			err := AddFuel(m, tc.o)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "wasmbin: add fuel checks: ") {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
			if !bytes.Equal(m.Encode(), tc.b.build()) {
				t.Error("the module was changed in spite of the error")
			}
		})
	}
}

// The order in which the rewriters are applied doesn't matter.
func TestRewritersCombine(t *testing.T) {
	strip := func(m *Module) error { return StripData(m) }
	grow := func(m *Module) error { return m.SetMemoryMin(3) }
	fuel := func(m *Module) error { return AddFuel(m, yieldOptions(10)) }
	orders := [][]func(*Module) error{{strip, grow, fuel}, {fuel, grow, strip}, {grow, fuel, strip}}
	var first []byte
	for i, order := range orders {
		m := mustParse(t, sample().build())
		for _, rewrite := range order {
			if err := rewrite(m); err != nil {
				t.Fatal(err)
			}
		}
		if i == 0 {
			first = m.Encode()
		}
		if !bytes.Equal(m.Encode(), first) {
			t.Errorf("order %d gives another module than the first", i)
		}
	}
	h := newHost(t, wazero.NewRuntimeConfig())
	m := h.instantiate(t, first)
	if got := h.call(t, m, "sum", 100); got[0] != 5050 || h.yields != 10 {
		t.Errorf("sum(100) = %d with %d yields, want 5050 with 10", got[0], h.yields)
	}
	if pages := m.Memory().Size() >> 16; pages != 3 {
		t.Errorf("%d pages, want 3", pages)
	}
	if b, _ := m.Memory().Read(8, 2); !bytes.Equal(b, []byte{0, 0}) {
		t.Errorf("memory holds %q where a data segment was, want zeros", b)
	}
}

func ExampleAddFuel() {
	module := cat(preamble, "\x01\x04\x01\x60\x00\x00", "\x03\x02\x01\x00", // one function, () → ()
		"\x0a\x09\x01\x07\x00\x03\x40\x0c\x00\x0b\x0b") // that loops for ever
	m, err := Parse(module)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := AddFuel(m, FuelOptions{Module: "host", Name: "yield", Interval: 1000}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Imports(), m.Exports())
	// Output: [{host yield func}] [{codeexec_fuel global 0}]
}
