package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/catalog"
	"codeexec/bridge/suggest"
)

const (
	// maxPages, maxTools and maxListing bound a list that a server makes up as
	// it goes; the last is in bytes.
	maxPages   = 1000
	maxTools   = 10_000
	maxListing = 16 << 20
	// listTime is how long a list may take that nobody waits for.
	listTime = time.Minute
)

// A listing is a server's list of tools as it was at one moment.
type listing struct {
	tools   []catalog.Tool // in the server's order
	byName  map[string]catalog.Tool
	changes int64 // of the list, see link.changes, that it has in it
}

// lock takes the lock of the list of tools.
func (l *link) lock(ctx context.Context) error {
	select {
	case l.listing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *link) unlock() { <-l.listing }

// changed takes note that the list of tools has changed.
func (l *link) changed() {
	l.changes.Add(1)
	select {
	case l.stale <- struct{}{}:
	default: // it is noted already
	}
}

// follow asks for the list of tools at once, and whenever it has changed, so
// that the catalogue has it. It returns when the link breaks, or ctx ends.
func (l *link) follow(ctx context.Context) {
	for {
		listCtx, cancel := context.WithTimeout(ctx, listTime)
		_, err := l.list(listCtx, false)
		cancel()
		if err != nil && !l.conn.broken() && ctx.Err() == nil {
			l.server.log.Debug("its tools couldn't be listed", "error", err)
		}
		select {
		case <-l.stale:
		case <-l.conn.closed:
			return
		case <-ctx.Done():
			return
		}
	}
}

// list returns the list of tools. It asks the server if fresh is set, or if the
// list isn't known or has changed.
func (l *link) list(ctx context.Context, fresh bool) (*listing, error) {
	if err := l.lock(ctx); err != nil {
		return nil, err
	}
	defer l.unlock()
	changes := l.changes.Load()
	if l.last != nil && l.last.changes == changes && !fresh {
		return l.last, nil
	}
	tools, err := l.fetch(ctx)
	if err != nil {
		return nil, err
	}
	list := &listing{tools: tools, byName: make(map[string]catalog.Tool, len(tools)), changes: changes}
	for _, tool := range tools {
		list.byName[tool.Name] = tool
	}
	l.last = list
	l.server.record.Save(catalog.Listing{Seen: time.Now(), Description: l.description(), Tools: tools})
	return list, nil
}

// description returns what the server says about itself: in one word, or in the
// first paragraph of its instructions.
func (l *link) description() string {
	greeting := l.session.InitializeResult()
	if greeting == nil {
		return ""
	}
	if info := greeting.ServerInfo; info != nil && strings.TrimSpace(info.Description) != "" {
		return oneLine(info.Description)
	}
	text := strings.TrimSpace(strings.ReplaceAll(greeting.Instructions, "\r\n", "\n"))
	first, _, _ := strings.Cut(text, "\n\n")
	return oneLine(first)
}

// oneLine makes a text fit to stand in a list.
func oneLine(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(printable(text)), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// fetch reads all pages of the list of tools.
func (l *link) fetch(ctx context.Context) ([]catalog.Tool, error) {
	var (
		list  = []catalog.Tool{}
		size  = 0
		names = make(map[string]bool)
		seen  = make(map[string]bool) // cursors
		log   = l.server.log
	)
	cursor := ""
	for range maxPages {
		page, next, err := l.page(ctx, cursor)
		if err != nil {
			var rpc *ProtocolError
			if errors.As(err, &rpc) && rpc.Code == jsonrpc.CodeMethodNotFound {
				return list, nil // it has no tools
			}
			return nil, err
		}
		for _, text := range page {
			tool, err := catalog.ParseTool(text)
			if err == nil && l.mirrors() {
				err = checkHeaders(tool)
			}
			size += tool.Size()
			switch {
			case err != nil:
				log.Warn("left out a tool", "error", err)
			case names[tool.Name]:
				log.Warn("left out a tool of a name that is taken", "tool", tool.Name)
			case len(list) == maxTools || size > maxListing:
				log.Warn("left out tools: there are too many", "limit", maxTools, "bytes", maxListing)
				return list, nil
			default:
				names[tool.Name] = true
				list = append(list, tool)
			}
		}
		if next == "" {
			return list, nil
		}
		if seen[next] {
			log.Warn("the pages of tools/list go in a circle", "cursor", next)
			return list, nil
		}
		seen[next] = true
		cursor = next
	}
	log.Warn("left out tools: their list has too many pages", "limit", maxPages)
	return list, nil
}

// mirrors reports whether calls of the server repeat arguments in headers.
func (l *link) mirrors() bool {
	greeting := l.session.InitializeResult()
	return l.server.cfg.URL != "" && greeting != nil && greeting.ProtocolVersion >= standardHeadersVersion
}

// checkHeaders returns an error for a tool that mustn't be called over HTTP.
func checkHeaders(tool catalog.Tool) error {
	if _, err := headerParams(tool.InputSchema); err != nil {
		return fmt.Errorf("tool %q: %w", tool.Name, err)
	}
	return nil
}

// page reads one page of the list of tools, each as the server spelled it, and
// the cursor of the next; empty after the last.
func (l *link) page(ctx context.Context, cursor string) (tools []json.RawMessage, next string, err error) {
	limited, cancel := context.WithTimeout(ctx, l.server.opts.ListTimeout)
	defer cancel()
	limited, raw := withCapture(limited, fieldTools)
	defer l.conn.forget(raw)
	err = guarded(func() error {
		result, err := l.session.ListTools(limited, &mcp.ListToolsParams{Cursor: cursor})
		if err == nil {
			next = result.NextCursor
		}
		return err
	})
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("it didn't answer tools/list within %v", l.server.opts.ListTimeout)
			return nil, "", l.server.unavailable(err, "")
		}
		return nil, "", l.explain(ctx, "", err)
	}
	if raw.value == nil {
		return nil, next, nil // no field is no tool
	}
	if err := json.Unmarshal(raw.value, &tools); err != nil {
		return nil, "", &ProtocolError{Server: l.server.cfg.Name, Message: "its answer to tools/list isn't valid: its tools aren't a list"}
	}
	return tools, next, nil
}

// lookUp returns a tool. The error is an [UnknownToolError] if the server
// doesn't list it. A server that can't list its tools is given the benefit of
// the doubt.
func (l *link) lookUp(ctx context.Context, name string) (catalog.Tool, error) {
	var list *listing
	for _, fresh := range []bool{false, true} { // it may be new
		var err error
		list, err = l.list(ctx, fresh)
		var rpc *ProtocolError
		if errors.As(err, &rpc) {
			return catalog.Tool{Name: name}, nil
		}
		if err != nil {
			return catalog.Tool{}, err
		}
		if tool, ok := list.byName[name]; ok {
			return tool, nil
		}
	}
	if len(list.tools) == 0 {
		return catalog.Tool{Name: name}, nil
	}
	return catalog.Tool{}, &UnknownToolError{Server: l.server.cfg.Name, Tool: name, Suggestions: suggest.Names(name, toolNames(list.tools))}
}

func toolNames(tools []catalog.Tool) []string {
	names := make([]string, len(tools))
	for i, tool := range tools {
		names[i] = tool.Name
	}
	return names
}
