package bridge

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/suggest"
)

//go:embed run_python.md
var toolDescription string

// toolName is the one tool that clients see.
const toolName = "run_python"

// object abbreviates a JSON object in a schema.
type object = map[string]any

// runPythonTool describes the tool under the limits of opts. Nothing in it depends on the configured
// servers: a client that caches it, or pays for it in each conversation, has it once and for all.
func runPythonTool(opts Options) *mcp.Tool {
	yes := true
	return &mcp.Tool{
		Name:        toolName,
		Title:       "Run Python",
		Description: strings.TrimSpace(toolDescription),
		Icons:       icons(),
		Annotations: &mcp.ToolAnnotations{
			Title: "Run Python",
			// A script can do whatever the configured servers can, in the world outside too.
			ReadOnlyHint:    false,
			DestructiveHint: &yes,
			IdempotentHint:  false,
			OpenWorldHint:   &yes,
		},
		// Some clients cut results much below what we send unless they are told.
		Meta: mcp.Meta{"anthropic/maxResultSizeChars": 2*opts.OutputBytes + 4<<10},
		InputSchema: object{
			"type": "object",
			"properties": object{
				"code": object{"type": "string", "description": "Python source"},
				"servers": object{
					"type": "array", "items": object{"type": "string"},
					"description": "Only these MCP servers may be called; default: all",
				},
				"timeout": object{
					"type": "integer", "minimum": 1,
					"default":     int(opts.Timeout / time.Second),
					"description": fmt.Sprintf("Seconds, at most %d", int(opts.MaxTimeout/time.Second)),
				},
				"session": object{"type": "string", "default": DefaultSession, "description": "Variables are kept per session"},
				"reset":   object{"type": "boolean", "default": false, "description": "Start the session anew"},
			},
			"required":             []string{"code"},
			"additionalProperties": false,
		},
		OutputSchema: object{
			"type": "object",
			"properties": object{
				"status":    object{"enum": []Status{StatusSuccess, StatusError, StatusTimeout, StatusCancelled, StatusInvalid}},
				"summary":   object{"type": "string"},
				"exit_code": object{"type": "integer"},
				"stdout":    object{"type": "string"},
				"stderr":    object{"type": "string"},
				"result":    object{"type": "string", "description": "repr of the last expression"},
				"error": object{
					"type": "object",
					"properties": object{
						"type":      object{"type": "string"},
						"message":   object{"type": "string"},
						"line":      object{"type": "integer"},
						"cell":      object{"type": "integer"},
						"traceback": object{"type": "string"},
					},
				},
				"servers":       object{"type": "array", "items": object{"type": "string"}},
				"session":       object{"type": "string"},
				"session_state": object{"enum": []string{SessionKept, SessionReset}},
				"tool_calls":    object{"type": "integer"},
				"calls": object{
					"type": "array",
					"items": object{
						"type": "object",
						"properties": object{
							"server":  object{"type": "string"},
							"tool":    object{"type": "string"},
							"outcome": object{"type": "string"},
							"ms":      object{"type": "integer"},
						},
					},
				},
				"images": object{
					"type":        "array",
					"description": "Those in the content, in order",
					"items": object{
						"type": "object",
						"properties": object{
							"mime_type": object{"type": "string"},
							"width":     object{"type": "integer"},
							"height":    object{"type": "integer"},
							"bytes":     object{"type": "integer"},
							"file":      object{"type": "string"},
							"url":       object{"type": "string"},
						},
					},
				},
				"files": object{
					"type":        "array",
					"description": "That the code saved",
					"items": object{
						"type": "object",
						"properties": object{
							"name":      object{"type": "string"},
							"uri":       object{"type": "string"},
							"url":       object{"type": "string"},
							"mime_type": object{"type": "string"},
							"size":      object{"type": "integer"},
						},
					},
				},
				"truncated":   object{"type": "boolean"},
				"duration_ms": object{"type": "integer"},
			},
			"required": []string{"status", "exit_code"},
		},
	}
}

// maxArgumentServers bounds the list of servers of a request.
const maxArgumentServers = 1000

// parseArguments reads the arguments of run_python. An argument that is null counts as absent, since many
// clients send all that a schema has. The error is for the caller of the tool to read.
func parseArguments(raw json.RawMessage) (RunRequest, error) {
	var req RunRequest
	args := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &args); err != nil {
			return req, errors.New("the arguments are not a JSON object")
		}
	}
	maps.DeleteFunc(args, func(_ string, v json.RawMessage) bool { return string(v) == "null" })

	known := []string{"code", "servers", "timeout", "session", "reset"}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if slices.Contains(known, name) {
			continue
		}
		shown := firstLine(name, 100)
		if matches := suggest.Names(name, known); len(matches) > 0 {
			return req, fmt.Errorf("unknown argument %q: did you mean %q?", shown, matches[0])
		}
		return req, fmt.Errorf("unknown argument %q: the arguments are %s", shown, quoteList(known))
	}
	read := func(name string, into any, want string) error {
		v, ok := args[name]
		if !ok {
			return nil
		}
		if err := json.Unmarshal(v, into); err != nil {
			return fmt.Errorf("%s must be %s, not %s", name, want, firstLine(string(v), 60))
		}
		return nil
	}
	var timeout *float64
	if err := errors.Join(
		read("code", &req.Code, "a string"),
		read("servers", &req.Servers, `a list of strings, such as ["github"]`),
		read("timeout", &timeout, "a number of seconds"),
		read("session", &req.Session, "a string"),
		read("reset", &req.Reset, "true or false"),
	); err != nil {
		return req, errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if _, ok := args["code"]; !ok {
		return req, errors.New("code is missing: the Python source to run")
	}
	if len(req.Servers) > maxArgumentServers {
		return req, fmt.Errorf("servers has %d names, above the limit of %d", len(req.Servers), maxArgumentServers)
	}
	if timeout != nil {
		switch t := *timeout; {
		case t != math.Trunc(t):
			return req, fmt.Errorf("timeout must be a whole number of seconds, not %v", t)
		case t < 1:
			return req, errTimeoutTooShort
		default:
			req.Timeout = time.Duration(min(t, 1e9)) * time.Second // beyond any maximum, short of an overflow
		}
	}
	return req, nil
}
