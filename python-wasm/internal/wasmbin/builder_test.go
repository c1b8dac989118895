package wasmbin

import "slices"

// builder puts a module together from entries of its sections.
type builder struct {
	types, imports, functions, tables, memories, globals [][]byte
	exports, elements, code, data                        [][]byte
	start                                                []byte
	dataCount                                            bool
	custom                                               bool // a custom section at either end
}

func (b *builder) build() []byte {
	out := slices.Clone(preamble)
	section := func(id byte, body []byte) {
		out = appendBody(append(out, id), body)
	}
	vector := func(id byte, entries [][]byte) {
		if len(entries) > 0 {
			section(id, cat(appendU32(nil, uint32(len(entries))), slices.Concat(entries...)))
		}
	}
	if b.custom {
		section(sectionCustom, cat(appendName(nil, "first"), "anything"))
	}
	vector(sectionType, b.types)
	vector(sectionImport, b.imports)
	vector(sectionFunction, b.functions)
	vector(sectionTable, b.tables)
	vector(sectionMemory, b.memories)
	vector(sectionGlobal, b.globals)
	vector(sectionExport, b.exports)
	if b.start != nil {
		section(sectionStart, b.start)
	}
	vector(sectionElement, b.elements)
	if b.dataCount {
		section(sectionDataCount, appendU32(nil, uint32(len(b.data))))
	}
	vector(sectionCode, b.code)
	vector(sectionData, b.data)
	if b.custom {
		section(sectionCustom, cat(appendName(nil, "last"), 1, 2, 3))
	}
	return out
}

// cat joins bytes, given as numbers, opcodes, value types, strings and slices.
func cat(parts ...any) []byte {
	var b []byte
	for _, part := range parts {
		switch part := part.(type) {
		case int:
			b = append(b, byte(part))
		case opcode:
			b = append(b, byte(part))
		case ValueType:
			b = append(b, byte(part))
		case string:
			b = append(b, part...)
		case []byte:
			b = append(b, part...)
		default:
			panic("cat: unknown kind of part")
		}
	}
	return b
}

// function returns an entry of the type section.
func function(params, results []byte) []byte {
	return appendBody(appendBody([]byte{typeFunction}, params), results)
}

// importFunction returns an entry of the import section.
func importFunction(module, name string, functionType int) []byte {
	return cat(appendName(nil, module), appendName(nil, name), int(KindFunction), functionType)
}

// export returns an entry of the export section.
func export(name string, kind Kind, index int) []byte {
	return cat(appendName(nil, name), int(kind), index)
}

// body returns an entry of the code section, of a function without local
// variables.
func body(parts ...any) []byte { return bodyWithLocals([]byte{0}, parts...) }

// bodyWithLocals is body with the declarations of local variables.
func bodyWithLocals(locals []byte, parts ...any) []byte {
	return appendBody(nil, cat(locals, cat(parts...), opEnd))
}

func i32Const(v int32) []byte { return appendS32([]byte{byte(opI32Const)}, v) }

func constant(parts ...any) []byte { return cat(cat(parts...), opEnd) }

// Opcodes that only tests write.
const (
	opReturn   opcode = 0x0f
	opDrop     opcode = 0x1a
	opLocalSet opcode = 0x21
	opI32Eqz   opcode = 0x45
	opI32GeS   opcode = 0x4e
	opI32Add   opcode = 0x6a
	opI32Mul   opcode = 0x6c
)
