package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"codeexec/bridge/alias"
	"codeexec/bridge/catalog"
	"codeexec/bridge/search"
	"codeexec/bridge/suggest"
	"codeexec/bridge/upstream"
	"codeexec/hostfuncs"
)

// guestServer is what a script learns of a server without starting it.
type guestServer struct {
	Name        string `json:"name"`
	Alias       string `json:"alias"`
	Description string `json:"description"`
	Status      string `json:"status"`
	Transport   string `json:"transport"`
	Cwd         string `json:"cwd"`
	Error       string `json:"error,omitempty"`
	Tools       *int   `json:"tools,omitempty"`
}

func (h *guestHandler) listServers() []guestServer {
	servers := []guestServer{}
	for _, info := range h.upstreams.Servers() {
		s := guestServer{
			Name:        info.Name,
			Alias:       info.Alias,
			Description: info.Description,
			Status:      info.Status,
			Transport:   info.Transport,
			Cwd:         info.Cwd,
		}
		if info.Err != nil {
			s.Error = info.Err.Error()
		}
		if info.Tools >= 0 {
			s.Tools = &info.Tools
		}
		servers = append(servers, s)
	}
	return servers
}

// guestTool is a tool as a script sees it.
type guestTool struct {
	Name         string          `json:"name"`
	Alias        string          `json:"alias"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// listTools answers from the catalogue where the server isn't running, unless it is asked to refresh: then
// the server starts and says itself what it has.
func (h *guestHandler) listTools(ctx context.Context, scope *runScope, params json.RawMessage) (hostfuncs.Response, error) {
	var p struct {
		Server  string `json:"server"`
		Refresh bool   `json:"refresh"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return hostfuncs.Response{}, fmt.Errorf("tools.list: %w", err)
	}
	info, err := h.allowedServer(scope, p.Server, "")
	if err != nil {
		return hostfuncs.Response{}, err
	}
	var tools []catalog.Tool
	switch {
	case p.Refresh:
		tools, err = h.upstreams.Refresh(ctx, info.Name)
	case info.Tools < 0:
		tools, err = h.firstTools(ctx, scope, info.Name)
	default:
		tools, err = h.upstreams.Tools(ctx, info.Name)
	}
	if err != nil {
		guestErr, _ := guestError(err, info.Name, "")
		return hostfuncs.Response{}, guestErr
	}
	aliases := toolAliases(tools)
	rows := make([]guestTool, len(tools))
	for i, t := range tools {
		rows[i] = guestTool{
			Name:         t.Name,
			Alias:        aliases[t.Name],
			Title:        t.Title,
			Description:  t.Description,
			InputSchema:  t.InputSchema,
			OutputSchema: t.OutputSchema,
			Annotations:  t.Annotations,
		}
	}
	return respond(map[string]any{"server": info.Name, "alias": info.Alias, "tools": rows})
}

func toolAliases(tools []catalog.Tool) map[string]string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Name
	}
	return alias.Tools(names)
}

const (
	maxHits = 50 // of one search
	// A search starts the servers that were never seen: so many at a time, and it waits so long for each.
	// One that failed is left alone for a while, or each search would wait for it.
	searchStarts   = 8
	searchPatience = 10 * time.Second
	retryAfter     = time.Minute
)

// guestHit is a tool that a search has found.
type guestHit struct {
	Server       string          `json:"server"`
	ServerAlias  string          `json:"serverAlias"`
	Tool         string          `json:"tool"`
	ToolAlias    string          `json:"toolAlias"`
	Title        string          `json:"title,omitempty"`
	Description  string          `json:"description"`
	Score        float64         `json:"score"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	Annotations  json.RawMessage `json:"annotations,omitempty"`
}

// guestFailure is a server whose tools a search doesn't know, and why.
type guestFailure struct {
	Server string `json:"server"`
	Error  string `json:"error"`
}

// guestSearch is the answer to a search.
type guestSearch struct {
	Tools  []guestHit     `json:"tools"`            // best first
	Failed []guestFailure `json:"failed,omitempty"` // sorted by server
	Unseen []string       `json:"unseen,omitempty"` // servers that only weren't started because it was to be cached
}

// searchTools looks for tools in the named servers, or in all. That a run was given only some of them doesn't
// matter: what there is may be found, only not called.
func (h *guestHandler) searchTools(ctx context.Context, params json.RawMessage) (hostfuncs.Response, error) {
	var p struct {
		Query   string    `json:"query"`
		Limit   int       `json:"limit"`
		Servers *[]string `json:"servers"` // null: all
		Cached  bool      `json:"cached"`  // nothing is started
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return hostfuncs.Response{}, fmt.Errorf("tools.search: %w", err)
	}
	var enabled, wanted []upstream.Info
	for _, info := range h.upstreams.Servers() {
		if info.Status == upstream.StatusDisabled {
			continue
		}
		enabled = append(enabled, info)
		if p.Servers == nil || slices.Contains(*p.Servers, info.Name) {
			wanted = append(wanted, info)
		}
	}
	answer := guestSearch{Tools: []guestHit{}}
	if p.Cached {
		for _, info := range wanted {
			if info.Tools < 0 {
				answer.Unseen = append(answer.Unseen, info.Name)
			}
		}
	} else {
		answer.Failed = h.getToKnow(ctx, wanted)
		if ctx.Err() != nil {
			return hostfuncs.Response{}, context.Cause(ctx)
		}
	}

	var known []knownTools
	for _, info := range enabled {
		if tools, ok := h.upstreams.Known(info.Name); ok {
			known = append(known, knownTools{info.Name, info.Alias, tools})
		}
	}
	found := h.index.of(known)
	allowed := func(server string) bool {
		return slices.ContainsFunc(wanted, func(info upstream.Info) bool { return info.Name == server })
	}
	for _, hit := range found.index.Search(p.Query, min(max(p.Limit, 1), maxHits), allowed) {
		at := found.places[hit.Index]
		server := known[at.server]
		t := server.tools[at.tool]
		if h.denied(server.server, t) {
			continue
		}
		answer.Tools = append(answer.Tools, guestHit{
			Server:       server.server,
			ServerAlias:  server.alias,
			Tool:         t.Name,
			ToolAlias:    at.alias,
			Title:        t.Title,
			Description:  t.Description,
			Score:        hit.Score,
			InputSchema:  t.InputSchema,
			OutputSchema: t.OutputSchema,
			Annotations:  t.Annotations,
		})
	}
	return respond(answer)
}

// getToKnow has the servers among servers that were never seen started, side by side, and those that run asked
// if their tools have changed. It returns the ones of which nothing could be learnt.
func (h *guestHandler) getToKnow(ctx context.Context, servers []upstream.Info) []guestFailure {
	var (
		failures = make([]*guestFailure, len(servers))
		slots    = make(chan struct{}, searchStarts)
		starts   sync.WaitGroup
	)
	for i, info := range servers {
		if info.Tools >= 0 && info.Status != upstream.StatusReady {
			continue
		}
		if info.Status == upstream.StatusFailed && time.Since(info.Failed) < retryAfter {
			failures[i] = &guestFailure{info.Name, briefly(info.Err)}
			continue
		}
		starts.Go(func() {
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
			case <-ctx.Done():
				return
			}
			ctx, cancel := context.WithTimeout(ctx, searchPatience)
			defer cancel()
			if _, err := h.upstreams.Tools(ctx, info.Name); err != nil && info.Tools < 0 {
				failures[i] = &guestFailure{info.Name, briefly(err)}
			}
		})
	}
	starts.Wait()
	var failed []guestFailure
	for _, f := range failures {
		if f != nil {
			failed = append(failed, *f)
		}
	}
	return failed
}

// briefly says on one line why a server's tools aren't known.
func briefly(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("not ready after %d s; it goes on starting", int(searchPatience/time.Second))
	}
	unavailable, ok := errors.AsType[*upstream.UnavailableError](err)
	if !ok {
		return firstLine(err.Error(), 200)
	}
	text := firstLine(unavailable.Err.Error(), 200)
	stderr := strings.TrimSpace(unavailable.Stderr)
	if last := firstLine(stderr[strings.LastIndexByte(stderr, '\n')+1:], 200); last != "" {
		text += ": " + last
	}
	return text
}

// knownTools are the tools of one server.
type knownTools struct {
	server, alias string
	tools         []catalog.Tool
}

func (k knownTools) same(other knownTools) bool {
	return k.server == other.server && len(k.tools) == len(other.tools) &&
		(len(k.tools) == 0 || &k.tools[0] == &other.tools[0])
}

// A toolIndex makes an index of what is known, and keeps it until something else is.
type toolIndex struct {
	mu   sync.Mutex
	last *indexed
}

// indexed is an index with what it was made of.
type indexed struct {
	known  []knownTools
	places []toolPlace // by [search.Hit.Index]
	index  *search.Index
}

// A toolPlace says where in what is known a tool is.
type toolPlace struct {
	server, tool int
	alias        string
}

func (x *toolIndex) of(known []knownTools) *indexed {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.last != nil && slices.EqualFunc(x.last.known, known, knownTools.same) {
		return x.last
	}
	made := &indexed{known: known}
	var tools []search.Tool
	for i, server := range known {
		aliases := toolAliases(server.tools)
		for j, t := range server.tools {
			made.places = append(made.places, toolPlace{i, j, aliases[t.Name]})
			tools = append(tools, searchable(server.server, t))
		}
	}
	made.index = search.NewIndex(tools)
	x.last = made
	return made
}

func searchable(server string, t catalog.Tool) search.Tool {
	var input struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	var annotations struct {
		Title string `json:"title"`
	}
	// What can't be read isn't found.
	json.Unmarshal(t.InputSchema, &input)
	json.Unmarshal(t.Annotations, &annotations)
	tool := search.Tool{Server: server, Name: t.Name, Title: t.Title, Description: t.Description}
	if tool.Title == "" {
		tool.Title = annotations.Title
	}
	for name := range input.Properties {
		tool.Parameters = append(tool.Parameters, name)
	}
	slices.Sort(tool.Parameters)
	return tool
}

// allowedServer finds the server of that name or alias among those that the run may use.
func (h *guestHandler) allowedServer(scope *runScope, name, tool string) (upstream.Info, error) {
	servers := h.upstreams.Servers()
	data := map[string]any{"server": name}
	if tool != "" {
		data["tool"] = tool
	}
	info, ok := findServer(servers, name)
	if !ok {
		return upstream.Info{}, &hostfuncs.Error{Kind: kindMCPError, Message: unknownServer(name, serverNames(servers)), Data: data}
	}
	if _, ok := slices.BinarySearch(scope.allowed, info.Name); !ok {
		message := fmt.Sprintf("Server '%s' is not available: add it to servers", name)
		if info.Status == upstream.StatusDisabled {
			message = fmt.Sprintf("Server '%s' is not available: it is disabled in its configuration", name)
		}
		return upstream.Info{}, &hostfuncs.Error{Kind: kindMCPError, Message: message, Data: data}
	}
	return info, nil
}

// findServer finds a server by its name or, since no alias is another server's name, by its alias.
func findServer(servers []upstream.Info, name string) (upstream.Info, bool) {
	for _, s := range servers {
		if s.Name == name || s.Alias == name {
			return s, true
		}
	}
	return upstream.Info{}, false
}

func serverNames(servers []upstream.Info) []string {
	names := make([]string, len(servers))
	for i, s := range servers {
		names[i] = s.Name
	}
	return names
}

// unknownServer says that there is no server of that name, and which ones may have been meant.
func unknownServer(name string, known []string) string {
	name = firstLine(name, 100)
	switch matches := suggest.Names(name, known); {
	case len(known) == 0:
		return fmt.Sprintf("unknown server %q: no MCP servers are configured", name)
	case len(matches) > 0:
		return fmt.Sprintf("unknown server %q: did you mean %s?", name, quoteList(matches))
	case len(known) <= 20:
		return fmt.Sprintf("unknown server %q: the configured servers are %s", name, quoteList(known))
	default:
		return fmt.Sprintf("unknown server %q: none of the %d configured servers is called so (see runtime.discovered_servers())", name, len(known))
	}
}

func quoteList(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(quoted, ", ")
}
