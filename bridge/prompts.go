package bridge

import (
	"context"
	"embed"
	"fmt"
	"strings"
	"text/template"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/upstream"
)

//go:embed prompts
var promptSources embed.FS

const (
	writeScriptPrompt   = "write_script"
	exploreServerPrompt = "explore_server"
)

// maxPromptTools bounds the tools that a prompt names.
const maxPromptTools = 40

func (s *Server) addPrompts() {
	s.mcp.AddPrompt(&mcp.Prompt{
		Name:        writeScriptPrompt,
		Title:       "Work with scripts",
		Description: "How to do a task with one script instead of many tool calls",
		Arguments: []*mcp.PromptArgument{
			{Name: "task", Title: "Task", Description: "What to do; may be left out"},
			{Name: "session", Title: "Session", Description: "Session to work in; may be left out"},
		},
		Icons: icons(),
	}, s.writeScript)
	s.mcp.AddPrompt(&mcp.Prompt{
		Name:        exploreServerPrompt,
		Title:       "Explore a server",
		Description: "Find out what an MCP server can do, and try it",
		Arguments:   []*mcp.PromptArgument{{Name: "server", Title: "Server", Description: "Name of a configured MCP server", Required: true}},
		Icons:       icons(),
	}, s.exploreServer)
}

func (s *Server) writeScript(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	session := req.Params.Arguments["session"]
	if err := checkSessionName(session); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return prompt("How to work with scripts", "write_script.md", struct{ Task, Session string }{
		Task:    strings.TrimSpace(req.Params.Arguments["task"]),
		Session: session,
	})
}

func (s *Server) exploreServer(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	name := req.Params.Arguments["server"]
	if name == "" {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "server is missing: the name of a configured MCP server"}
	}
	info, err := s.callable(name)
	if err != nil {
		return nil, err
	}
	var tools []string
	if known, ok := s.bridge.upstreams.Known(info.Name); ok {
		aliases := toolAliases(known)
		for _, t := range known {
			tools = append(tools, aliases[t.Name])
		}
	}
	return prompt("Explore "+info.Name, "explore_server.md", struct {
		upstream.Info
		Description  string
		Tools, Shown []string
	}{info, firstLine(info.Description, 300), tools, tools[:min(len(tools), maxPromptTools)]})
}

// prompt fills in one of the files of the directory prompts.
func prompt(description, file string, data any) (*mcp.GetPromptResult, error) {
	tmpl, err := template.ParseFS(promptSources, "prompts/"+file)
	if err != nil {
		return nil, fmt.Errorf("the prompt %s: %w", file, err)
	}
	var text strings.Builder
	if err := tmpl.Execute(&text, data); err != nil {
		return nil, fmt.Errorf("the prompt %s: %w", file, err)
	}
	return &mcp.GetPromptResult{
		Description: description,
		Messages:    []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: text.String()}}},
	}, nil
}
