package bridge

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

// heard runs code with a progress token and returns the notifications.
func heard(t *testing.T, code string, run script) (notes []*mcp.ProgressNotificationParams) {
	b, _ := newFakeBridge(t, Options{}, map[string]script{code: run}, nil)
	theirs, ours := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- NewServer(b, ServerOptions{}).Serve(ctx, ours) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) {
			notes = append(notes, req.Params)
		},
	})
	session, err := client.Connect(ctx, theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	params := &mcp.CallToolParams{Name: "run_python", Arguments: map[string]any{"code": code}}
	params.SetProgressToken("p")
	if _, err := session.CallTool(ctx, params); err != nil {
		t.Fatal(err)
	}
	session.Close()
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	synctest.Wait()
	last := -1.0
	for _, n := range notes {
		if n.Progress <= last || n.ProgressToken != "p" {
			t.Errorf("progress %v of %v after %v", n.Progress, n.ProgressToken, last)
		}
		last = n.Progress
	}
	return notes
}

func TestOutputIsStreamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := heard(t, "print", func(_ context.Context, _ *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
			fmt.Fprint(req.Stdout, "one\n")
			time.Sleep(time.Second)
			fmt.Fprint(req.Stdout, "two\nthr")
			time.Sleep(time.Second)
			fmt.Fprint(req.Stdout, "ee\x00\nfo")
			fmt.Fprint(req.Stdout, "ur")
			return succeed(""), nil
		})
		var got []string
		for _, n := range notes {
			got = append(got, n.Message)
		}
		if text := strings.Join(got, "\n"); text != "one\ntwo\nthree\\x00\nfour" {
			t.Errorf("heard %q", got)
		}
	})
}

// A script that prints fast doesn't flood the client, and the newest lines get there.
func TestStreamingIsThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		notes := heard(t, "flood", func(_ context.Context, _ *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
			for i := range 10_000 {
				fmt.Fprintf(req.Stdout, "line %d\n", i)
				time.Sleep(100 * time.Microsecond)
			}
			return succeed(""), nil
		})
		if len(notes) > 12 {
			t.Errorf("%d notifications in a second", len(notes))
		}
		for _, n := range notes {
			if len(n.Message) > maxProgressText+10 {
				t.Errorf("%d bytes at once", len(n.Message))
			}
			if rest, cut := strings.CutPrefix(n.Message, "…\n"); cut && !strings.HasPrefix(rest, "line ") {
				t.Errorf("half a line: %.20q", rest)
			}
		}
		if last := notes[len(notes)-1].Message; !strings.HasSuffix(last, "line 9999") {
			t.Errorf("the last one ends with %q", last[max(len(last)-20, 0):])
		}
	})
}

// The calls of a run have progress of their own, which may begin anew with each; that of the run only grows.
func TestProgressOfCallsIsPassedOn(t *testing.T) {
	f := newFeed()
	f.call("files", "copy", upstream.Progress{Progress: 1, Total: 3})
	f.call("files", "copy", upstream.Progress{Progress: 2, Total: 3, Message: "b.txt\nmore"})
	f.call("mail", "send", upstream.Progress{Progress: 0.5})
	fmt.Fprint(f, "printed\n")
	if got, want := f.take(false), "printed\nfiles.copy: 2 of 3: b.txt\nmail.send: 0.5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for i := range 100 {
		f.call("s", fmt.Sprint("t", i), upstream.Progress{Progress: 1})
	}
	if got := strings.Split(f.take(false), "\n"); len(got) != maxProgressCalls || got[len(got)-1] != "s.t99: 1" {
		t.Errorf("got %q", got)
	}
	if got := f.take(true); got != "" {
		t.Errorf("got %q", got)
	}
}
