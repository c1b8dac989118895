package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pixel is a PNG of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// wave is a WAV of no sample.
var wave = []byte("RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00D\xac\x00\x00\x88X\x01\x00\x02\x00\x10\x00data\x00\x00\x00\x00")

type arguments map[string]json.RawMessage

// text returns a string argument, or the JSON of another one.
func (a arguments) text(key string) string {
	var s string
	if json.Unmarshal(a[key], &s) == nil {
		return s
	}
	return string(a[key])
}

func (a arguments) number(key string) float64 {
	var n float64
	json.Unmarshal(a[key], &n)
	return n
}

type handler func(ctx context.Context, req *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error)

func texts(list ...string) *mcp.CallToolResult {
	result := &mcp.CallToolResult{Content: []mcp.Content{}}
	for _, s := range list {
		result.Content = append(result.Content, &mcp.TextContent{Text: s})
	}
	return result
}

func content(blocks ...mcp.Content) handler {
	return func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: blocks}, nil
	}
}

// An object is the schema of one, in the order that is written.
func object(properties string, required ...string) json.RawMessage {
	if required == nil {
		required = []string{}
	}
	list, _ := json.Marshal(required)
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s},"required":%s}`, properties, list))
}

var (
	anything  = json.RawMessage(`{"type":"object"}`)
	nothing   = object(``)
	pixelData = func() []byte { data, _ := base64.StdEncoding.DecodeString(pixel); return data }()
)

func addTools(server *mcp.Server, o options, s *seen) {
	add := func(name, description string, input, output json.RawMessage, h handler, hints ...*mcp.ToolAnnotations) {
		tool := &mcp.Tool{Name: name, Description: description, InputSchema: input}
		if output != nil {
			tool.OutputSchema = output
		}
		for _, hint := range hints {
			tool.Annotations = hint
		}
		server.AddTool(tool, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			var args arguments
			if len(req.Params.Arguments) > 0 {
				if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
					return nil, err
				}
			}
			return h(ctx, req, args)
		})
	}
	readOnly := &mcp.ToolAnnotations{ReadOnlyHint: true, Title: "Read only"}
	yes := true
	destructive := &mcp.ToolAnnotations{DestructiveHint: &yes}

	add("echo", "Returns its arguments as JSON text, as they came.", anything, nil,
		func(_ context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, error) {
			return texts(string(req.Params.Arguments)), nil
		}, readOnly)
	add("say", "Returns text.", object(`"text":{"type":"string","description":"What to say"}`, "text"), nil,
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			return texts(args.text("text")), nil
		})
	add("add", "Adds two numbers.",
		object(`"a":{"type":"number"},"b":{"type":"number"}`, "a", "b"),
		object(`"sum":{"type":"number"}`, "sum"),
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			return structured(fmt.Sprintf(`{"sum":%v}`, args.number("a")+args.number("b"))), nil
		})
	add("sleep", "Sleeps for ms milliseconds, or until it is cancelled.",
		object(`"ms":{"type":"integer"},"id":{"type":"string"}`, "ms"), nil,
		func(ctx context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			running := s.running.Add(1)
			defer s.running.Add(-1)
			for most := s.most.Load(); running > most && !s.most.CompareAndSwap(most, running); most = s.most.Load() {
			}
			select {
			case <-time.After(time.Duration(args.number("ms")) * time.Millisecond):
				return texts("slept" + args.text("id")), nil
			case <-ctx.Done():
				s.cancelled.Add(1)
				return nil, ctx.Err()
			}
		})
	add("block", "Never returns, whatever happens.", nothing, nil,
		func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) { select {} })
	add("cancelled", "Says how many calls of sleep were cancelled, and how many ran at a time.", nothing,
		object(`"cancelled":{"type":"integer"},"most":{"type":"integer"}`),
		func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
			return structured(fmt.Sprintf(`{"cancelled":%d,"most":%d}`, s.cancelled.Load(), s.most.Load())), nil
		})

	add("fail", "Fails.", object(`"message":{"type":"string"}`), nil,
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			message := args.text("message")
			if message == "" {
				message = "it failed"
			}
			result := texts(message)
			result.IsError = true
			return result, nil
		}, destructive)
	add("protocol-error", "Answers with a JSON-RPC error.", nothing, nil,
		func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
			return nil, errProtocol
		})
	add("crash", "Exits in the middle of the call.", object(`"status":{"type":"integer"},"signal":{"type":"boolean"}`), nil,
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			fmt.Fprintln(os.Stderr, "panic: the stub crashes")
			if args.text("signal") == "true" {
				p, _ := os.FindProcess(os.Getpid())
				p.Kill()
				select {}
			}
			os.Exit(int(args.number("status")))
			return nil, nil
		}, destructive)
	add("malformed", "Answers with a line that isn't valid MCP.",
		object(`"kind":{"enum":["content","type","deep","panic","version","long","longer"]},"bytes":{"type":"integer"}`), nil,
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			return nil, malformed(args.text("kind"), int(args.number("bytes")))
		})

	image := &mcp.ImageContent{Data: pixelData, MIMEType: "image/png"}
	audio := &mcp.AudioContent{Data: wave, MIMEType: "audio/wav"}
	text := &mcp.TextContent{Text: "text"}
	embedded := &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "stub://note", MIMEType: "text/plain", Text: "a note"}}
	blob := &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{URI: "stub://blob", MIMEType: "application/octet-stream", Blob: []byte{0, 1, 2, 255}}}
	link := &mcp.ResourceLink{URI: "file:///tmp/report.pdf", Name: "report", Title: "The report", MIMEType: "application/pdf", Description: "A report"}
	add("image", "Returns a picture.", nothing, nil, content(image))
	add("audio", "Returns a sound.", nothing, nil, content(audio))
	add("resource", "Returns a text resource.", nothing, nil, content(embedded))
	add("blob", "Returns a binary resource.", nothing, nil, content(blob))
	add("link", "Returns a link to a resource.", nothing, nil, content(link))
	add("several", "Returns one block of each kind.", nothing, nil, content(text, image, audio, embedded, blob, link))
	add("two-texts", "Returns two texts.", nothing, nil, content(text, &mcp.TextContent{Text: "more"}))
	add("nothing", "Returns no content.", nothing, nil, content([]mcp.Content{}...))
	add("empty-text", "Returns an empty text.", nothing, nil, content(&mcp.TextContent{}))
	add("json-object", "Returns a JSON object as text.", nothing, nil, content(&mcp.TextContent{Text: `{"id": 7, "items": [1, 2]}`}))
	add("json-array", "Returns a JSON array as text.", nothing, nil, content(&mcp.TextContent{Text: `[1, {"a": null}]`}))
	add("json-text", "Returns text that is a JSON number.", nothing, nil, content(&mcp.TextContent{Text: `42`}))

	add("structured", "Returns structured content of some kind.",
		object(`"kind":{"enum":["null","zero","false","empty","list","empty-list","object","big","bare","with-image"]}`, "kind"), nil,
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			values := map[string]string{
				"null": `null`, "zero": `0`, "false": `false`, "empty": `""`, "list": `[1, 2, 3]`, "empty-list": `[]`,
				"object": `{"id": 1, "nested": {"list": [{"x": "y"}]}}`,
				"big":    `{"id": 12345678901234567890, "pi": 3.141592653589793238462643383279, "e": 1E400}`,
			}
			switch kind := args.text("kind"); kind {
			case "bare": // without content, which isn't even allowed
				return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"only": "here"}`)}, nil
			case "with-image":
				return &mcp.CallToolResult{Content: []mcp.Content{image}, StructuredContent: json.RawMessage(`{"shown": true}`)}, nil
			default:
				return structured(values[kind]), nil
			}
		})
	add("wrapped", "Returns a number, wrapped as servers made with FastMCP do.", nothing,
		json.RawMessage(`{"type":"object","properties":{"result":{"type":"integer"}},"required":["result"],"x-fastmcp-wrap-result":true}`),
		func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
			return structured(`{"result":42}`), nil
		})

	ok := func(_ context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, error) {
		return texts(req.Params.Name), nil
	}
	for _, name := range []string{"list-items", "get.value", "class", "camelCase", "list_tools", "__class__", "3d", "a/b", "日本"} {
		add(name, "Returns its own name.", nothing, nil, ok)
	}
	add("keywords", "Has parameters that Python can't spell.",
		object(`"opt":{"type":["integer","null"],"default":1},"from":{"type":"string"},"class":{"anyOf":[{"type":"integer"},{"type":"null"}]},`+
			`"cik-A":{"type":"number"},"timeout":{"type":"integer"}`, "from", "cik-A"), nil,
		func(_ context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, error) {
			return structured(string(req.Params.Arguments)), nil
		})
	add("large", "Returns a text of a given length.", object(`"bytes":{"type":"integer"}`, "bytes"), nil,
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			return texts(strings.Repeat("x", int(args.number("bytes")))), nil
		}, readOnly)

	add("env", "Returns the server's environment.", nothing, nil,
		func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
			env := os.Environ()
			slices.Sort(env)
			data, err := json.Marshal(map[string]any{"env": env})
			return structured(string(data)), err
		})
	add("process", "Returns the server's process id and working directory.", nothing, nil,
		func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
			dir, err := os.Getwd()
			data, _ := json.Marshal(map[string]any{"pid": os.Getpid(), "cwd": dir, "args": os.Args[1:]})
			return structured(string(data)), err
		})
	add("log", "Sends a log message, and a progress notification if there is a token.", nothing, nil,
		func(ctx context.Context, req *mcp.CallToolRequest, _ arguments) (*mcp.CallToolResult, error) {
			//lint:ignore SA1019 real servers do it for years to come
			req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: "hello"})
			if token := req.Params.GetProgressToken(); token != nil {
				req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 0.5, Message: "half"})
			}
			return texts("logged"), nil
		})
	add("client", "Returns the parameters of the client's initialize, if it sent that.", nothing, nil,
		func(context.Context, *mcp.CallToolRequest, arguments) (*mcp.CallToolResult, error) {
			if params := greeting.Load(); params != nil {
				return structured(string(*params)), nil
			}
			return texts(), nil
		})
	add("add-tool", "Adds a tool, and says that the list has changed.", object(`"name":{"type":"string"}`, "name"), nil,
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			add(args.text("name"), "Was added.", nothing, nil, ok)
			return texts("added"), nil
		})
	add("spawn", "Starts a process that outlives its parent.", object(`"how":{"enum":["group","session"]}`), nil,
		func(_ context.Context, _ *mcp.CallToolRequest, args arguments) (*mcp.CallToolResult, error) {
			return texts("spawned"), spawn(o, args.text("how"))
		})
	for i := range o.tools {
		add(fmt.Sprintf("tool_%04d", i), fmt.Sprintf("Tool number %d.", i), nothing, nil, ok)
	}
}

// structured returns structured content with its own text beside it. The text
// is given as raw JSON: the SDK leaves out what it takes for empty.
func structured(value string) *mcp.CallToolResult {
	result := texts(value)
	result.StructuredContent = json.RawMessage(value)
	return result
}

// malformed writes an answer that isn't one to stdout. The id is that of the
// only request in flight, which the SDK doesn't tell. size is in bytes.
func malformed(kind string, size int) error {
	id := lastCall.Load()
	line := func(result string) string {
		return fmt.Sprintf(`{"result":%s,"jsonrpc":"2.0","id":%d}`, result, id)
	}
	var text string
	switch kind {
	case "content":
		text = line(`{"content":"text"}`)
	case "type":
		text = line(`{"content":[{"type":"hologram"}]}`)
	case "deep":
		text = line(`{"content":[],"structuredContent":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`)
	case "version":
		text = fmt.Sprintf(`{"result":{"content":[]},"jsonrpc":"3.0","id":%d}`, id)
	case "panic": // what broke an SDK
		text = line(`{"content":[],"inputRequests":{"a":null}}`)
	case "long":
		text = line(`{"content":[{"type":"text","text":"` + strings.Repeat("x", size) + `"}]}`)
	case "longer": // and hard to see through
		text = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"%s"}]}}`,
			id, strings.Repeat(`{\"id\":1,`, size/8))
	}
	os.Stdout.WriteString(text + "\n")
	select {} // the SDK must not answer too
}
