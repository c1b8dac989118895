package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"codeexec/bridge/catalog"
	"codeexec/bridge/config"
	"codeexec/bridge/upstream"
	"codeexec/hostfuncs"
	"codeexec/wasmhost"
)

func TestServersList(t *testing.T) {
	up := &fakeUpstreams{servers: someServers()}
	up.servers[0].Status, up.servers[0].Err = "failed", errors.New("no such program")
	got, _, err := ask(t, up, RunRequest{Servers: []string{}}, "servers.list", struct{}{})
	want := `[{"name":"files","alias":"files","description":"Files","status":"failed","transport":"stdio","cwd":"","error":"no such program"},` +
		`{"name":"git-hub","alias":"git_hub","description":"","status":"ready","transport":"stdio","cwd":"","tools":3},` +
		`{"name":"off","alias":"off","description":"","status":"disabled","transport":"stdio","cwd":""}]`
	if err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestToolsList(t *testing.T) {
	up := &fakeUpstreams{servers: someServers(), tools: map[string][]catalog.Tool{"git-hub": {
		{Name: "get-issue", Description: "Gets <it>", InputSchema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{"maximum":12345678901234567890}}}`)},
		{Name: "get_issue", Title: "T", OutputSchema: json.RawMessage(`{"type":"string"}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`)},
	}}}
	got, _, err := ask(t, up, RunRequest{}, "tools.list", map[string]any{"server": "git_hub"})
	want := `{"alias":"git_hub","server":"git-hub","tools":[` +
		`{"name":"get-issue","alias":"get_issue_2","description":"Gets <it>","inputSchema":{"type":"object","properties":{"z":{},"a":{"maximum":12345678901234567890}}}},` +
		`{"name":"get_issue","alias":"get_issue","title":"T","description":"","inputSchema":null,"outputSchema":{"type":"string"},"annotations":{"readOnlyHint":true}}]}`
	if err != nil || got != want {
		t.Errorf("got  %s, %v\nwant %s", got, err, want)
	}
}

func TestToolsListRefresh(t *testing.T) {
	up := &fakeUpstreams{
		servers: someServers(),
		tools:   map[string][]catalog.Tool{"files": {{Name: "old"}}},
		list: func(context.Context, string) ([]catalog.Tool, error) {
			return []catalog.Tool{{Name: "new"}}, nil
		},
	}
	for _, tc := range []struct {
		refresh bool
		want    string
	}{{false, `"old"`}, {true, `"new"`}, {false, `"new"`}} {
		got, _, err := ask(t, up, RunRequest{}, "tools.list", map[string]any{"server": "files", "refresh": tc.refresh})
		if err != nil || !strings.Contains(got, tc.want) {
			t.Errorf("refresh %v: %s, %v", tc.refresh, got, err)
		}
	}
	if len(up.asked) != 1 {
		t.Errorf("asked %v", up.asked)
	}
}

// searched is what a search answers, in short.
func searched(t *testing.T, up *fakeUpstreams, req RunRequest, params map[string]any) (hits []string, answer guestSearch) {
	t.Helper()
	value, _, err := ask(t, up, req, "tools.search", params)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(value), &answer); err != nil {
		t.Fatal(err)
	}
	for _, hit := range answer.Tools {
		hits = append(hits, hit.ServerAlias+"."+hit.ToolAlias)
	}
	return hits, answer
}

func TestSearch(t *testing.T) {
	up := &fakeUpstreams{servers: someServers(), tools: map[string][]catalog.Tool{
		"files":   {{Name: "read-file", Description: "Reads <one> file", InputSchema: json.RawMessage(`{"properties":{"path":{}}}`)}, {Name: "list_directory"}},
		"git-hub": {{Name: "read_issue", Title: "Read", OutputSchema: json.RawMessage(`{"a":1}`), Annotations: json.RawMessage(`{"readOnlyHint":true}`)}},
		"off":     {{Name: "read_file"}},
	}}
	tests := []struct {
		name   string
		run    RunRequest
		params map[string]any
		want   string
	}{
		{"all servers", RunRequest{}, map[string]any{"query": "read", "limit": 5}, "git_hub.read_issue files.read_file"},
		{"some servers", RunRequest{}, map[string]any{"query": "read", "limit": 5, "servers": []string{"files"}}, "files.read_file"},
		{"no servers", RunRequest{}, map[string]any{"query": "read", "limit": 5, "servers": []string{}}, ""},
		{"servers that there aren't, or that are disabled", RunRequest{}, map[string]any{"query": "read", "limit": 5, "servers": []string{"off", "x"}}, ""},
		{"all servers in a restricted run", RunRequest{Servers: []string{"files"}}, map[string]any{"query": "read", "limit": 5, "servers": nil}, "git_hub.read_issue files.read_file"},
		{"a typo", RunRequest{}, map[string]any{"query": "raed file", "limit": 1}, "files.read_file"},
		{"a parameter", RunRequest{}, map[string]any{"query": "path", "limit": 1}, "files.read_file"},
		{"no limit is the least", RunRequest{}, map[string]any{"query": "read"}, "files.read_file"},
		{"nothing to look for", RunRequest{}, map[string]any{"query": "", "limit": 5}, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			hits, answer := searched(t, up, tc.run, tc.params)
			got := strings.Fields(strings.Join(hits, " "))
			want := strings.Fields(tc.want)
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) || answer.Failed != nil || answer.Unseen != nil {
				t.Errorf("got %v, %+v", hits, answer)
			}
		})
	}
	value, _, err := ask(t, up, RunRequest{}, "tools.search", map[string]any{"query": "read file", "limit": 1})
	if want := `{"tools":[{"server":"files","serverAlias":"files","tool":"read-file","toolAlias":"read_file","description":"Reads <one> file","score":1,"inputSchema":{"properties":{"path":{}}}}]}`; err != nil || value != want {
		t.Errorf("got  %s, %v\nwant %s", value, err, want)
	}
	if _, _, err := ask(t, up, RunRequest{}, "tools.search", []int{1}); err == nil {
		t.Error("params that are no object are accepted")
	}
}

func TestSearchStartsUnseenServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const servers = 20
		var running, most atomic.Int64
		up := &fakeUpstreams{list: func(ctx context.Context, server string) ([]catalog.Tool, error) {
			now := running.Add(1)
			defer running.Add(-1)
			for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
			}
			switch server {
			case "s03": // never ready
				<-ctx.Done()
				return nil, ctx.Err()
			case "s05":
				return nil, &upstream.UnavailableError{Server: server, Err: errors.New("exit status 7"), Stderr: "first\nno token\n"}
			case "s06":
				return nil, &upstream.ProtocolError{Server: server, Message: "odd\nand long"}
			}
			time.Sleep(time.Second)
			return []catalog.Tool{{Name: "read_" + server}}, nil
		}}
		for i := range servers {
			up.servers = append(up.servers, upstream.Info{Name: fmt.Sprintf("s%02d", i), Alias: fmt.Sprintf("s%02d", i), Status: upstream.StatusIdle, Tools: -1})
		}
		up.servers[7].Status, up.servers[7].Err, up.servers[7].Failed = upstream.StatusFailed, errors.New("just now"), time.Now()
		up.servers[8].Status, up.servers[8].Err, up.servers[8].Failed = upstream.StatusFailed, errors.New("long ago"), time.Now().Add(-time.Hour)
		up.servers[9].Status = upstream.StatusDisabled

		hits, answer := searched(t, up, RunRequest{}, map[string]any{"query": "read", "limit": 50, "cached": true})
		if len(hits) != 0 || len(up.asked) != 0 || len(answer.Unseen) != servers-1 {
			t.Errorf("cached: %v, asked %v, unseen %v", hits, up.asked, answer.Unseen)
		}
		began := time.Now()
		hits, answer = searched(t, up, RunRequest{}, map[string]any{"query": "read", "limit": 50})
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second { // s03 may be among the first, or have waited for a slot
			t.Errorf("it took %v", took)
		}
		if most.Load() != searchStarts {
			t.Errorf("%d at a time", most.Load())
		}
		want := []guestFailure{
			{"s03", "not ready after 10 s; it goes on starting"},
			{"s05", "exit status 7: no token"},
			{"s06", `server "s06": odd`},
			{"s07", "just now"},
		}
		if len(hits) != servers-5 || !slices.Equal(answer.Failed, want) {
			t.Errorf("%d hits, failed %+v", len(hits), answer.Failed)
		}

		// What is known is not asked again, and what failed has failed.
		up.asked = nil
		up.list = func(_ context.Context, server string) ([]catalog.Tool, error) {
			return []catalog.Tool{{Name: "read_" + server}}, nil
		}
		hits, _ = searched(t, up, RunRequest{}, map[string]any{"query": "read", "limit": 50})
		if len(hits) != servers-2 || !slices.Equal(up.asked, []string{"s03", "s05", "s06"}) {
			t.Errorf("%d hits, asked %v", len(hits), up.asked)
		}
	})
}

func TestSearchEndsWithItsRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := &fakeUpstreams{servers: someServers(), list: func(ctx context.Context, _ string) ([]catalog.Tool, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		began := time.Now()
		_, _, err := ask(t, up, RunRequest{Timeout: 2 * time.Second}, "tools.search", map[string]any{"query": "x", "limit": 5})
		if took := time.Since(began); err == nil || took != 2*time.Second {
			t.Errorf("%v after %v", err, took)
		}
	})
}

func TestTheIndexIsMadeAnewWhenToolsChange(t *testing.T) {
	var x toolIndex
	known := []knownTools{{"a", "a", []catalog.Tool{{Name: "one"}}}, {"b", "b", nil}}
	first := x.of(known)
	if x.of(slices.Clone(known)) != first {
		t.Error("the same tools are indexed again")
	}
	changed := slices.Clone(known)
	changed[0].tools = []catalog.Tool{{Name: "two"}}
	if second := x.of(changed); second == first || second.index.Search("two", 1, nil) == nil {
		t.Error("other tools are not indexed")
	}
	if x.of(changed[:1]) == first {
		t.Error("a server that has gone is found")
	}
}

// Fifty servers whose programs don't even exist: whoever started one would notice.
func TestDiscoveryStartsNoServerThatIsInTheCatalogue(t *testing.T) {
	const count = 50
	dir := t.TempDir()
	set := config.Set{}
	for i := range count {
		server := config.Server{Name: fmt.Sprintf("server-%02d", i), Command: "/does/not/exist", Args: []string{fmt.Sprint(i)}}
		set.Servers = append(set.Servers, server)
		tool, err := catalog.ParseTool([]byte(fmt.Sprintf(`{"name":"make-widget-%d","description":"Makes a widget","inputSchema":{"type":"object"}}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		catalog.Open(dir, nil).Record(server).Save(catalog.Listing{Seen: time.Now(), Description: "Widgets", Tools: []catalog.Tool{tool}})
	}
	scripts := map[string]script{"discover": func(ctx context.Context, sb *fakeSandbox, _ wasmhost.Request) (*wasmhost.Result, error) {
		var answer guestSearch
		raw, err := sb.call(ctx, "tools.search", map[string]any{"query": "widget", "limit": 50})
		if err != nil || json.Unmarshal(raw, &answer) != nil || len(answer.Tools) != count || answer.Failed != nil {
			t.Errorf("tools.search: %s, %v", raw, err)
		}
		for _, server := range set.Servers {
			raw, err := sb.call(ctx, "tools.list", map[string]any{"server": server.Name})
			if err != nil || !strings.Contains(string(raw), "make_widget_"+server.Args[0]) {
				t.Errorf("tools.list: %s, %v", raw, err)
			}
		}
		var list []guestServer
		raw, err = sb.call(ctx, "servers.list", struct{}{})
		if err != nil || json.Unmarshal(raw, &list) != nil || len(list) != count {
			t.Fatalf("servers.list: %s, %v", raw, err)
		}
		for _, s := range list {
			if s.Status != upstream.StatusIdle || s.Tools == nil || *s.Tools != 1 || s.Description != "Widgets" {
				t.Errorf("%+v", s)
			}
		}
		// A call is another matter.
		_, err = sb.call(ctx, "tools.call", map[string]any{"server": "server-07", "tool": "make-widget-7"})
		if e, ok := errors.AsType[*hostfuncs.Error](err); !ok || e.Kind != kindServerUnavailable {
			t.Errorf("tools.call: %v", err)
		}
		return succeed(""), nil
	}}
	b := New(t.Context(), Options{Engine: &fakeEngine{scripts: scripts}, Servers: set, Catalog: dir})
	defer b.Close(context.Background())
	mustRun(t, b, RunRequest{Code: "discover"})
}
