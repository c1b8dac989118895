package wasmbin

import "fmt"

// opcode is an instruction's opcode; for one behind a prefix byte, the prefix
// is in the upper 16 bits and the number that follows it in the lower ones.
type opcode uint32

const (
	prefixMisc = 0xfc // saturating conversions, bulk memory, tables
	prefixSIMD = 0xfd

	opBlock              opcode = 0x02
	opLoop               opcode = 0x03
	opIf                 opcode = 0x04
	opElse               opcode = 0x05
	opEnd                opcode = 0x0b
	opBr                 opcode = 0x0c
	opBrIf               opcode = 0x0d
	opBrTable            opcode = 0x0e
	opCall               opcode = 0x10
	opCallIndirect       opcode = 0x11
	opReturnCall         opcode = 0x12
	opReturnCallIndirect opcode = 0x13
	opSelectTyped        opcode = 0x1c
	opLocalGet           opcode = 0x20
	opLocalTee           opcode = 0x22
	opGlobalGet          opcode = 0x23
	opGlobalSet          opcode = 0x24
	opI32Const           opcode = 0x41
	opI64Const           opcode = 0x42
	opF32Const           opcode = 0x43
	opF64Const           opcode = 0x44
	opI32GtS             opcode = 0x4a
	opI32Sub             opcode = 0x6b
	opRefNull            opcode = 0xd0
	opRefFunc            opcode = 0xd2
	opMemoryInit         opcode = prefixMisc<<16 | 8
	opDataDrop           opcode = prefixMisc<<16 | 9

	blockVoid = 0x40 // block type of a block that takes and leaves nothing
)

// String gives the opcode's bytes as the specification writes them.
func (op opcode) String() string {
	if prefix := op >> 16; prefix != 0 {
		return fmt.Sprintf("%#02x %#02x", uint32(prefix), uint32(op&0xffff))
	}
	return fmt.Sprintf("%#02x", uint32(op))
}

// namesFunction tells whether the instruction's first immediate is a function
// index.
func (op opcode) namesFunction() bool {
	return op == opCall || op == opReturnCall || op == opRefFunc
}

// instruction is the place of one instruction in a reader's buffer.
type instruction struct {
	op        opcode
	start     int // of the opcode
	immediate int // of what follows the opcode
	end       int
}

// expression reads instructions up to and including the end that closes the
// expression, and calls visit for each.
func (r *reader) expression(visit func(instruction)) {
	for depth := 1; depth > 0; {
		in := r.instruction()
		if r.err != nil {
			return
		}
		switch in.op {
		case opBlock, opLoop, opIf:
			depth++
		case opEnd:
			depth--
		}
		visit(in)
	}
}

// instruction reads one instruction, without regard to its validity.
// https://www.w3.org/TR/wasm-core-2/#instructions%E2%91%A6
func (r *reader) instruction() instruction {
	in := instruction{start: r.pos}
	in.op = opcode(r.byte())
	if in.op == prefixMisc || in.op == prefixSIMD {
		number := r.u32()
		if number > 0xff { // no such instruction; keep it out of the prefix's bits
			r.fail(in.start, fmt.Errorf("unknown opcode %v %#x", in.op, number))
			return in
		}
		in.op = in.op<<16 | opcode(number)
	}
	in.immediate = r.pos
	if r.err == nil && !r.immediates(in.op) {
		r.fail(in.start, fmt.Errorf("unknown opcode %v", in.op))
	}
	in.end = r.pos
	return in
}

// immediates skips the immediate operands of op; false means that op is unknown.
func (r *reader) immediates(op opcode) bool {
	switch op >> 16 {
	case prefixMisc:
		return r.miscImmediates(op & 0xffff)
	case prefixSIMD:
		return r.simdImmediates(op & 0xffff)
	}
	switch {
	case op <= 0x01, // unreachable, nop
		op == opElse, op == opEnd,
		op == 0x0f,             // return
		op == 0x1a, op == 0x1b, // drop, select
		op >= 0x45 && op <= 0xc4, // numeric
		op == 0xd1:               // ref.is_null
	case op == opBlock, op == opLoop, op == opIf:
		r.signed(33)
	case op == opBr, op == opBrIf,
		op.namesFunction(),
		op >= 0x20 && op <= 0x26: // local.*, global.*, table.get, table.set
		r.u32()
	case op == opBrTable:
		for n := r.count(); n > 0; n-- {
			r.u32()
		}
		r.u32()
	case op == opCallIndirect, op == opReturnCallIndirect:
		r.u32()
		r.u32()
	case op == opSelectTyped:
		for n := r.count(); n > 0; n-- {
			r.valueType()
		}
	case op >= 0x28 && op <= 0x3e: // loads and stores
		r.memArg()
	case op == 0x3f, op == 0x40: // memory.size, memory.grow
		r.memory()
	case op == opI32Const:
		r.signed(32)
	case op == opI64Const:
		r.signed(64)
	case op == opF32Const:
		r.bytes(4)
	case op == opF64Const:
		r.bytes(8)
	case op == opRefNull:
		r.refType()
	default:
		return false
	}
	return true
}

func (r *reader) miscImmediates(number opcode) bool {
	switch {
	case number <= 7: // saturating conversions
	case number == 8: // memory.init
		r.u32()
		r.memory()
	case number == 9, number == 13, // data.drop, elem.drop
		number >= 15 && number <= 17: // table.grow, table.size, table.fill
		r.u32()
	case number == 10: // memory.copy
		r.memory()
		r.memory()
	case number == 11: // memory.fill
		r.memory()
	case number == 12, number == 14: // table.init, table.copy
		r.u32()
		r.u32()
	default:
		return false
	}
	return true
}

func (r *reader) simdImmediates(number opcode) bool {
	switch number {
	case 0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb,
		0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee:
		return false // not assigned
	}
	switch {
	case number <= 0x0b, number == 0x5c, number == 0x5d: // loads and stores
		r.memArg()
	case number == 0x0c, number == 0x0d: // v128.const, i8x16.shuffle
		r.bytes(16)
	case number >= 0x15 && number <= 0x22: // extract_lane, replace_lane
		r.byte()
	case number >= 0x54 && number <= 0x5b: // loads and stores of one lane
		r.memArg()
		r.byte()
	}
	return true
}

func (r *reader) memArg() {
	start := r.pos
	if align := r.u32(); align >= 0x40 {
		r.fail(start, fmt.Errorf("unknown memory argument flags %#x", align))
	}
	r.u32()
}

func (r *reader) memory() {
	start := r.pos
	if i := r.byte(); i != 0 {
		r.fail(start, fmt.Errorf("memory index %d: there is only memory 0", i))
	}
}
