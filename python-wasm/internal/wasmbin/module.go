package wasmbin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// Module is a WebAssembly module: its sections as they are in the binary, and
// what the rewriters need to know of them. It is made by [Parse]. A Module may
// be read from several goroutines as long as none rewrites it.
type Module struct {
	sections []section

	// What follows is derived from sections by decode.

	types         []funcType
	imports       []Import
	functions     []uint32 // type index of every function, imported ones first
	importedFuncs int
	tables        int // imported ones included, as are those of memories and globals
	memories      int
	globals       int
	mutables      []Global
	memory        Limits
	memoryMin     span // of the defined memory's minimum in the memory section, empty if it is imported
	exports       []Export
	bodies        []span // of the defined functions in the code section, without their size
}

// section is one section of a module. Its body is never changed in place,
// since it may alias the slice given to Parse.
type section struct {
	id     byte
	header []byte // id and size as they were read, nil once the body is another
	body   []byte
}

// funcType is a function's type; its value types are those of the binary.
type funcType struct{ params, results []byte }

const (
	typeFunction = 0x60 // what a function type starts with
	mutable      = 0x01 // what a mutable global's type ends with
)

// Section identifiers. The data count section comes before the code section
// in spite of its number.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

var sectionNames = [...]string{
	"custom", "type", "import", "function", "table", "memory", "global",
	"export", "start", "element", "code", "data", "data count",
}

// sectionRank is a section's place in the order of sections.
func sectionRank(id byte) int {
	switch id {
	case sectionDataCount:
		return sectionCode
	case sectionCode, sectionData:
		return int(id) + 1
	}
	return int(id)
}

// ValueType is the type of a value, in its binary encoding.
type ValueType byte

// The value types of WebAssembly 2.0.
const (
	I32       ValueType = 0x7f
	I64       ValueType = 0x7e
	F32       ValueType = 0x7d
	F64       ValueType = 0x7c
	V128      ValueType = 0x7b
	FuncRef   ValueType = 0x70
	ExternRef ValueType = 0x6f
)

func (t ValueType) valid() bool {
	return t >= V128 && t <= I32 || t == FuncRef || t == ExternRef
}

// Kind is what an import or export is, in its binary encoding.
type Kind byte

// The kinds of imports and exports of WebAssembly 2.0.
const (
	KindFunction Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// String returns the kind's keyword in the text format.
func (k Kind) String() string {
	switch k {
	case KindFunction:
		return "func"
	case KindTable:
		return "table"
	case KindMemory:
		return "memory"
	case KindGlobal:
		return "global"
	}
	return fmt.Sprintf("kind %#x", byte(k))
}

// Import is one import of a module.
type Import struct {
	Module, Name string
	Kind         Kind
}

// Export is one export of a module. Index counts in the index space of Kind,
// in which imports come first.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
}

// Global is a mutable global that a module defines.
type Global struct {
	Index uint32 // imported globals come first
	Type  ValueType
	// Init is the initial value's bits, an i32 zero-extended, as wazero's
	// api.Global.Get returns them. It is meaningful only if Const is set: the
	// initial value is a number and not taken from elsewhere.
	Init  uint64
	Const bool
}

// Limits are a memory's initial and greatest size in pages of 64 KiB. Max
// counts only if HasMax is set.
type Limits struct {
	Min, Max uint32
	HasMax   bool
}

// maxMemoryPages is the size of a 32-bit address space.
const maxMemoryPages = 1 << 16

var preamble = []byte("\x00asm\x01\x00\x00\x00")

// Parse reads a module in the binary format of WebAssembly 2.0. It checks the
// structure, not the validity: an engine does that when it compiles the
// module. Function bodies are only delimited; an instruction that isn't known
// is reported by the rewriter that meets it. The module refers to b, which
// must not be changed afterwards.
//
// Any input gives a module or an error, and takes memory in proportion to its
// length.
func Parse(b []byte) (*Module, error) {
	if !bytes.HasPrefix(b, preamble) {
		return nil, errors.New("wasmbin: not a WebAssembly 1 binary: wrong magic number or version")
	}
	r := &reader{buf: b, pos: len(preamble)}
	m := &Module{}
	for r.more() {
		start := r.pos
		id := r.byte()
		size := r.u32()
		header := b[start:r.pos]
		m.sections = append(m.sections, section{id: id, header: header, body: r.bytes(size)})
	}
	if r.err != nil {
		return nil, fmt.Errorf("wasmbin: sections: %w", r.err)
	}
	if err := m.decode(); err != nil {
		return nil, fmt.Errorf("wasmbin: %w", err)
	}
	return m, nil
}

// Encode returns the module in the binary format. Sections that weren't
// rewritten are byte for byte what Parse read.
func (m *Module) Encode() []byte {
	size := len(preamble)
	for _, s := range m.sections {
		size += 6 + len(s.body)
	}
	b := append(make([]byte, 0, size), preamble...)
	for _, s := range m.sections {
		b = append(append(b, s.encodedHeader()...), s.body...)
	}
	return b
}

func (s section) encodedHeader() []byte {
	if s.header != nil {
		return s.header
	}
	return appendU32([]byte{s.id}, uint32(len(s.body)))
}

// Imports returns the imports in the module's order.
func (m *Module) Imports() []Import { return slices.Clone(m.imports) }

// Exports returns the exports in the module's order.
func (m *Module) Exports() []Export { return slices.Clone(m.exports) }

// MutableGlobals returns the mutable globals that the module defines, in the
// order of their indexes. Imported ones are not among them.
func (m *Module) MutableGlobals() []Global { return slices.Clone(m.mutables) }

// MemoryLimits returns the limits of the module's memory, defined or imported;
// false means that it has none.
func (m *Module) MemoryLimits() (Limits, bool) { return m.memory, m.memories > 0 }

// SetMemoryMin makes pages, of 64 KiB each, the initial size of the memory
// that the module defines. It fails if there is no such memory or if its
// maximum is smaller.
func (m *Module) SetMemoryMin(pages uint32) error {
	switch {
	case m.memoryMin == (span{}):
		return fmt.Errorf("wasmbin: set initial memory to %d pages: the module defines no memory", pages)
	case pages > maxMemoryPages:
		return fmt.Errorf("wasmbin: set initial memory to %d pages: the limit is %d", pages, maxMemoryPages)
	case m.memory.HasMax && pages > m.memory.Max:
		return fmt.Errorf("wasmbin: set initial memory to %d pages: the module's maximum is %d", pages, m.memory.Max)
	}
	s := splicer{src: m.body(sectionMemory)}
	s.replace(m.memoryMin)
	s.out = appendU32(s.out, pages)
	s.copyTo(len(s.src))
	return m.rewrite(func(next *Module) { next.set(sectionMemory, s.out) })
}

// body returns the body of the section id, nil if the module has none.
func (m *Module) body(id byte) []byte {
	for _, s := range m.sections {
		if s.id == id {
			return s.body
		}
	}
	return nil
}

// rewrite lets edit change the sections of a copy of m, whose derived fields
// stay those of m meanwhile, and makes m that copy if it can be decoded.
func (m *Module) rewrite(edit func(next *Module)) error {
	next := *m
	next.sections = slices.Clone(m.sections)
	edit(&next)
	decoded := Module{sections: next.sections}
	if err := decoded.decode(); err != nil {
		return fmt.Errorf("wasmbin: rewritten module: %w", err)
	}
	*m = decoded
	return nil
}

// set replaces the body of the section id, or inserts the section where it
// belongs.
func (m *Module) set(id byte, body []byte) {
	at := len(m.sections)
	for i, s := range m.sections {
		if s.id == id {
			m.sections[i] = section{id: id, body: body}
			return
		}
		if s.id != sectionCustom && sectionRank(s.id) > sectionRank(id) {
			at = i
			break
		}
	}
	m.sections = slices.Insert(m.sections, at, section{id: id, body: body})
}

// add appends an entry to the vector that is the body of the section id.
func (m *Module) add(id byte, entry []byte) {
	r := &reader{buf: m.body(id)}
	n := uint32(0)
	if r.more() {
		n = r.u32()
	}
	body := appendU32(nil, n+1)
	body = append(body, r.buf[r.pos:]...)
	m.set(id, append(body, entry...))
}

// remove drops the sections that drop selects. What was derived from the
// others stays true.
func (m *Module) remove(drop func(section) bool) {
	m.sections = slices.DeleteFunc(slices.Clone(m.sections), drop)
}

// offset returns the place of the body of the section id in the binary.
func (m *Module) offset(id byte) int {
	offset := len(preamble)
	for _, s := range m.sections {
		offset += len(s.encodedHeader())
		if s.id == id {
			break
		}
		offset += len(s.body)
	}
	return offset
}

// decode derives all other fields of m from its sections.
func (m *Module) decode() error {
	offset, rank := len(preamble), 0
	for _, s := range m.sections {
		offset += len(s.encodedHeader())
		if int(s.id) >= len(sectionNames) {
			return fmt.Errorf("offset %#x: unknown section %d", offset, s.id)
		}
		if s.id != sectionCustom {
			if sectionRank(s.id) <= rank {
				return fmt.Errorf("offset %#x: %s section is out of order or there twice", offset, sectionNames[s.id])
			}
			rank = sectionRank(s.id)
		}
		r := &reader{buf: s.body, base: offset}
		m.decodeSection(s.id, r)
		if err := r.finish(); err != nil {
			return fmt.Errorf("%s section: %w", sectionNames[s.id], err)
		}
		offset += len(s.body)
	}
	if defined := len(m.functions) - m.importedFuncs; defined != len(m.bodies) {
		return fmt.Errorf("%d functions are declared, %d have a body", defined, len(m.bodies))
	}
	return nil
}

func (m *Module) decodeSection(id byte, r *reader) {
	switch id {
	case sectionCustom:
		r.name()
		r.bytes(uint32(len(r.buf) - r.pos))
	case sectionType:
		m.decodeTypes(r)
	case sectionImport:
		m.decodeImports(r)
	case sectionFunction:
		for n := r.count(); n > 0; n-- {
			m.functions = append(m.functions, r.index(len(m.types), "type"))
		}
	case sectionTable:
		for n := r.count(); n > 0; n-- {
			m.decodeTable(r)
		}
	case sectionMemory:
		for n := r.count(); n > 0; n-- {
			m.memoryMin = m.decodeMemory(r)
		}
	case sectionGlobal:
		for n := r.count(); n > 0; n-- {
			m.decodeGlobal(r)
		}
	case sectionExport:
		m.decodeExports(r)
	case sectionStart:
		r.index(len(m.functions), "function")
	case sectionElement:
		walkElements(r, func(at span) { m.checkFunction(r, at) })
	case sectionCode:
		m.decodeCode(r)
	case sectionData, sectionDataCount:
		// Only ever dropped as a whole.
		r.bytes(uint32(len(r.buf)))
	}
}

func (m *Module) decodeTypes(r *reader) {
	for n := r.count(); n > 0; n-- {
		start := r.pos
		if form := r.byte(); r.err == nil && form != typeFunction {
			r.fail(start, fmt.Errorf("unknown type %#x, want a function type", form))
			return
		}
		m.types = append(m.types, funcType{params: r.valueTypes(), results: r.valueTypes()})
	}
}

// valueTypes reads a vector of value types.
func (r *reader) valueTypes() []byte {
	n := r.count()
	start := r.pos
	for range n {
		r.valueType()
	}
	return r.buf[start:r.pos]
}

func (m *Module) decodeImports(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		imp := Import{Module: r.name(), Name: r.name()}
		start := r.pos
		imp.Kind = Kind(r.byte())
		switch imp.Kind {
		case KindFunction:
			m.functions = append(m.functions, r.index(len(m.types), "type"))
			m.importedFuncs++
		case KindTable:
			m.decodeTable(r)
		case KindMemory:
			m.decodeMemory(r)
		case KindGlobal:
			r.valueType()
			r.mutability()
			m.globals++
		default:
			r.fail(start, fmt.Errorf("unknown kind of import %#x", byte(imp.Kind)))
		}
		m.imports = append(m.imports, imp)
	}
}

func (m *Module) decodeTable(r *reader) {
	r.refType()
	r.limits()
	m.tables++
}

func (m *Module) decodeMemory(r *reader) span {
	start := r.pos
	limits, minAt := r.limits()
	if m.memories++; m.memories > 1 {
		r.fail(start, errors.New("more than one memory"))
	}
	m.memory = limits
	return minAt
}

func (m *Module) decodeGlobal(r *reader) {
	g := Global{Index: uint32(m.globals), Type: r.valueType()}
	m.globals++
	isMutable := r.mutability()
	start := r.pos
	r.walkConstant(func(at span) { m.checkFunction(r, at) })
	if r.err != nil || !isMutable {
		return
	}
	init := r.at(span{start, r.pos})
	g.Init, g.Const = init.constant()
	m.mutables = append(m.mutables, g)
}

// constant reads an expression that does no more than push a number, and
// returns the number's bits; false means that it is another expression.
func (r *reader) constant() (bits uint64, ok bool) {
	switch opcode(r.byte()) {
	case opI32Const:
		bits = uint64(uint32(r.signed(32)))
	case opI64Const:
		bits = uint64(r.signed(64))
	case opF32Const:
		bits = littleEndian(r.bytes(4))
	case opF64Const:
		bits = littleEndian(r.bytes(8))
	default:
		return 0, false
	}
	return bits, opcode(r.byte()) == opEnd
}

func littleEndian(b []byte) uint64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	return v
}

func (m *Module) decodeExports(r *reader) {
	spaces := [...]int{KindFunction: len(m.functions), KindTable: m.tables, KindMemory: m.memories, KindGlobal: m.globals}
	for n := r.count(); n > 0 && r.err == nil; n-- {
		name := r.name()
		start := r.pos
		kind := Kind(r.byte())
		if int(kind) >= len(spaces) {
			r.fail(start, fmt.Errorf("unknown kind of export %#x", byte(kind)))
			return
		}
		m.exports = append(m.exports, Export{Name: name, Kind: kind, Index: r.index(spaces[kind], kind.String())})
	}
}

func (m *Module) decodeCode(r *reader) {
	for n := r.count(); n > 0 && r.err == nil; n-- {
		size := r.u32()
		start := r.pos
		r.bytes(size)
		m.bodies = append(m.bodies, span{start, r.pos})
	}
}
