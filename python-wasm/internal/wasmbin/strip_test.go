package wasmbin

import (
	"bytes"
	"strings"
	"testing"
)

func TestStripData(t *testing.T) {
	m := mustParse(t, sample().build())
	if err := StripData(m); err != nil {
		t.Fatal(err)
	}
	stripped := sample()
	stripped.data, stripped.dataCount, stripped.custom = nil, false, false
	if want := stripped.build(); !bytes.Equal(m.Encode(), want) {
		t.Errorf("got  %x\nwant %x", m.Encode(), want)
	}

	uses := []struct {
		name string
		code []byte
		want string
	}{
		{"memory.init", cat(i32Const(0), i32Const(0), i32Const(0), prefixMisc, 8, 1, 0), "opcode 0xfc 0x08 uses a data segment"},
		{"data.drop", cat(prefixMisc, 9, 0), "opcode 0xfc 0x09 uses a data segment"},
		{"unknown opcode", cat(0xfe, 0), "unknown opcode 0xfe"},
	}
	for _, tc := range uses {
		t.Run(tc.name, func(t *testing.T) {
			b := sample()
			b.code[3] = body(tc.code)
			m := mustParse(t, b.build())
			err := StripData(m)
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "function 4") {
				t.Errorf("got error %v, want one with function 4 and %q", err, tc.want)
			}
			if !bytes.Equal(m.Encode(), b.build()) {
				t.Error("the module was changed in spite of the error")
			}
		})
	}
}

func TestStripCustom(t *testing.T) {
	m := mustParse(t, sample().build())
	StripCustom(m)
	stripped := sample()
	stripped.custom = false
	if want := stripped.build(); !bytes.Equal(m.Encode(), want) {
		t.Errorf("got  %x\nwant %x", m.Encode(), want)
	}
}
