package hostfuncs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// testHandler answers by operation:
//
//	echo    the parameters and the attachments of the request
//	block   nothing until its context ends
//	fail    an *Error
//	panic   a panic
//	exit    nothing: it ends its goroutine
//	zeros   an attachment of as many zero bytes as the parameter "n" says
//	sleep   null after as many milliseconds as the parameter "n" says, or when its context ends
func testHandler(ctx context.Context, req Request) (Response, error) {
	var params struct{ N int }
	json.Unmarshal(req.Params, &params)
	switch req.Op {
	case "echo":
		return Response{Value: req.Params, Attachments: req.Attachments}, nil
	case "block":
		<-ctx.Done()
		return Response{}, context.Cause(ctx)
	case "fail":
		return Response{}, &Error{Kind: "ToolError", Message: "no such file"}
	case "panic":
		panic("boom")
	case "exit":
		runtime.Goexit()
	case "zeros":
		return Response{Attachments: [][]byte{make([]byte, params.N)}}, nil
	case "sleep":
		select {
		case <-time.After(time.Duration(params.N) * time.Millisecond):
			return Response{}, nil
		case <-ctx.Done():
			return Response{}, ctx.Err()
		}
	}
	return Response{}, fmt.Errorf("no operation %q", req.Op)
}

func checkCode(t *testing.T, what string, got, want int32) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %s, want %s", what, codeName(got), codeName(want))
	}
}

func TestSubmitRefusesWithoutEffect(t *testing.T) {
	header := func(s string) []byte { return Frame{Header: json.RawMessage(s)}.Append(nil) }
	good := request("echo", `{}`)
	tests := []struct {
		name  string
		frame []byte
		ptr   uint32 // default guestOut
		size  uint32 // default len(frame)
		want  int32
	}{
		{name: "length above the limit", size: 64<<10 + 1, want: codeTooBig},
		{name: "negative length", size: math.MaxUint32, want: codeTooBig},
		{name: "pointer at the last address", ptr: math.MaxUint32, size: 1, want: codeFault},
		{name: "pointer plus length overflows", ptr: math.MaxUint32 - 3, size: 16, want: codeFault},
		{name: "last byte outside of memory", ptr: guestMemory - 7, size: 8, want: codeFault},
		{name: "empty at the last address", ptr: math.MaxUint32, want: codeFault},
		{name: "too big goes before fault", ptr: math.MaxUint32, size: math.MaxUint32, want: codeTooBig},
		{name: "empty", want: codeInvalid},
		{name: "no length", frame: []byte{2, 0, 0}, want: codeInvalid},
		{name: "header longer than the frame", frame: []byte{3, 0, 0, 0, '{', '}'}, want: codeInvalid},
		{name: "header length of 4 GiB", frame: []byte{255, 255, 255, 255, '{', '}'}, want: codeInvalid},
		{name: "no header", frame: header(``), want: codeInvalid},
		{name: "header of spaces", frame: header(`  `), want: codeInvalid},
		{name: "header cut short", frame: good[:len(good)-1], want: codeInvalid},
		{name: "header not JSON", frame: header(`{"op":"echo"]`), want: codeInvalid},
		{name: "two JSON texts", frame: header(`{"op":"echo"}{}`), want: codeInvalid},
		{name: "header not UTF-8", frame: header("{\"op\":\"echo\xff\"}"), want: codeInvalid},
		{name: "header null", frame: header(`null`), want: codeInvalid},
		{name: "header an array", frame: header(`["op"]`), want: codeInvalid},
		{name: "header too deep", frame: header(`{"op":"echo","params":{"a":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}}`), want: codeInvalid},
		{name: "no op", frame: header(`{}`), want: codeInvalid},
		{name: "op empty", frame: header(`{"op":""}`), want: codeInvalid},
		{name: "op null", frame: header(`{"op":null}`), want: codeInvalid},
		{name: "op a number", frame: header(`{"op":1}`), want: codeInvalid},
		{name: "op in capitals", frame: header(`{"OP":"echo"}`), want: codeInvalid},
		{name: "op twice", frame: header(`{"op":"echo","op":"echo"}`), want: codeInvalid},
		{name: "op too long", frame: header(`{"op":"` + strings.Repeat("x", 129) + `"}`), want: codeInvalid},
		{name: "params an array", frame: header(`{"op":"echo","params":[]}`), want: codeInvalid},
		{name: "params a string", frame: header(`{"op":"echo","params":"{}"}`), want: codeInvalid},
		{name: "params twice", frame: header(`{"op":"echo","params":{},"params":{}}`), want: codeInvalid},
		{name: "attachment length cut short", frame: append(slices.Clone(good), 0, 0, 0), want: codeInvalid},
		{name: "attachment longer than the frame", frame: append(slices.Clone(good), 2, 0, 0, 0, 'x'), want: codeInvalid},
		{name: "attachment of 4 GiB", frame: append(slices.Clone(good), 255, 255, 255, 255), want: codeInvalid},
		{name: "too many attachments", frame: append(slices.Clone(good), make([]byte, 4*1025)...), want: codeInvalid},
	}
	e := newEngine(t)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := e.running(t, Options{MaxRequest: 64 << 10, Handler: HandlerFunc(func(_ context.Context, req Request) (Response, error) {
				t.Errorf("the handler got %+v", req)
				return Response{}, nil
			})})
			if tc.ptr == 0 {
				tc.ptr = guestOut
				g.poke(guestOut, tc.frame)
			}
			if tc.size == 0 {
				tc.size = uint32(len(tc.frame))
			}
			checkCode(t, "submit", g.call("do_submit", uint64(tc.ptr), uint64(tc.size)), tc.want)
			checkCode(t, "wait for any", g.wait(0, forever), codeIdle)
			if g.Calls() != 0 {
				t.Errorf("%d calls were counted", g.Calls())
			}
		})
	}
}

func TestRequestHeaders(t *testing.T) {
	tests := []struct{ name, header, op, params string }{
		{name: "plain", header: `{"op":"tools.call","params":{"a":[1,"}"]}}`, op: "tools.call", params: `{"a":[1,"}"]}`},
		{name: "no params", header: `{"op":"x"}`, op: "x", params: `{}`},
		{name: "null params", header: `{"op":"x","params":null}`, op: "x", params: `{}`},
		{name: "params first", header: `{"params":{"op":"y"},"op":"x"}`, op: "x", params: `{"op":"y"}`},
		{name: "spaces", header: " {\n\t\"op\" : \"x\" ,\r\n \"params\" : { } } ", op: "x", params: `{ }`},
		{name: "other keys", header: `{"v":1,"w":[{}],"u":"\"","t":true,"op":"x","s":-1.5e3}`, op: "x", params: `{}`},
		{name: "escapes", header: `{"op":"\u0078\"\\","params":{"\"":"\\"}}`, op: `x"\`, params: `{"\"":"\\"}`},
		{name: "lone surrogate", header: `{"op":"\ud800"}`, op: "\uFFFD", params: `{}`},
		{name: "not ASCII", header: `{"op":"größe"}`, op: "größe", params: `{}`},
		{name: "longest op", header: `{"op":"` + strings.Repeat("x", 128) + `"}`, op: strings.Repeat("x", 128), params: `{}`},
	}
	e := newEngine(t)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got Request
			g := e.running(t, Options{Handler: HandlerFunc(func(_ context.Context, req Request) (Response, error) {
				got = req
				return Response{}, nil
			})})
			id := g.submitFrame(Frame{Header: json.RawMessage(tc.header)}.Append(nil))
			checkCode(t, "wait", g.wait(id, forever), id)
			if got.Op != tc.op || string(got.Params) != tc.params || got.Attachments != nil {
				t.Errorf("the handler got %q %s %q, want %q %s", got.Op, got.Params, got.Attachments, tc.op, tc.params)
			}
			if resp := g.read(id); string(resp.Value) != "null" || resp.Error != nil {
				t.Errorf("response is %+v, want the value null", resp)
			}
		})
	}
}

func TestAttachmentsRoundTrip(t *testing.T) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	many := slices.Repeat([][]byte{{1}}, 1024)
	tests := []struct {
		name        string
		attachments [][]byte
	}{
		{"none", nil},
		{"empty", [][]byte{{}}},
		{"all bytes", [][]byte{all}},
		{"several", [][]byte{all, {}, []byte("x"), bytes.Repeat(all, 200)}},
		{"as many as may be", many},
	}
	e := newEngine(t)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := e.running(t, Options{Handler: HandlerFunc(testHandler)})
			resp := g.ask("echo", tc.attachments...)
			if !slices.EqualFunc(resp.attachments, tc.attachments, bytes.Equal) {
				t.Errorf("%d attachments came back, not the %d that were sent, or not the same", len(resp.attachments), len(tc.attachments))
			}
		})
	}
}

func TestRequestsAreCopiedBeforeSubmitReturns(t *testing.T) {
	overwritten := make(chan struct{})
	g := running(t, Options{Handler: HandlerFunc(func(ctx context.Context, req Request) (Response, error) {
		<-overwritten
		// Neither part may run into the next when the handler appends to it.
		_ = append(req.Params, "x"...)
		_ = append(req.Attachments[0], "x"...)
		return testHandler(ctx, req)
	})})
	frame := request("echo", `{"a":1}`, []byte("one"), []byte("two"))
	id := g.submitFrame(frame)
	g.poke(guestOut, bytes.Repeat([]byte("x"), len(frame)))
	close(overwritten)
	g.wait(id, forever)
	resp := g.read(id)
	if string(resp.Value) != `{"a":1}` || string(bytes.Join(resp.attachments, []byte("|"))) != "one|two" {
		t.Errorf("the handler saw %s %q", resp.Value, resp.attachments)
	}
}

func TestCallsRunConcurrently(t *testing.T) {
	const n = 50
	var started sync.WaitGroup
	started.Add(n)
	g := running(t, Options{Handler: HandlerFunc(func(ctx context.Context, req Request) (Response, error) {
		started.Done()
		started.Wait() // which only ends when all are running
		return testHandler(ctx, req)
	})})
	waiting := map[int32]string{}
	for i := range n {
		params := fmt.Sprintf(`{"i":%d}`, i)
		waiting[g.submitFrame(request("echo", params))] = params
	}
	for len(waiting) > 0 {
		id := g.wait(0, forever)
		want, ok := waiting[id]
		if !ok {
			t.Fatalf("wait for any = %s", codeName(id))
		}
		delete(waiting, id)
		if got := g.read(id); string(got.Value) != want {
			t.Errorf("call %d got the answer %s, want %s", id, got.Value, want)
		}
	}
	checkCode(t, "wait for any at the end", g.wait(0, forever), codeIdle)
	if g.Calls() != n {
		t.Errorf("Calls() = %d, want %d", g.Calls(), n)
	}
}

func TestWaitReportsInOrderOfCompletion(t *testing.T) {
	e := newEngine(t)
	synctest.Test(t, func(t *testing.T) {
		g := e.running(t, Options{Handler: HandlerFunc(testHandler)})
		var ids []int32
		for _, ms := range []int{30, 10, 50, 20, 40} {
			ids = append(ids, g.submitFrame(request("sleep", fmt.Sprintf(`{"n":%d}`, ms))))
		}
		time.Sleep(time.Second)
		checkCode(t, "cancel", g.call("do_cancel", uint64(ids[0])), 0)             // no longer reported
		checkCode(t, "wait for one", g.wait(ids[4], forever), ids[4])              // is its report
		checkCode(t, "wait for one again", g.wait(ids[4], forever), ids[4])        // may be repeated
		for i, want := range []int32{ids[1], ids[3], ids[2], codeIdle, codeIdle} { // each once
			checkCode(t, fmt.Sprintf("wait for any %d", i), g.wait(0, forever), want)
		}
		for _, id := range ids[1:] {
			g.read(id)
			checkCode(t, "wait for a call that was read", g.wait(id, forever), codeInvalid)
		}
	})
}

func TestWaitTimeouts(t *testing.T) {
	const hour = int64(time.Hour)
	tests := []struct {
		name    string
		calls   []int // how many milliseconds each takes
		one     bool  // wait for the first, not for any
		timeout int64
		want    int32 // 1 is the first call
		after   time.Duration
	}{
		{name: "nothing in flight, poll", timeout: 0, want: 0},
		{name: "nothing in flight, sleep", timeout: hour, want: 0, after: time.Hour},
		{name: "nothing in flight, one nanosecond", timeout: 1, want: 0, after: 1},
		{name: "nothing in flight, for ever", timeout: forever, want: codeIdle},
		{name: "nothing in flight, the most negative timeout", timeout: math.MinInt64, want: codeIdle},
		{name: "poll", calls: []int{5}, timeout: 0, want: 0},
		{name: "poll for one", calls: []int{5}, one: true, timeout: 0, want: 0},
		{name: "too short", calls: []int{5000, 6000}, timeout: int64(time.Second), want: 0, after: time.Second},
		{name: "too short for one", calls: []int{5000, 10}, one: true, timeout: int64(time.Second), want: 0, after: time.Second},
		{name: "long enough", calls: []int{6000, 5000}, timeout: hour, want: 2, after: 5 * time.Second},
		{name: "long enough for one", calls: []int{6000, 5000}, one: true, timeout: hour, want: 1, after: 6 * time.Second},
		{name: "the longest timeout", calls: []int{7000}, timeout: math.MaxInt64, want: 1, after: 7 * time.Second},
		{name: "for ever", calls: []int{7000}, timeout: forever, want: 1, after: 7 * time.Second},
		{name: "for ever, the most negative timeout", calls: []int{7000}, one: true, timeout: math.MinInt64, want: 1, after: 7 * time.Second},
	}
	e := newEngine(t)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := e.running(t, Options{Handler: HandlerFunc(testHandler)})
				for _, ms := range tc.calls {
					g.submitFrame(request("sleep", fmt.Sprintf(`{"n":%d}`, ms)))
				}
				start := time.Now()
				id := int32(0)
				if tc.one {
					id = 1
				}
				checkCode(t, "wait", g.wait(id, tc.timeout), tc.want)
				if got := time.Since(start); got != tc.after {
					t.Errorf("it took %v, want %v", got, tc.after)
				}
			})
		})
	}
}

func TestUnknownIDs(t *testing.T) {
	g := running(t, Options{Handler: HandlerFunc(testHandler)})
	read := g.mustSubmit("echo")
	g.wait(read, forever)
	g.read(read)
	cancelled := g.mustSubmit("block")
	g.call("do_cancel", uint64(cancelled))
	for _, id := range []int32{read, cancelled, 1000, -1, math.MinInt32, math.MaxInt32} {
		checkCode(t, fmt.Sprintf("wait(%d)", id), g.wait(id, forever), codeInvalid)
	}
	for _, id := range []int32{read, cancelled, 1000, 0, -1, math.MinInt32, math.MaxInt32} {
		checkCode(t, fmt.Sprintf("size(%d)", id), g.call("do_size", api.EncodeI32(id)), codeInvalid)
		checkCode(t, fmt.Sprintf("read(%d)", id), g.call("do_read", api.EncodeI32(id), guestIn, 1000), codeInvalid)
		checkCode(t, fmt.Sprintf("cancel(%d)", id), g.call("do_cancel", api.EncodeI32(id)), codeInvalid)
	}
}

func TestReadRefusesAndKeepsTheCall(t *testing.T) {
	g := running(t, Options{Handler: HandlerFunc(testHandler)})
	blocked := g.mustSubmit("block")
	checkCode(t, "size before the answer", g.call("do_size", uint64(blocked)), codeInvalid)
	checkCode(t, "read before the answer", g.call("do_read", uint64(blocked), guestIn, 1000), codeInvalid)

	id := g.mustSubmit("echo", []byte("attachment"))
	g.wait(id, forever)
	size := uint64(g.call("do_size", uint64(id)))
	g.poke(guestMemory-uint32(size), bytes.Repeat([]byte("~"), int(size)))
	tests := []struct {
		name      string
		ptr, size uint64
		want      int32
	}{
		{"no buffer", guestIn, 0, codeTooBig},
		{"buffer one byte short", guestIn, size - 1, codeTooBig},
		{"too big goes before fault", math.MaxUint32, size - 1, codeTooBig},
		{"last byte outside of memory", guestMemory - size + 1, size, codeFault},
		{"pointer at the last address", math.MaxUint32, size, codeFault},
		{"buffer larger than memory", guestIn, math.MaxUint32, codeFault},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			checkCode(t, "read", g.call("do_read", uint64(id), tc.ptr, tc.size), tc.want)
		})
	}
	tail, _ := g.mod.Memory().Read(guestMemory-uint32(size), uint32(size))
	if string(tail) != strings.Repeat("~", int(size)) {
		t.Errorf("memory was written to: %q", tail)
	}
	checkCode(t, "read to the end of memory", g.call("do_read", uint64(id), guestMemory-size, size), int32(size))
	if f, err := ParseFrame(tail); err != nil || string(f.Attachments[0]) != "attachment" {
		t.Errorf("read wrote %q, %v", tail, err)
	}
	checkCode(t, "read again", g.call("do_read", uint64(id), guestIn, size), codeInvalid)

	id = g.mustSubmit("echo")
	g.wait(id, forever)
	g.poke(guestIn, bytes.Repeat([]byte("~"), 1000))
	size = uint64(g.call("do_size", uint64(id)))
	checkCode(t, "read into a larger buffer", g.call("do_read", uint64(id), guestIn, 1000), int32(size))
	if b, _ := g.mod.Memory().ReadByte(guestIn + uint32(size)); b != '~' {
		t.Errorf("read wrote beyond the frame")
	}
}

func TestCancel(t *testing.T) {
	e := newEngine(t)
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		g := e.running(t, Options{MaxInFlight: 2, Handler: HandlerFunc(func(ctx context.Context, req Request) (Response, error) {
			if req.Op == "slow" { // to notice that it is cancelled
				<-ctx.Done()
				ended <- ctx.Err()
				time.Sleep(time.Second)
				return Response{}, nil
			}
			return testHandler(ctx, req)
		})})
		other := g.mustSubmit("block")
		id := g.mustSubmit("slow")
		checkCode(t, "submit above the cap", g.submit("echo"), codeLimit)
		checkCode(t, "cancel", g.call("do_cancel", uint64(id)), 0)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the handler's context ended with %v", err)
		}
		checkCode(t, "submit while the cancelled handler runs", g.submit("echo"), codeLimit)
		time.Sleep(2 * time.Second)
		checkCode(t, "poll", g.wait(0, 0), 0) // neither the cancelled one nor the other
		if got := g.ask("echo"); got.Error != nil {
			t.Errorf("a call after that fails: %+v", got.Error)
		}

		woken := make(chan int32)
		go func() { woken <- g.wait(other, forever) }()
		synctest.Wait()
		checkCode(t, "cancel of a call that is waited for", g.call("do_cancel", uint64(other)), 0)
		checkCode(t, "the wait", <-woken, codeInvalid)
	})
}

func TestContextEnds(t *testing.T) {
	e := newEngine(t)
	tests := []struct {
		name string
		id   int32 // to wait for
		ops  []string
	}{
		{name: "while it sleeps"},
		{name: "while it waits for any", ops: []string{"block"}},
		{name: "while it waits for one", ops: []string{"block", "echo"}, id: 1},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var output []string
				g := e.guest(t, Options{
					Handler: HandlerFunc(testHandler),
					Output:  func(_ OutputKind, p []byte) error { output = append(output, string(p)); return nil },
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				g.Begin(ctx)
				for _, op := range tc.ops {
					g.submit(op)
				}
				start := time.Now()
				checkCode(t, "wait", g.wait(tc.id, int64(time.Hour)), codeInterrupted)
				if got := time.Since(start); got != time.Minute {
					t.Errorf("wait took %v, want %v", got, time.Minute)
				}
				synctest.Wait()
				// Even what is answered isn't reported any more, but it can be read.
				checkCode(t, "wait for any", g.wait(0, forever), codeInterrupted)
				checkCode(t, "poll", g.wait(0, 0), codeInterrupted)
				checkCode(t, "wait for an unknown call", g.wait(99, 0), codeInterrupted)
				checkCode(t, "submit", g.submit("echo"), codeInterrupted)
				checkCode(t, "submit from nowhere", g.call("do_submit", math.MaxUint32, 1), codeInterrupted)
				if len(tc.ops) > 1 {
					checkCode(t, "cancel", g.call("do_cancel", 1), 0)
					g.read(2)
				}
				g.poke(guestOut, []byte(`"over"`))
				checkCode(t, "write", g.call("do_write", 1, guestOut, 6), 0)
				if !slices.Equal(output, []string{`"over"`}) {
					t.Errorf("output is %q", output)
				}
			})
		})
	}
}

func TestEnd(t *testing.T) {
	e := newEngine(t)
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		g := e.running(t, Options{Handler: HandlerFunc(func(ctx context.Context, req Request) (Response, error) {
			running.Add(1)
			defer running.Add(-1)
			resp, err := testHandler(ctx, req)
			if req.Op == "block" {
				time.Sleep(time.Second) // to clean up
			}
			return resp, err
		})})
		answered := g.mustSubmit("echo")
		synctest.Wait()
		var last int32
		for range 10 {
			last = g.mustSubmit("block")
		}
		woken := make(chan int32)
		go func() { woken <- g.wait(last, forever) }()
		synctest.Wait()

		start := time.Now()
		ended := make(chan struct{})
		go func() { g.End(); close(ended) }()
		checkCode(t, "the wait", <-woken, codeInterrupted)
		if got := time.Since(start); got != 0 {
			t.Errorf("the waiting guest was woken after %v, not at once", got)
		}
		<-ended
		if n := running.Load(); n != 0 || time.Since(start) != time.Second {
			t.Errorf("End returned after %v with %d handlers running, want 1s and none", time.Since(start), n)
		}
		g.End() // may be repeated

		between := func(when string) {
			checkCode(t, "submit "+when, g.submit("echo"), codeNoRun)
			checkCode(t, "submit from nowhere "+when, g.call("do_submit", math.MaxUint32, 1), codeNoRun)
			checkCode(t, "wait "+when, g.wait(0, forever), codeNoRun)
			checkCode(t, "wait for one "+when, g.wait(answered, 0), codeNoRun)
			checkCode(t, "size "+when, g.call("do_size", uint64(answered)), codeNoRun)
			checkCode(t, "read "+when, g.call("do_read", uint64(answered), guestIn, 1000), codeNoRun)
			checkCode(t, "cancel "+when, g.call("do_cancel", uint64(last)), codeNoRun)
			checkCode(t, "write "+when, g.call("do_write", 1, guestOut, 0), codeNoRun)
		}
		between("after End")
		if g.Calls() != 11 {
			t.Errorf("Calls() = %d after End, want 11", g.Calls())
		}

		g.Begin(t.Context())
		if g.Calls() != 0 {
			t.Errorf("Calls() = %d after Begin, want 0", g.Calls())
		}
		checkCode(t, "wait for any in the new run", g.wait(0, forever), codeIdle)
		checkCode(t, "wait for an old call", g.wait(answered, 0), codeInvalid)
		checkCode(t, "read of an old call", g.call("do_read", uint64(answered), guestIn, 1000), codeInvalid)
		id := g.mustSubmit("echo")
		if id <= last {
			t.Errorf("id %d was used again: the last run went to %d", id, last)
		}
		checkCode(t, "wait for any for a new call", g.wait(0, forever), id)
		g.read(id)

		blocked := g.mustSubmit("block")
		g.Begin(t.Context()) // ends the run that hadn't been ended
		if n := running.Load(); n != 0 {
			t.Errorf("%d handlers run after Begin", n)
		}
		checkCode(t, "wait for a call of a run that another replaced", g.wait(blocked, 0), codeInvalid)

		fresh := e.guest(t, Options{})
		fresh.End()
		checkCode(t, "submit before the first run", fresh.submit("echo"), codeNoRun)
		checkCode(t, "wait before the first run", fresh.wait(0, forever), codeNoRun)
		if fresh.Calls() != 0 {
			t.Errorf("Calls() = %d before the first run", fresh.Calls())
		}
	})
}

func TestErrors(t *testing.T) {
	tests := []struct {
		name                string
		handle              func() (Response, error)
		kind, message, data string
	}{
		{"an Error", func() (Response, error) {
			return Response{Value: []byte("1")}, &Error{Kind: "ToolError", Message: "bad <tag> \"x\"", Data: map[string]int{"n": 1}}
		}, "ToolError", `bad <tag> "x"`, `{"n":1}`},
		{"a wrapped Error", func() (Response, error) {
			return Response{}, fmt.Errorf("calling: %w", &Error{Kind: "ToolError", Message: "m"})
		}, "ToolError", "m", "null"},
		{"an Error without a kind", func() (Response, error) { return Response{}, &Error{Message: "m"} }, "HostError", "m", "null"},
		{"an Error with raw data", func() (Response, error) {
			return Response{}, &Error{Kind: "K", Data: json.RawMessage(`[1, 2]`)}
		}, "K", "", "[1,2]"},
		{"an Error whose data is no JSON", func() (Response, error) {
			return Response{}, &Error{Kind: "K", Message: "m", Data: math.NaN()}
		}, "K", "m (its data can't be encoded: json: unsupported value: NaN)", "null"},
		{"a text that isn't UTF-8", func() (Response, error) { return Response{}, errors.New("a\xffb") }, "HostError", "a\uFFFDb", "null"},
		{"another error", func() (Response, error) { return Response{}, errors.New("disk full") }, "HostError", "disk full", "null"},
		{"a nil *Error", func() (Response, error) { return Response{}, (*Error)(nil) }, "HostError",
			`the host failed at "op": runtime error: invalid memory address or nil pointer dereference`, "null"},
		{"a panic", func() (Response, error) { panic("boom") }, "HostError", `the host failed at "op": boom`, "null"},
		{"a panic with nil", func() (Response, error) { panic(nil) }, "HostError",
			`the host failed at "op": ` + new(runtime.PanicNilError).Error(), "null"},
		{"an end of the goroutine", func() (Response, error) { runtime.Goexit(); return Response{}, nil }, "HostError",
			`the host gave no answer to "op"`, "null"},
		{"a value that can't be encoded", func() (Response, error) {
			return Response{}, &Error{Data: panicker{}}
		}, "HostError", `the host failed at "op": encoding`, "null"},
	}
	e := newEngine(t)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			g := e.running(t, Options{Handler: HandlerFunc(func(_ context.Context, req Request) (Response, error) { return tc.handle() })})
			got := g.ask("op").Error
			if got == nil || got.Kind != tc.kind || got.Message != tc.message || string(got.Data) != tc.data {
				t.Errorf("the guest got %+v, want %s, %s, %s", got, tc.kind, tc.message, tc.data)
			}
		})
	}
	t.Run("no handler", func(t *testing.T) {
		got := e.running(t, Options{}).ask("op").Error
		if got == nil || got.Kind != KindUnsupported {
			t.Errorf("the guest got %+v, want %s", got, KindUnsupported)
		}
	})
}

func TestErrorText(t *testing.T) {
	for want, err := range map[string]error{"K: m": &Error{Kind: "K", Message: "m"}, "m": &Error{Message: "m"}} {
		if got := err.Error(); got != want {
			t.Errorf("text is %q, want %q", got, want)
		}
	}
}

// A panicker panics when it is encoded.
type panicker struct{}

func (panicker) MarshalJSON() ([]byte, error) { panic("encoding") }

func TestPanicsAreReportedWithTheirStack(t *testing.T) {
	type report struct {
		op    string
		value any
		stack string
	}
	reports := make(chan report, 1)
	g := running(t, Options{
		Handler:  HandlerFunc(testHandler),
		Panicked: func(op string, value any, stack []byte) { reports <- report{op, value, string(stack)} },
	})
	g.ask("panic")
	got := <-reports
	if got.op != "panic" || got.value != "boom" || !strings.Contains(got.stack, "testHandler") {
		t.Errorf("reported was %+v", got)
	}
	g.ask("exit")
	select {
	case got := <-reports:
		t.Errorf("an end of the goroutine was reported as a panic: %+v", got)
	default:
	}
}

func TestLimits(t *testing.T) {
	zeros := func(n int) []byte { return request("zeros", fmt.Sprintf(`{"n":%d}`, n)) }
	e := newEngine(t)
	ask := func(g *guest, frame []byte) response {
		id := g.submitFrame(frame)
		g.wait(id, forever)
		return g.read(id)
	}
	wantExceeded := func(t *testing.T, resp response, size, limit int64) {
		t.Helper()
		if resp.Error == nil || resp.Error.Kind != KindLimitExceeded {
			t.Fatalf("the guest got %+v, want %s", resp, KindLimitExceeded)
		}
		want := fmt.Sprintf(`{"limit":%d,"size":%d}`, limit, size)
		if string(resp.Error.Data) != want {
			t.Errorf("data is %s, want %s", resp.Error.Data, want)
		}
		for _, n := range []int64{size, limit} {
			if !strings.Contains(resp.Error.Message, fmt.Sprint(n)) {
				t.Errorf("the message %q doesn't say %d", resp.Error.Message, n)
			}
		}
	}
	const overhead = int64(len(`{"value":null}`) + 4 + 4)

	t.Run("response", func(t *testing.T) {
		g := e.running(t, Options{Handler: HandlerFunc(testHandler), MaxResponse: 1000})
		if resp := ask(g, zeros(1000-int(overhead))); resp.Error != nil {
			t.Errorf("a response at the limit gave %+v", resp.Error)
		}
		wantExceeded(t, ask(g, zeros(1000-int(overhead)+1)), 1001, 1000)
	})
	t.Run("long error", func(t *testing.T) {
		g := e.running(t, Options{MaxResponse: 1000, Handler: HandlerFunc(func(context.Context, Request) (Response, error) {
			return Response{}, errors.New(strings.Repeat("x", 2000))
		})})
		if resp := g.ask("op"); resp.Error.Kind != KindLimitExceeded {
			t.Errorf("the guest got %s", resp.Error.Kind)
		}
	})
	t.Run("responses not read", func(t *testing.T) {
		g := e.running(t, Options{Handler: HandlerFunc(testHandler), MaxHeld: 10000})
		first, second := g.submitFrame(zeros(6000)), int32(0)
		g.wait(first, forever)
		second = g.submitFrame(zeros(6000))
		g.wait(second, forever)
		wantExceeded(t, g.read(second), 6000+overhead, 10000)
		g.read(first)
		if resp := ask(g, zeros(6000)); resp.Error != nil {
			t.Errorf("after reading there is still no room: %+v", resp.Error)
		}
	})
	t.Run("requests in flight", func(t *testing.T) {
		g := e.running(t, Options{Handler: HandlerFunc(testHandler), MaxHeld: 10000})
		blocked := g.mustSubmit("block", make([]byte, 6000))
		checkCode(t, "submit", g.submit("echo", make([]byte, 6000)), codeLimit)
		small := g.mustSubmit("echo")
		g.wait(small, forever)
		g.read(small)
		g.call("do_cancel", uint64(blocked))
		for g.submit("block", make([]byte, 6000)) == codeLimit {
			runtime.Gosched() // until the cancelled handler has returned
		}
	})
	t.Run("calls", func(t *testing.T) {
		g := e.running(t, Options{Handler: HandlerFunc(testHandler), MaxInFlight: 3})
		ids := []int32{g.mustSubmit("block"), g.mustSubmit("echo"), g.mustSubmit("fail")}
		g.wait(ids[1], forever)
		checkCode(t, "submit with one blocked and two unread", g.submit("echo"), codeLimit)
		checkCode(t, "a malformed one goes as far", g.submitFrame([]byte("x")), codeLimit)
		g.read(ids[1])
		checkCode(t, "a malformed one takes no place", g.submitFrame([]byte("x")), codeInvalid)
		id := g.mustSubmit("echo")
		g.wait(id, forever)
		g.call("do_cancel", uint64(id)) // what is answered
		g.wait(ids[2], forever)
		g.read(ids[2])
		g.mustSubmit("block")
		g.mustSubmit("block")
		checkCode(t, "submit with three blocked", g.submit("echo"), codeLimit)
		if g.Calls() != 6 {
			t.Errorf("Calls() = %d, want 6: those refused don't count", g.Calls())
		}
	})
	t.Run("defaults", func(t *testing.T) {
		got := Options{MaxResponse: math.MaxInt64}.withDefaults()
		if got.MaxRequest != 16<<20 || got.MaxResponse != math.MaxInt32 || got.MaxInFlight != 1024 || got.MaxHeld != 4*math.MaxInt32 {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWrite(t *testing.T) {
	display := Frame{Header: json.RawMessage(`{"type":"image"}`), Attachments: [][]byte{{1, 2}}}.Append(nil)
	tests := []struct {
		name   string
		kind   int32
		chunk  []byte
		ptr    uint64 // default guestOut
		size   uint64 // default len(chunk)
		refuse bool
		want   int32
	}{
		{name: "result", kind: 1, chunk: []byte(`{"outcome":"ok"}`)},
		{name: "display", kind: 2, chunk: display},
		{name: "refused", kind: 1, chunk: []byte(`1`), refuse: true, want: codeLimit},
		{name: "malformed goes before refused", kind: 1, chunk: []byte(`{`), refuse: true, want: codeInvalid},
		{name: "result not JSON", kind: 1, chunk: []byte(`{"outcome":"ok"`), want: codeInvalid},
		{name: "result empty", kind: 1, want: codeInvalid},
		{name: "result not UTF-8", kind: 1, chunk: []byte("\"\xff\""), want: codeInvalid},
		{name: "display not a frame", kind: 2, chunk: []byte(`{"type":"image"}`), want: codeInvalid},
		{name: "display cut short", kind: 2, chunk: display[:len(display)-1], want: codeInvalid},
		{name: "kind 0", kind: 0, chunk: []byte(`1`), want: codeInvalid},
		{name: "kind 3", kind: 3, chunk: []byte(`1`), want: codeInvalid},
		{name: "kind negative", kind: -1, chunk: []byte(`1`), want: codeInvalid},
		{name: "too long", kind: 1, size: 1001, want: codeTooBig},
		{name: "negative length", kind: 1, size: math.MaxUint32, want: codeTooBig},
		{name: "outside of memory", kind: 1, ptr: math.MaxUint32, size: 1, want: codeFault},
		{name: "last byte outside of memory", kind: 9, ptr: guestMemory - 1, size: 2, want: codeFault},
	}
	e := newEngine(t)
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var got []byte
			var kind OutputKind
			opts := Options{MaxRequest: 1000, Output: func(k OutputKind, p []byte) error {
				if tc.refuse {
					return errors.New("enough")
				}
				kind, got = k, p
				return nil
			}}
			if tc.ptr == 0 {
				tc.ptr = guestOut
			}
			if tc.size == 0 {
				tc.size = uint64(len(tc.chunk))
			}
			for _, output := range []func(OutputKind, []byte) error{opts.Output, nil} {
				opts.Output = output
				g := e.running(t, opts)
				g.poke(guestOut, tc.chunk)
				result := g.call("do_write", api.EncodeI32(tc.kind), tc.ptr, tc.size)
				if want := tc.want; output != nil {
					checkCode(t, "write", result, want)
				} else if want != codeLimit {
					checkCode(t, "write without a taker", result, want)
				}
				g.poke(guestOut, make([]byte, len(tc.chunk))) // what was handed out is a copy
			}
			if tc.want == 0 && (kind != OutputKind(tc.kind) || !bytes.Equal(got, tc.chunk)) {
				t.Errorf("handed out was %d %q, want %d %q", kind, got, tc.kind, tc.chunk)
			}
			if tc.want != 0 && got != nil {
				t.Errorf("handed out was %d %q, want nothing", kind, got)
			}
		})
	}
}

func TestYield(t *testing.T) {
	enough := errors.New("enough")
	yields := 0
	g := newEngine(t).guest(t, Options{Yield: func() error {
		if yields++; yields == 1000 {
			return enough
		}
		return nil
	}})
	if _, err := g.try("spin"); !errors.Is(err, enough) {
		t.Errorf("the guest ended with %v, want %v", err, enough)
	}
	if yields != 1000 {
		t.Errorf("it yielded %d times, want 1000", yields)
	}
	// A yield that nobody asked to know of just returns.
	newEngine(t).guest(t, Options{}).call("do_yield")
}

func TestCallsWithoutAnInstance(t *testing.T) {
	g := newEngine(t).guest(t, Options{})
	tests := []struct {
		name string
		args []uint64
	}{
		{"submit", []uint64{0, 0}}, {"wait", []uint64{0, 0}}, {"size", []uint64{0}}, {"read", []uint64{0, 0, 0}},
		{"cancel", []uint64{0}}, {"write", []uint64{0, 0, 0}}, {"yield", nil},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			_, err := g.mod.ExportedFunction("do_"+tc.name).Call(context.Background(), tc.args...)
			if err == nil || !strings.Contains(err.Error(), "codeexec."+tc.name) || !strings.Contains(err.Error(), "Instance.Context") {
				t.Errorf("error is %v", err)
			}
		})
	}
}

func TestGuestWithoutMemoryFails(t *testing.T) {
	e := newEngine(t)
	mod, err := e.rt.Instantiate(t.Context(), wasmModule(0, []wasmFunc{
		{name: "submit", params: []api.ValueType{i32, i32}, results: []api.ValueType{i32}},
		{name: "go", results: []api.ValueType{i32}, body: []byte{opI32Const, 0, opI32Const, 0, opCall, 0}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	i := NewInstance(Options{})
	i.Begin(t.Context())
	if _, err := mod.ExportedFunction("go").Call(i.Context(t.Context())); err == nil {
		t.Error("submit without a memory succeeded")
	}
	i.End() // which no lock that was left behind hinders
}

func TestIDsWrapAround(t *testing.T) {
	g := running(t, Options{Handler: HandlerFunc(testHandler)})
	if id := g.mustSubmit("block"); id != 1 {
		t.Fatalf("the first id is %d", id)
	}
	r := g.Instance.run.Load()
	r.mu.Lock()
	r.lastID = math.MaxInt32 - 1
	r.mu.Unlock()
	for _, want := range []int32{math.MaxInt32, 2, 3} { // 1 is taken
		if id := g.mustSubmit("block"); id != want {
			t.Errorf("id is %d, want %d", id, want)
		}
	}
}

func TestInstancesAreSeparate(t *testing.T) {
	e := newEngine(t)
	a, b := e.running(t, Options{Handler: HandlerFunc(testHandler)}), e.running(t, Options{})
	id := a.mustSubmit("echo")
	a.wait(id, forever)
	checkCode(t, "wait for another's call", b.wait(id, 0), codeInvalid)
	checkCode(t, "read of another's call", b.call("do_read", uint64(id), guestIn, 1000), codeInvalid)
	if resp := b.ask("echo"); resp.Error == nil || resp.Error.Kind != KindUnsupported {
		t.Errorf("the answer came from another's handler: %+v", resp)
	}
	a.read(id)
}

func TestInstantiateTwice(t *testing.T) {
	ctx := t.Context()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	if err := Instantiate(ctx, rt); err != nil {
		t.Fatal(err)
	}
	if err := Instantiate(ctx, rt); err == nil || !strings.Contains(err.Error(), `"codeexec"`) {
		t.Errorf("error is %v", err)
	}
}

// A run that ends while guests submit from several threads of control must neither hang nor leave a call behind.
func TestEndRacesWithSubmit(t *testing.T) {
	g := newEngine(t).guest(t, Options{Handler: HandlerFunc(testHandler)})
	frame := request("block", "{}")
	g.poke(guestOut, frame)
	for range 50 {
		g.Begin(t.Context())
		var guests sync.WaitGroup
		for range 4 {
			guests.Go(func() {
				for {
					switch result := g.call("do_submit", guestOut, uint64(len(frame))); result {
					case codeNoRun, codeInterrupted:
						return
					case codeLimit:
						g.wait(0, forever)
					}
				}
			})
		}
		for g.Calls() < 20 {
			runtime.Gosched()
		}
		g.End()
		guests.Wait()
	}
}

func TestNothingIsLeftRunning(t *testing.T) {
	e := newEngine(t)
	before := runtime.NumGoroutine()
	g := e.guest(t, Options{Handler: HandlerFunc(testHandler)})
	for range 100 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		g.Begin(ctx)
		for _, op := range []string{"echo", "block", "fail", "panic", "exit", "block"} {
			g.submit(op)
		}
		g.wait(0, int64(time.Hour))
		g.End()
		cancel()
	}
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(time.Millisecond) // a goroutine that has told End that it is done still has to exit
	}
}
