package wasmbin

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// sample returns a module that has every section and every way in which a
// section other than the code section can refer to a function.
func sample() *builder {
	return &builder{
		custom: true,
		types: [][]byte{
			function([]byte{byte(I32)}, []byte{byte(I32)}),
			function(nil, nil),
		},
		imports: [][]byte{
			importFunction("env", "double", 0),
			cat(appendName(nil, "env"), appendName(nil, "base"), int(KindGlobal), I32, 0),
		},
		functions: [][]byte{{0}, {0}, {0}, {1}},
		tables:    [][]byte{cat(FuncRef, 0, 16), cat(FuncRef, 1, 4, 4)},
		memories:  [][]byte{{1, 1, 4}},
		globals: [][]byte{
			cat(I32, mutable, constant(i32Const(-7))),
			cat(FuncRef, 0, constant(opRefFunc, 1)),
			cat(FuncRef, mutable, constant(opRefFunc, 0)),
			cat(I32, mutable, constant(opGlobalGet, 0)),
			cat(I64, mutable, constant(opI64Const, 0x7e)),
			cat(F32, mutable, constant(opF32Const, 0, 0, 0x80, 0x3f)),
			cat(F64, mutable, constant(opF64Const, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f)),
		},
		exports: [][]byte{
			export("table", KindTable, 0),
			export("memory", KindMemory, 0),
			export("global", KindGlobal, 1),
			export("double", KindFunction, 0),
			export("sum", KindFunction, 1),
			export("apply", KindFunction, 2),
			export("countdown", KindFunction, 3),
		},
		start: []byte{4},
		elements: [][]byte{
			cat(0, constant(i32Const(0)), 3, 0, 1, 2), // active
			cat(1, 0, 1, 3), // passive
			cat(2, 1, constant(i32Const(0)), 0, 1, 1),                                      // active, table 1
			cat(3, 0, 2, 0, 4),                                                             // declarative
			cat(4, constant(i32Const(3)), 1, constant(opRefFunc, 1)),                       // active, expressions
			cat(5, FuncRef, 1, constant(opRefFunc, 0)),                                     // passive, expressions
			cat(6, 1, constant(i32Const(1)), FuncRef, 1, constant(opRefNull, FuncRef)),     // active, table 1, expressions
			cat(7, FuncRef, 2, constant(opRefFunc, 0x81, 0x00), constant(opRefFunc, 0x02)), // declarative, expressions; padded
		},
		code: [][]byte{
			// sum(n) = 1+…+n, by a loop whose parameter is the sum.
			body(
				i32Const(0),
				opLoop, 0, // i32 → i32
				opLocalGet, 0, opI32Add,
				opLocalGet, 0, i32Const(1), opI32Sub, opLocalTee, 0,
				i32Const(0), opI32GtS, opBrIf, 0,
				opEnd),
			// apply(n) calls table[n&3](n) in 4 rounds of 2 and adds the results.
			bodyWithLocals([]byte{2, 1, byte(I32), 2, byte(I32)},
				opLoop, blockVoid,
				i32Const(2), opLocalSet, 2,
				opLoop, blockVoid,
				opLocalGet, 0, opLocalGet, 0, i32Const(3), 0x71 /* and */, opCallIndirect, 0, 0,
				opLocalGet, 3, opI32Add, opLocalSet, 3,
				opLocalGet, 2, i32Const(1), opI32Sub, opLocalTee, 2, opBrIf, 0,
				opEnd,
				opLocalGet, 1, i32Const(1), opI32Add, opLocalTee, 1,
				i32Const(4), opI32GeS, opI32Eqz, opBrIf, 0,
				opEnd,
				opLocalGet, 3),
			// countdown(n) = double(n), after n passes of a loop that is left by
			// a br_table. The index of double is padded as a linker would.
			bodyWithLocals([]byte{1, 1, byte(I32)},
				opLocalGet, 0, opLocalSet, 1,
				opBlock, blockVoid,
				opLoop, blockVoid,
				opLocalGet, 1, i32Const(1), opI32Sub, opLocalTee, 1,
				i32Const(0), opI32GtS, opI32Eqz, opBrTable, 1, 0, 1,
				opEnd,
				opEnd,
				opLocalGet, 0, opCall, 0x80, 0x80, 0x80, 0x80, 0x00),
			body(), // start
		},
		data:      [][]byte{cat(0, constant(i32Const(8)), 2, "hi"), cat(1, 3, "bye")},
		dataCount: true,
	}
}

func mustParse(t testing.TB, b []byte) *Module {
	t.Helper()
	m, err := Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEncodeGivesWhatWasParsed(t *testing.T) {
	tests := []struct {
		name string
		wasm []byte
	}{
		{"empty", preamble},
		{"all sections", sample().build()},
		{"padded numbers", cat(preamble, sectionType, "\x85\x80\x00", "\x81\x00", typeFunction, 0, 0)},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := mustParse(t, tc.wasm).Encode(); !bytes.Equal(got, tc.wasm) {
				t.Errorf("got  %x\nwant %x", got, tc.wasm)
			}
		})
	}
}

func TestModuleTellsWhatItHas(t *testing.T) {
	m := mustParse(t, sample().build())

	imports := []Import{{"env", "double", KindFunction}, {"env", "base", KindGlobal}}
	if got := m.Imports(); !slices.Equal(got, imports) {
		t.Errorf("imports: got %v, want %v", got, imports)
	}
	exports := []Export{
		{"table", KindTable, 0}, {"memory", KindMemory, 0}, {"global", KindGlobal, 1}, {"double", KindFunction, 0},
		{"sum", KindFunction, 1}, {"apply", KindFunction, 2}, {"countdown", KindFunction, 3},
	}
	if got := m.Exports(); !slices.Equal(got, exports) {
		t.Errorf("exports: got %v, want %v", got, exports)
	}
	globals := []Global{
		{Index: 1, Type: I32, Init: 0xffff_fff9, Const: true},
		{Index: 3, Type: FuncRef},
		{Index: 4, Type: I32},
		{Index: 5, Type: I64, Init: 0xffff_ffff_ffff_fffe, Const: true},
		{Index: 6, Type: F32, Init: 0x3f80_0000, Const: true},
		{Index: 7, Type: F64, Init: 0x3ff0_0000_0000_0000, Const: true},
	}
	if got := m.MutableGlobals(); !slices.Equal(got, globals) {
		t.Errorf("globals: got %v, want %v", got, globals)
	}
	limits, ok := m.MemoryLimits()
	if want := (Limits{Min: 1, Max: 4, HasMax: true}); !ok || limits != want {
		t.Errorf("memory: got %v, %v, want %v", limits, ok, want)
	}
	if _, ok := mustParse(t, preamble).MemoryLimits(); ok {
		t.Error("an empty module has a memory")
	}
}

func TestParseRejectsMalformedModules(t *testing.T) {
	with := func(sections ...any) []byte { return cat(preamble, cat(sections...)) }
	tests := []struct {
		name string
		wasm []byte
		want string
	}{
		{"nothing", nil, "not a WebAssembly 1 binary"},
		{"text", []byte("(module)"), "not a WebAssembly 1 binary"},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), "version"},
		{"section that is cut short", with(sectionType, 5, 1), "offset 0xa: unexpected end"},
		{"section size that is too long", with(sectionType, "\xff\xff\xff\xff\xff\x00"), "longer than 32 bits"},
		{"section size above 32 bits", with(sectionType, "\xff\xff\xff\xff\x1f"), "longer than 32 bits"},
		{"unknown section", with(77, 0), "unknown section 77"},
		{"tag section", with(13, 1, 0), "unknown section 13"},
		{"section twice", with(sectionType, 1, 0, sectionType, 1, 0), "type section is out of order"},
		{"sections out of order", with(sectionImport, 1, 0, sectionType, 1, 0), "type section is out of order"},
		{"data count after code", with(sectionCode, 1, 0, sectionDataCount, 1, 0), "data count section is out of order"},
		{"bytes left over", with(sectionType, 3, 0, 1, 2), "type section: offset 0xb: 2 bytes left over"},
		{"more elements than bytes", with(sectionType, 5, "\xff\xff\xff\xff\x0f"), "4294967295 elements in 0 bytes"},
		{"custom section without name", with(sectionCustom, 0), "custom section"},
		{"name that isn't UTF-8", with(sectionCustom, 2, 1, 0xff), "not UTF-8"},
		{"struct type", with(sectionType, 3, 1, 0x5f, 0), "unknown type 0x5f"},
		{"unknown value type", with(sectionType, 5, 1, typeFunction, 1, 0x6e, 0), "unknown value type 0x6e"},
		{"imported function of no type", with(sectionImport, 5, 1, 0, 0, 0, 0), "type index 0 is out of range, there are 0"},
		{"imported tag", with(sectionImport, 6, 1, 0, 0, 4, 0, 0), "unknown kind of import 0x4"},
		{"function of no type", with(sectionFunction, 2, 1, 0), "type index 0 is out of range"},
		{"function without body", with(sectionType, 4, 1, typeFunction, 0, 0, sectionFunction, 2, 1, 0), "1 functions are declared, 0 have a body"},
		{"body without function", with(sectionCode, 4, 1, 2, 0, opEnd), "0 functions are declared, 1 have a body"},
		{"body that is cut short", with(sectionCode, 4, 1, 9, 0, opEnd), "code section: offset 0xc: unexpected end"},
		{"table with an initial value", with(sectionTable, 3, 1, 0x40, 0), "unknown reference type 0x40"},
		{"two memories", with(sectionMemory, 5, 2, 0, 1, 0, 1), "more than one memory"},
		{"64-bit memory", with(sectionMemory, 3, 1, 4, 1), "unknown limits flags 0x4"},
		{"unknown mutability", with(sectionGlobal, 6, 1, I32, 2, opI32Const, 0, opEnd), "unknown mutability 0x2"},
		{"global with an endless initial value", with(sectionGlobal, 5, 1, I32, 0, opI32Const, 0), "unexpected end"},
		{"global that refers to no function", with(sectionGlobal, 6, 1, FuncRef, 0, opRefFunc, 9, opEnd), "func"},
		{"export of nothing", with(sectionExport, 4, 1, 0, 0, 0), "func index 0 is out of range"},
		{"exported tag", with(sectionExport, 4, 1, 0, 4, 0), "unknown kind of export 0x4"},
		{"start function that isn't there", with(sectionStart, 1, 0), "function index 0 is out of range"},
		{"unknown element flags", with(sectionElement, 2, 1, 8), "unknown element segment flags 0x8"},
		{"unknown element kind", with(sectionElement, 4, 1, 1, 1, 0), "unknown element kind 0x1"},
		{"element that refers to no function", with(sectionElement, 5, 1, 1, 0, 1, 0), "function index 0 is out of range"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse(tc.wasm)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "wasmbin: ") {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// Every prefix and every byte changed: an error or a module, never a panic.
func TestParseSurvivesDamage(t *testing.T) {
	wasm := sample().build()
	try := func(b []byte) {
		m, err := Parse(b)
		if err != nil {
			return
		}
		_ = StripData(mustParse(t, b))
		_ = AddFuel(m, yieldOptions(10))
	}
	for i := range wasm {
		try(wasm[:i])
		for _, x := range []byte{0x00, 0x01, 0x7f, 0x80, 0xff, wasm[i] + 1, wasm[i] - 1} {
			damaged := slices.Clone(wasm)
			damaged[i] = x
			try(damaged)
		}
	}
}

func TestSetMemoryMin(t *testing.T) {
	tests := []struct {
		name   string
		memory []byte
		pages  uint32
		want   string // error
	}{
		{name: "longer number", memory: []byte{0, 1}, pages: 700},
		{name: "shorter number", memory: []byte{0, 0x80, 0x7d}, pages: 2},
		{name: "up to the maximum", memory: []byte{1, 1, 9}, pages: 9},
		{name: "above the maximum", memory: []byte{1, 1, 9}, pages: 10, want: "the module's maximum is 9"},
		{name: "whole address space", memory: []byte{0, 1}, pages: 65536},
		{name: "above the address space", memory: []byte{0, 1}, pages: 65537, want: "the limit is 65536"},
		{name: "no memory", pages: 1, want: "the module defines no memory"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			b := &builder{exports: nil}
			if tc.memory != nil {
				b.memories = [][]byte{tc.memory}
				b.exports = [][]byte{export("memory", KindMemory, 0)}
			}
			m := mustParse(t, b.build())
			before := m.Encode()
			err := m.SetMemoryMin(tc.pages)
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("got error %v, want one with %q", err, tc.want)
				}
				if !bytes.Equal(m.Encode(), before) {
					t.Error("the module was changed in spite of the error")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			was, _ := mustParse(t, before).MemoryLimits()
			got, _ := mustParse(t, m.Encode()).MemoryLimits()
			was.Min = tc.pages
			if got != was {
				t.Errorf("got limits %v, want %v", got, was)
			}
			if now, _ := m.MemoryLimits(); now != got {
				t.Errorf("the module says %v, its encoding %v", now, got)
			}
		})
	}

	t.Run("imported memory", func(t *testing.T) {
		b := &builder{imports: [][]byte{cat(appendName(nil, "env"), appendName(nil, "memory"), int(KindMemory), 0, 1)}}
		m := mustParse(t, b.build())
		if err := m.SetMemoryMin(2); err == nil {
			t.Error("got no error")
		}
		if limits, ok := m.MemoryLimits(); !ok || limits.Min != 1 {
			t.Errorf("got limits %v, %v, want a minimum of 1", limits, ok)
		}
	})
}
