package hostfuncs

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

// FuzzGuest lets a guest do what the input says: any import with any parameters on any memory, and the host begin, end
// and interrupt runs in between. Whatever it is, no import may panic, handlers and waits must end (the bubble fails if a
// goroutine is left), and no result may be outside of what the ABI allows. Time is synctest's, so no wait takes long.
func FuzzGuest(f *testing.F) {
	const (
		stepSubmit = iota
		stepWait
		stepSize
		stepRead
		stepCancel
		stepWrite
		stepYield
		stepPoke
		stepBegin
		stepEnd
		stepInterrupt
		stepFrame
		steps
	)
	ops := []string{"echo", "block", "fail", "panic", "exit", "zeros", "sleep", "?"}
	i32 := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
	i64 := func(n uint64) []byte { return binary.LittleEndian.AppendUint64(nil, n) }
	join := func(p ...[]byte) []byte { return bytes.Join(p, nil) }
	step := func(kind byte, args ...[]byte) []byte { return append([]byte{kind}, join(args...)...) }

	for op := range ops {
		f.Add(join(
			step(stepFrame, []byte{byte(op), 2}), step(stepSubmit, i32(guestOut), i32(40)),
			step(stepWait, i32(0), i64(1<<62)), step(stepSize, i32(1)), step(stepRead, i32(1), i32(guestIn), i32(4096)),
			step(stepWait, i32(0), i64(0)), step(stepEnd), step(stepBegin), step(stepWait, i32(1), i64(5))))
	}
	f.Add(join(step(stepSubmit, i32(0xffffffff), i32(0xffffffff)), step(stepWrite, i32(1), i32(0xffffffff), i32(2)),
		step(stepRead, i32(1), i32(0xffffffff), i32(0xffffffff)), step(stepYield), step(stepInterrupt), step(stepWait, i32(0), i64(1<<63))))
	f.Add(join(step(stepPoke, i32(guestOut), []byte{6}, []byte("\x02\x00\x00\x00[]")), step(stepWrite, i32(2), i32(guestOut), i32(6)),
		step(stepWrite, i32(1), i32(guestOut+4), i32(2)), step(stepCancel, i32(1))))

	e := newEngine(f)
	f.Fuzz(func(t *testing.T, input []byte) {
		synctest.Test(t, func(t *testing.T) {
			g := e.guest(t, Options{
				MaxRequest: 1 << 10, MaxResponse: 2 << 10, MaxInFlight: 8, MaxHeld: 6 << 10,
				Output: func(kind OutputKind, p []byte) error {
					if kind == OutputResult && !json.Valid(p) {
						t.Errorf("output isn't JSON: %q", p)
					}
					if len(p) == 2 {
						return errors.New("refused")
					}
					return nil
				},
				Handler: HandlerFunc(func(ctx context.Context, req Request) (Response, error) {
					if req.Op == "" || len(req.Op) > maxOp || !json.Valid(req.Params) || req.Params[0] != '{' {
						t.Errorf("the handler got %q %q", req.Op, req.Params)
					}
					if req.Op == "zeros" { // with no more than a response may have and a bit
						return Response{Attachments: [][]byte{make([]byte, len(req.Params)*40%(3<<10))}}, nil
					}
					return testHandler(ctx, req)
				}),
			})
			begin := func() (interrupt context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				g.Begin(ctx)
				return cancel
			}
			interrupt := begin()

			next := func(n int) []byte { // the next n bytes of input, zeros at its end
				p := make([]byte, n)
				input = input[copy(p, input):]
				return p
			}
			word := func() uint64 { return uint64(binary.LittleEndian.Uint32(next(4))) }
			lowest := func(what string, result, min int32) {
				if result < min {
					t.Fatalf("%s = %d", what, result)
				}
			}
			for n := 0; len(input) > 0 && n < 100; n++ {
				switch next(1)[0] % steps {
				case stepSubmit:
					lowest("submit", g.call("do_submit", word(), word()), codeInterrupted)
				case stepWait:
					id, timeout := word(), binary.LittleEndian.Uint64(next(8))
					// What blocks for ever ends with the run.
					timer := time.AfterFunc(24*time.Hour, interrupt)
					lowest("wait", g.call("do_wait", id, timeout), codeInterrupted)
					timer.Stop()
				case stepSize:
					if size := g.call("do_size", word()); size > 2<<10 {
						t.Fatalf("size = %d", size)
					}
				case stepRead:
					id, ptr, size := word(), word(), word()
					n := g.call("do_read", id, ptr, size)
					lowest("read", n, codeInterrupted)
					if n >= 0 {
						p, ok := g.mod.Memory().Read(uint32(ptr), uint32(n))
						if _, err := ParseFrame(p); !ok || err != nil {
							t.Fatalf("read(%d) gave %q: %v", id, p, err)
						}
					}
				case stepCancel:
					lowest("cancel", g.call("do_cancel", word()), codeInterrupted)
				case stepWrite:
					lowest("write", g.call("do_write", word(), word(), word()), codeInterrupted)
				case stepYield:
					g.call("do_yield")
				case stepPoke:
					ptr := word()
					g.mod.Memory().Write(uint32(ptr), next(int(next(1)[0])))
				case stepFrame: // a well-formed one, where steps often submit from
					p := next(2)
					g.poke(guestOut, request(ops[int(p[0])%len(ops)], `{"n":7}`, slices.Repeat([][]byte{{1, 2}}, int(p[1]%4))...))
				case stepBegin:
					interrupt()
					interrupt = begin()
				case stepEnd:
					g.End()
				case stepInterrupt:
					interrupt()
				}
			}

			// When the handlers are done and the guest has dropped all calls, nothing is held.
			interrupt()
			synctest.Wait()
			r := g.Instance.run.Load()
			if r.ended {
				return
			}
			for id := range maps.Clone(r.calls) {
				r.drop(id)
			}
			if r.slots != 0 || r.held != 0 || r.pending != 0 || len(r.answered) != 0 || len(r.waiters) != 0 {
				t.Errorf("left behind: %d slots, %d bytes, %d pending, %d answered, %d waiters",
					r.slots, r.held, r.pending, len(r.answered), len(r.waiters))
			}
		})
	})
}

// FuzzRequest compares the header parser with encoding/json.
func FuzzRequest(f *testing.F) {
	for _, header := range []string{
		`{"op":"a","params":{"b":[1,"}"]}}`, `{"op":"\u0061\\"}`, `{ "x" : [ { } , "]" ] , "op" : "é" }`, `{}`, `[]`, `1`, `"op"`, `{"op":null}`,
		`{"params":null,"op":"a"}`, "{\"op\":\"\xff\"}", `{"op":"a","op":"b"}`, `{"a":1e5,"b":-0.1,"c":true,"op":"x"}`, ` {"":"","op":"\""} `,
	} {
		f.Add([]byte(header))
	}
	f.Fuzz(func(t *testing.T, header []byte) {
		req, err := parseRequest(Frame{Header: header}.Append(nil))
		var want map[string]json.RawMessage
		valid := utf8.Valid(header) && json.Unmarshal(header, &want) == nil && want != nil
		if err != nil {
			var op string
			if valid && json.Unmarshal(want["op"], &op) == nil && op != "" && len(op) <= maxOp &&
				(want["params"] == nil || want["params"][0] == '{' || string(want["params"]) == "null") && bytes.Count(header, []byte("op")) == 1 &&
				bytes.Count(header, []byte("params")) <= 1 && !bytes.Contains(header, []byte(`\`)) {
				t.Fatalf("%q was refused: %v", header, err)
			}
			return
		}
		if !valid {
			t.Fatalf("%q was accepted", header)
		}
		if bytes.Contains(header, []byte(`\`)) {
			return // keys spelled with escapes are other keys to us
		}
		var op string
		if err := json.Unmarshal(want["op"], &op); err != nil || op != req.Op {
			t.Fatalf("%q: op is %q, want %q", header, req.Op, op)
		}
		if params := want["params"]; params != nil && string(params) != "null" && !bytes.Equal(params, req.Params) {
			t.Fatalf("%q: params is %q, want %q", header, req.Params, params)
		}
	})
}

// FuzzParseFrame checks that what is taken apart is what was put together.
func FuzzParseFrame(f *testing.F) {
	f.Add([]byte{})
	f.Add(Frame{Header: json.RawMessage(`{}`), Attachments: [][]byte{{}, {1, 2, 3}}}.Append(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		frame, err := ParseFrame(p)
		if err != nil {
			return
		}
		if q := frame.Append(nil); !bytes.Equal(p, q) || frame.Size() != int64(len(p)) {
			t.Fatalf("%q became %q, size %d", p, q, frame.Size())
		}
	})
}
