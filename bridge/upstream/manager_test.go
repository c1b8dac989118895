package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/config"
)

func TestServersDescribesWithoutStarting(t *testing.T) {
	m := start(t, Options{},
		config.Server{Name: "my-server", Command: "no-such-program", Description: "Mine", Cwd: "/tmp"},
		config.Server{Name: "my.server", Command: "x", Disabled: true, Source: "a.json"},
	)
	want := []Info{
		{Name: "my-server", Alias: "my_server", Description: "Mine", Transport: "stdio", Cwd: "/tmp", Status: StatusIdle, Tools: -1},
		{Name: "my.server", Alias: "my_server_2", Transport: "stdio", Status: StatusDisabled, Tools: -1},
	}
	if got := m.Servers(); !slices.Equal(got, want) {
		t.Errorf("Servers() = %+v, want %+v", got, want)
	}
	_, err := m.Tools(limit(t), "my.server")
	if got := unavailable(t, err).Error(); got != `server "my.server" is not available: it is disabled in a.json` {
		t.Errorf("err = %s", got)
	}
}

func TestCallStartsTheServerOnceAndKeepsItWarm(t *testing.T) {
	m := start(t, Options{}, stubServer())
	pids := make([]int, 20)
	var wg sync.WaitGroup
	for i := range pids {
		wg.Go(func() {
			result, err := m.Call(limit(t), "stub", "process", nil)
			if err != nil {
				t.Error(err)
				return
			}
			pids[i] = field[int](t, result, "pid")
		})
	}
	wg.Wait()
	if got := slices.Compact(pids); len(got) != 1 {
		t.Errorf("processes %v", got)
	}
	info := m.Servers()[0]
	if info.Status != StatusReady || info.Tools < 30 || info.Err != nil {
		t.Errorf("info = %+v", info)
	}
}

// Every way that a result can look arrives as it was sent.
func TestCallKeepsTheWholeResult(t *testing.T) {
	m := start(t, Options{}, stubServer())
	blocks := func(result *mcp.CallToolResult) string {
		var kinds []string
		for _, block := range result.Content {
			kinds = append(kinds, strings.TrimPrefix(fmt.Sprintf("%T", block), "*mcp."))
		}
		return strings.Join(kinds, " ")
	}
	tests := []struct {
		tool, args string
		blocks     string
		structured any // nil = absent
		isError    bool
	}{
		{"say", `{"text": "hi"}`, "TextContent", nil, false},
		{"add", `{"a": 1, "b": 2}`, "TextContent", `{"sum":3}`, false},
		{"fail", ``, "TextContent", nil, true},
		{"image", ``, "ImageContent", nil, false},
		{"audio", ``, "AudioContent", nil, false},
		{"resource", ``, "EmbeddedResource", nil, false},
		{"blob", ``, "EmbeddedResource", nil, false},
		{"link", ``, "ResourceLink", nil, false},
		{"several", ``, "TextContent ImageContent AudioContent EmbeddedResource EmbeddedResource ResourceLink", nil, false},
		{"nothing", ``, "", nil, false},
		{"structured", `{"kind": "null"}`, "TextContent", `null`, false},
		{"structured", `{"kind": "zero"}`, "TextContent", `0`, false},
		{"structured", `{"kind": "false"}`, "TextContent", `false`, false},
		{"structured", `{"kind": "empty"}`, "TextContent", `""`, false},
		{"structured", `{"kind": "empty-list"}`, "TextContent", `[]`, false},
		{"structured", `{"kind": "big"}`, "TextContent", `{"id":12345678901234567890,"pi":3.141592653589793238462643383279,"e":1E400}`, false},
		{"structured", `{"kind": "bare"}`, "", `{"only":"here"}`, false},
		{"structured", `{"kind": "with-image"}`, "ImageContent", `{"shown":true}`, false},
	}
	for _, tc := range tests {
		t.Run(tc.tool+tc.args, func(t *testing.T) {
			result := call(t, m, tc.tool, tc.args)
			if got := blocks(result); got != tc.blocks {
				t.Errorf("content is %s, want %s", got, tc.blocks)
			}
			switch raw, ok := result.StructuredContent.(json.RawMessage); {
			case tc.structured == nil && result.StructuredContent != nil:
				t.Errorf("structured content %s, want none", raw)
			case tc.structured != nil && (!ok || string(raw) != tc.structured):
				t.Errorf("structured content %s, want %s", raw, tc.structured)
			}
			if result.IsError != tc.isError {
				t.Errorf("IsError = %v", result.IsError)
			}
			// Absent and null stay different on the way to the guest.
			data, err := json.Marshal(result)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := strings.Contains(string(data), `"structuredContent"`), tc.structured != nil; got != want {
				t.Errorf("marshals to %s", data)
			}
		})
	}
	image := call(t, m, "image", "").Content[0].(*mcp.ImageContent)
	if image.MIMEType != "image/png" || !strings.HasPrefix(string(image.Data), "\x89PNG") {
		t.Errorf("image of type %s: %q", image.MIMEType, image.Data)
	}
}

func TestCallSendsArgumentsAsTheyAre(t *testing.T) {
	m := start(t, Options{}, stubServer())
	tests := []struct{ args, want string }{
		{`{"n":12345678901234567890,"f":1.10,"from":"a","cik-A":1e400,"html":"<&>"}`, ""},
		{`{"s":"\u0000 ü \ud83d\ude00"}`, ""},
		{``, `{}`},
		{`null`, `{}`},
		{" {\n\"a\" : [ ] }\n", `{"a":[]}`},
	}
	for _, tc := range tests {
		if tc.want == "" {
			tc.want = tc.args
		}
		if got := text(t, call(t, m, "echo", tc.args)); got != tc.want {
			t.Errorf("%s arrived as %s", tc.args, got)
		}
	}
	for _, args := range []string{`[]`, `1`, `{"a":`, `{"a":1} x`} {
		var protocol *ProtocolError
		if _, err := m.Call(limit(t), "stub", "echo", json.RawMessage(args)); !errors.As(err, &protocol) {
			t.Errorf("arguments %s: err = %v", args, err)
		}
	}
}

func TestToolNamesAreTheOriginalOnes(t *testing.T) {
	m := start(t, Options{}, stubServer())
	for _, name := range []string{"list-items", "get.value", "class", "__class__", "a/b", "日本"} {
		if got := text(t, call(t, m, name, "")); got != name {
			t.Errorf("%s called %s", name, got)
		}
	}
}

func TestErrors(t *testing.T) {
	m := start(t, Options{}, stubServer(), config.Server{Name: "git-hub", Command: "x"})
	t.Run("an unknown server", func(t *testing.T) {
		for _, name := range []string{"stbu", "github", "nothing like it"} {
			_, err := m.Call(limit(t), name, "echo", nil)
			var unknown *UnknownServerError
			if !errors.As(err, &unknown) || unknown.Server != name {
				t.Fatalf("err = %v", err)
			}
			want := map[string]string{"stbu": "stub", "github": "git-hub"}[name]
			if got := strings.Join(unknown.Suggestions, " "); got != want {
				t.Errorf("%q: suggestions %q, want %q", name, got, want)
			}
		}
	})
	t.Run("an unknown tool", func(t *testing.T) {
		_, err := m.Call(limit(t), "stub", "list_itmes", nil)
		var unknown *UnknownToolError
		if !errors.As(err, &unknown) || unknown.Suggestions[0] != "list-items" {
			t.Fatalf("err = %v", err)
		}
		if got := err.Error(); !strings.HasPrefix(got, `server "stub" has no tool "list_itmes"; did you mean "list-items"`) {
			t.Error(got)
		}
	})
	t.Run("a JSON-RPC error", func(t *testing.T) {
		_, err := m.Call(limit(t), "stub", "protocol-error", nil)
		var protocol *ProtocolError
		if !errors.As(err, &protocol) || protocol.Code != -32050 || string(protocol.Data) != `{"why":"because"}` {
			t.Fatalf("err = %#v", err)
		}
		if got, want := err.Error(), `server "stub", tool "protocol-error": the stub refuses (code -32050)`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
	for _, kind := range []string{"content", "type", "deep", "panic", "version"} {
		t.Run("an answer that isn't valid: "+kind, func(t *testing.T) {
			_, err := m.Call(limit(t), "stub", "malformed", json.RawMessage(`{"kind":"`+kind+`"}`))
			var protocol *ProtocolError
			if !errors.As(err, &protocol) || protocol.Code != 0 || protocol.Tool != "malformed" {
				t.Fatalf("err = %v", err)
			}
			call(t, m, "echo", "") // the server is still there
		})
	}
	if status := m.Servers()[1].Status; status != StatusReady {
		t.Errorf("status %s", status)
	}
}

// An answer that is too large fails its own call; the server goes on.
func TestAnswersThatAreTooLarge(t *testing.T) {
	m := start(t, Options{maxLine: 1 << 20}, stubServer())
	pid := field[int](t, call(t, m, "process", ""), "pid")
	for _, kind := range []string{"long", "longer"} {
		_, err := m.Call(limit(t), "stub", "malformed", json.RawMessage(`{"kind":"`+kind+`","bytes":2000000}`))
		var large *TooLargeError
		if !errors.As(err, &large) || large.Tool != "malformed" || large.Limit != 1<<20 {
			t.Fatalf("%s: err = %v", kind, err)
		}
	}
	if got := field[int](t, call(t, m, "process", ""), "pid"); got != pid {
		t.Error("the server was started again")
	}
}

func TestALargeAnswer(t *testing.T) {
	m := start(t, Options{}, stubServer())
	const n = 20_000_000 // more than the SDK's own transport takes
	if got := text(t, call(t, m, "large", fmt.Sprintf(`{"bytes": %d}`, n))); len(got) != n {
		t.Errorf("%d bytes", len(got))
	}
}

func TestToolsReadsAllPages(t *testing.T) {
	m := start(t, Options{}, stubServer("-tools", "95", "-page", "10"))
	tools, err := m.Tools(limit(t), "stub")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, tool := range tools {
		if strings.HasPrefix(tool.Name, "tool_") {
			n++
		}
	}
	if n != 95 || m.Servers()[0].Tools != len(tools) {
		t.Errorf("%d numbered tools of %d, info says %d", n, len(tools), m.Servers()[0].Tools)
	}
}

func TestToolsSurvivesACircleOfPages(t *testing.T) {
	m := start(t, Options{}, stubServer("-page", "10", "-circle"))
	tools, err := m.Tools(limit(t), "stub")
	if err != nil || len(tools) != 10 {
		t.Errorf("%d tools, %v", len(tools), err)
	}
}

func TestToolsFollowsChanges(t *testing.T) {
	for _, version := range []string{"", "2025-11-25"} {
		t.Run("version "+version, func(t *testing.T) {
			m := start(t, Options{}, stubServer("-version", version))
			before, err := m.Tools(limit(t), "stub")
			if err != nil {
				t.Fatal(err)
			}
			call(t, m, "add-tool", `{"name": "brand-new"}`)
			eventually(t, "the list has the new tool", func() bool {
				after, err := m.Tools(limit(t), "stub")
				return err == nil && len(after) == len(before)+1
			})
			if got := text(t, call(t, m, "brand-new", "")); got != "brand-new" {
				t.Error(got)
			}
		})
	}
}

func TestServersThatTalkTooMuch(t *testing.T) {
	log := new(buffer)
	m := start(t, Options{Logger: logTo(log)}, stubServer("-banner", "3", "-stderr", "20000", "-rude"))
	if got := text(t, call(t, m, "say", `{"text": "hello"}`)); got != "hello" {
		t.Error(got)
	}
	if !strings.Contains(log.String(), "Stub server, banner line 2") {
		t.Errorf("the banner isn't in the log:\n%s", log)
	}
}

func TestFloodWithoutNewline(t *testing.T) {
	m := start(t, Options{}, stubServer("-flood", "200"))
	call(t, m, "echo", "")
}

func TestGreetings(t *testing.T) {
	tests := []struct {
		name  string
		flags []string
	}{
		{"the newest version", nil},
		{"an older version", []string{"-version", "2025-06-18"}},
		{"the oldest version", []string{"-version", "2024-11-05"}},
		{"answers server/discover with an error", []string{"-unknown", "server/discover", "-version", "2025-11-25"}},
		{"ignores server/discover", []string{"-mute", "server/discover", "-version", "2025-11-25"}},
		{"exits at server/discover", []string{"-exit-on", "server/discover", "-version", "2025-11-25"}},
		{"is slow", []string{"-slow", "700ms", "-version", "2025-11-25"}},
		{"is slow and knows only the newest", []string{"-slow", "700ms", "-unknown", "initialize", "-version", "2026-07-28"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, Options{ProbeTimeout: 300 * time.Millisecond}, stubServer(tc.flags...))
			for range 2 {
				if got := text(t, call(t, m, "say", `{"text": "hello"}`)); got != "hello" {
					t.Error(got)
				}
				// The second time it is known which greeting it likes.
				m.Call(limit(t), "stub", "crash", nil)
			}
		})
	}
}

func TestWeAdvertiseOnlyWhatWeHave(t *testing.T) {
	m := start(t, Options{ClientName: "tester", Version: "1.2"}, stubServer("-version", "2025-11-25"))
	result := call(t, m, "client", "")
	if got := field[json.RawMessage](t, result, "capabilities"); string(got) != "{}" {
		t.Errorf("capabilities %s", got)
	}
	if got := field[map[string]any](t, result, "clientInfo"); got["name"] != "tester" || got["version"] != "1.2" {
		t.Errorf("client %v", got)
	}
}

func TestStartsThatFail(t *testing.T) {
	tests := []struct {
		name   string
		server config.Server
		want   string // in the message
	}{
		{"no such program", config.Server{Name: "stub", Command: "no-such-program-anywhere"}, `the program "no-such-program-anywhere" is not on PATH`},
		{"no such path", config.Server{Name: "stub", Command: "/no/such/program"}, "there is no program /no/such/program"},
		{"not a program", config.Server{Name: "stub", Command: "/etc/passwd"}, "/etc/passwd is not an executable program"},
		{"no such directory", config.Server{Name: "stub", Command: stub, Cwd: "/no/such/dir"}, "its working directory can't be used"},
		{"exits at once", stubServer("-exit", "7", "-stderr", "30"), "it exited with status 7; the end of its stderr:\nstderr line 11\nstderr line 12\n"},
		{"exits cleanly", stubServer("-exit", "0"), "it exited"},
		{"refuses the greeting", stubServer("-unknown", "initialize", "-version", "2025-11-25"), "it refused the greeting: Method not found (code -32601)"},
		{"never answers", stubServer("-silent", "-stderr", "1"), "it didn't answer the greeting within 1s of its start; the end of its stderr:\nstderr line 1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := start(t, Options{StartTimeout: time.Second, ProbeTimeout: 200 * time.Millisecond}, tc.server)
			if strings.Contains(tc.name, "exits") || strings.Contains(tc.name, "refuses") {
				// These end by themselves, and must have the time on a slow machine.
				m.servers["stub"].opts.StartTimeout = 30 * time.Second
			}
			_, err := m.Call(limit(t), "stub", "echo", nil)
			if got := unavailable(t, err).Error(); !strings.Contains(got, tc.want) {
				t.Errorf("err = %s\nwant  … %s", got, tc.want)
			}
			if info := m.Servers()[0]; info.Status != StatusFailed || info.Err == nil {
				t.Errorf("info = %+v", info)
			}
		})
	}
}

func TestOneBrokenServerDoesNotHoldUpOthers(t *testing.T) {
	silent := stubServer("-silent")
	silent.Name = "silent"
	m := start(t, Options{}, stubServer(), silent)
	ctx, cancel := context.WithCancel(context.Background())
	failed := make(chan error, 1)
	go func() {
		_, err := m.Tools(ctx, "silent")
		failed <- err
	}()
	call(t, m, "echo", "")
	cancel()
	if err := <-failed; err != context.Canceled {
		t.Errorf("err = %v", err)
	}
}

func TestCrashFailsCallsAtOnceAndTheNextStartsAgain(t *testing.T) {
	for _, args := range []string{`{"status": 3}`, `{"signal": true}`, `{"status": 0}`} {
		t.Run(args, func(t *testing.T) {
			m := start(t, Options{}, stubServer())
			pid := field[int](t, call(t, m, "process", ""), "pid")

			asleep := make(chan error, 1)
			go func() {
				_, err := m.Call(limit(t), "stub", "sleep", json.RawMessage(`{"ms": 3600000}`))
				asleep <- err
			}()
			eventually(t, "a call is in flight", func() bool {
				return field[int](t, call(t, m, "cancelled", ""), "most") == 1
			})
			_, err := m.Call(limit(t), "stub", "crash", json.RawMessage(args))
			for _, err := range []error{err, <-asleep} {
				u := unavailable(t, err)
				want := map[string]string{
					`{"status": 3}`: "it exited with status 3", `{"signal": true}`: "it was ended by a signal (killed)", `{"status": 0}`: "it exited",
				}[args]
				if u.Err.Error() != want || !strings.HasSuffix(u.Error(), "the end of its stderr:\npanic: the stub crashes") {
					t.Errorf("err = %v", u)
				}
			}
			if got := field[int](t, call(t, m, "process", ""), "pid"); got == pid {
				t.Error("the same process")
			}
			if info := m.Servers()[0]; info.Status != StatusReady || info.Err != nil {
				t.Errorf("info = %+v", info)
			}
		})
	}
}

func TestAServerThatClosesItsStdoutIsStartedAgain(t *testing.T) {
	m := start(t, Options{}, stubServer("-close-stdout", "-version", "2025-11-25"))
	for range 2 {
		_, err := m.Call(limit(t), "stub", "echo", nil)
		unavailable(t, err)
	}
}

func TestBackoff(t *testing.T) {
	var got []time.Duration
	for failures := range 9 {
		got = append(got, backoff(failures))
	}
	ms := time.Millisecond
	want := []time.Duration{0, 0, 250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 5000 * ms, 5000 * ms}
	if !slices.Equal(got, want) {
		t.Errorf("backoff %v, want %v", got, want)
	}
}

func TestAServerThatFailsItsFirstStart(t *testing.T) {
	m := start(t, Options{}, stubServer("-fail-first", t.TempDir()+"/failed"))
	call(t, m, "echo", "")
}

func TestCancellingACallTellsTheServer(t *testing.T) {
	m := start(t, Options{}, stubServer())
	call(t, m, "echo", "")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		_, err := m.Call(ctx, "stub", "sleep", json.RawMessage(`{"ms": 3600000}`))
		done <- err
	}()
	eventually(t, "the call has arrived", func() bool {
		return field[int](t, call(t, m, "cancelled", ""), "most") == 1
	})
	cancel()
	if err := <-done; err != context.Canceled {
		t.Errorf("err = %v", err)
	}
	eventually(t, "the server has seen the cancellation", func() bool {
		return field[int](t, call(t, m, "cancelled", ""), "cancelled") == 1
	})
	l := m.servers["stub"].link
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	if n := len(l.conn.captures); n > 0 {
		t.Errorf("%d captures left", n)
	}
}

func TestDeadlineOfACall(t *testing.T) {
	m := start(t, Options{}, stubServer())
	call(t, m, "echo", "")
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := m.Call(ctx, "stub", "block", nil); err != context.DeadlineExceeded {
		t.Errorf("err = %v", err)
	}
	call(t, m, "echo", "")
}

func TestAServerThatDoesNotReadCantHoldUpACall(t *testing.T) {
	m := start(t, Options{}, stubServer("-stop-reading", "-version", "2025-11-25"))
	big := json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20) + `"}`)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			defer cancel()
			if _, err := m.Call(ctx, "stub", "say", big); err != context.DeadlineExceeded {
				t.Errorf("err = %v", err)
			}
		})
	}
	wg.Wait()
}

func TestCallsRunTogetherUpToTheLimit(t *testing.T) {
	m := start(t, Options{MaxInFlight: 4}, stubServer())
	call(t, m, "echo", "")
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			id := fmt.Sprint(i)
			got := text(t, call(t, m, "sleep", fmt.Sprintf(`{"ms": 200, "id": %q}`, id)))
			if got != "slept"+id {
				t.Errorf("call %s got %q", id, got)
			}
		})
	}
	wg.Wait()
	if most := field[int](t, call(t, m, "cancelled", ""), "most"); most != 4 {
		t.Errorf("%d calls at a time, want 4", most)
	}
}

func TestWaitingForASlotCanBeCancelled(t *testing.T) {
	m := start(t, Options{MaxInFlight: 1}, stubServer())
	call(t, m, "echo", "")
	first, free := context.WithCancel(context.Background())
	defer free()
	go m.Call(first, "stub", "block", nil)
	eventually(t, "the slot is taken", func() bool { return len(m.servers["stub"].slots) == 1 })
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := m.Call(ctx, "stub", "echo", nil); err != context.DeadlineExceeded {
		t.Errorf("err = %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	server := stubServer()
	server.Env = map[string]string{"TOKEN": "t0p", "LANG": "de_DE.UTF-8"}
	server.Cwd = t.TempDir()
	m := start(t, Options{Environ: []string{
		"PATH=/bin", "HOME=/home/me", "LANG=C", "LC_ALL=C", "USER=me", "TMPDIR=/t", "TERM=xterm",
		"AWS_SECRET_ACCESS_KEY=s3cret", "GITHUB_TOKEN=s3cret", "BASH_FUNC_x%%=() { :; }", "SHELL=() { :; }", "broken",
	}}, server)
	env := field[[]string](t, call(t, m, "env", ""), "env")
	env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, "PATH=/bin:") })
	want := []string{"HOME=/home/me", "LANG=de_DE.UTF-8", "LC_ALL=C", "TERM=xterm", "TMPDIR=/t", "TOKEN=t0p", "USER=me"}
	if !slices.Equal(env, want) {
		t.Errorf("environment %q, want %q", env, want)
	}
	if got := field[string](t, call(t, m, "process", ""), "cwd"); got != server.Cwd {
		t.Errorf("cwd %s, want %s", got, server.Cwd)
	}
}

func TestAfterClose(t *testing.T) {
	m := start(t, Options{}, stubServer())
	call(t, m, "echo", "")
	closeManager(t, m)
	_, err := m.Call(limit(t), "stub", "echo", nil)
	if !errors.Is(unavailable(t, err), ErrClosed) {
		t.Errorf("err = %v", err)
	}
	closeManager(t, m) // once more does no harm
}

func TestCloseFailsWhatIsInFlight(t *testing.T) {
	silent := stubServer("-silent")
	silent.Name = "silent"
	m := start(t, Options{}, stubServer(), silent)
	call(t, m, "echo", "")
	errs := make(chan error, 2)
	go func() {
		_, err := m.Call(context.Background(), "stub", "block", nil)
		errs <- err
	}()
	go func() {
		_, err := m.Tools(context.Background(), "silent")
		errs <- err
	}()
	eventually(t, "both are under way", func() bool {
		s := m.servers["silent"]
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.attempt != nil && len(m.servers["stub"].slots) == 1
	})
	closeManager(t, m)
	for range 2 {
		if err := <-errs; !errors.Is(unavailable(t, err), ErrClosed) {
			t.Errorf("err = %v", err)
		}
	}
}
