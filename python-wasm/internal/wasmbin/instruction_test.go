package wasmbin

import (
	"slices"
	"strings"
	"testing"
)

// All instructions that are known are passed over in their full length: a
// wrong length would take an operand for an opcode or the other way round.
func TestInstructionLengths(t *testing.T) {
	const memArg = "\x02\x90\x01"
	tests := []struct {
		name     string
		from, to int
		prefix   []byte
		operands string
	}{
		{"unreachable, nop", 0x00, 0x01, nil, ""},
		{"br, br_if", 0x0c, 0x0d, nil, "\x80\x01"},
		{"br_table", 0x0e, 0x0e, nil, "\x02\x03\x03\x03"},
		{"return", 0x0f, 0x0f, nil, ""},
		{"call", 0x10, 0x10, nil, "\x90\x01"},
		{"call_indirect", 0x11, 0x11, nil, "\x80\x01\x03"},
		{"return_call", 0x12, 0x12, nil, "\x90\x01"},
		{"return_call_indirect", 0x13, 0x13, nil, "\x80\x01\x03"},
		{"drop, select", 0x1a, 0x1b, nil, ""},
		{"select t", 0x1c, 0x1c, nil, "\x01\x7f"},
		{"variables and tables", 0x20, 0x26, nil, "\x90\x01"},
		{"loads and stores", 0x28, 0x3e, nil, memArg},
		{"memory.size, memory.grow", 0x3f, 0x40, nil, "\x00"},
		{"i32.const", 0x41, 0x41, nil, "\x90\x90\x90\x90\x70"},
		{"i64.const", 0x42, 0x42, nil, "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x7f"},
		{"f32.const", 0x43, 0x43, nil, "\x10\x10\x10\x10"},
		{"f64.const", 0x44, 0x44, nil, "\x10\x10\x10\x10\x10\x10\x10\x10"},
		{"numeric", 0x45, 0xc4, nil, ""},
		{"ref.null", 0xd0, 0xd0, nil, "\x70"},
		{"ref.is_null", 0xd1, 0xd1, nil, ""},
		{"ref.func", 0xd2, 0xd2, nil, "\x90\x01"},
		{"saturating conversions", 0, 7, []byte{prefixMisc}, ""},
		{"memory.init", 8, 8, []byte{prefixMisc}, "\x90\x01\x00"},
		{"data.drop", 9, 9, []byte{prefixMisc}, "\x90\x01"},
		{"memory.copy", 10, 10, []byte{prefixMisc}, "\x00\x00"},
		{"memory.fill", 11, 11, []byte{prefixMisc}, "\x00"},
		{"table.init", 12, 12, []byte{prefixMisc}, "\x90\x01\x03"},
		{"elem.drop", 13, 13, []byte{prefixMisc}, "\x90\x01"},
		{"table.copy", 14, 14, []byte{prefixMisc}, "\x90\x01\x03"},
		{"table.grow, table.size, table.fill", 15, 17, []byte{prefixMisc}, "\x90\x01"},
		{"SIMD loads and stores", 0x00, 0x0b, []byte{prefixSIMD}, memArg},
		{"v128.const, i8x16.shuffle", 0x0c, 0x0d, []byte{prefixSIMD}, strings.Repeat("\x10", 16)},
		{"swizzle, splat", 0x0e, 0x14, []byte{prefixSIMD}, ""},
		{"lanes", 0x15, 0x22, []byte{prefixSIMD}, "\x01"},
		{"comparisons", 0x23, 0x53, []byte{prefixSIMD}, ""},
		{"loads and stores of lanes", 0x54, 0x5b, []byte{prefixSIMD}, memArg + "\x01"},
		{"loads of one lane and zeros", 0x5c, 0x5d, []byte{prefixSIMD}, memArg},
		{"SIMD numeric", 0x5e, 0x99, []byte{prefixSIMD}, ""},
		{"SIMD numeric, last part", 0xef, 0xff, []byte{prefixSIMD}, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			for number := tc.from; number <= tc.to; number++ {
				op := cat(number)
				if tc.prefix != nil {
					op = appendU32(slices.Clone(tc.prefix), uint32(number))
				}
				in := cat(op, tc.operands, opEnd)
				r := &reader{buf: in}
				n := 0
				r.expression(func(instruction) { n++ })
				if err := r.finish(); err != nil || n != 2 {
					t.Errorf("% x: %d instructions, %v; want 2", in, n, err)
				}
			}
		})
	}
}
