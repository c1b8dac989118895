package memory

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func FuzzIndentedSize(f *testing.F) {
	for _, text := range []string{`1`, `[]`, `{}`, `[[],{}]`, `{"a":[1,2,{"b":"\"{[,:"}]}`, `"\\"`, strings.Repeat("[", 50) + strings.Repeat("]", 50)} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var compact, indented bytes.Buffer
		if json.Compact(&compact, text) != nil {
			return
		}
		json.Indent(&indented, compact.Bytes(), indentPrefix, indentStep)
		if got := indentedSize(compact.Bytes()); got != indented.Len() {
			t.Errorf("%s: %d bytes, want %d", text, got, indented.Len())
		}
	})
}

func FuzzEpoch(f *testing.F) {
	f.Add(0.0)
	f.Add(1731000000.1234567)
	f.Add(253402300799.99)
	f.Add(math.Nextafter(1, 0))
	f.Fuzz(func(t *testing.T, seconds float64) {
		if !isEpoch(seconds) || seconds < 1<<23 {
			return // smaller ones are finer than nanoseconds
		}
		if got := epoch(fromEpoch(seconds)); got != seconds {
			t.Errorf("%v becomes %v", seconds, got)
		}
	})
}
