package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"codeexec/bridge/catalog"
	"codeexec/bridge/upstream"
)

type callFlags struct {
	serverFlags
	json string
	raw  bool
	save string
}

func newCallCommand(std streams, env environment) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call SERVER TOOL [KEY=VALUE...]",
		Short: "Call a tool of a server",
		Long: `Call a tool of a server, and print its result: the structured content as JSON
where there is some, else the text. Pictures and other binary content are named
on standard error, and written to files where --save says.

A value is text where the tool wants a string. Elsewhere it is JSON, such as 3,
true or ["a"], and text if it is no JSON. --json gives all arguments at once.

The exit code is 1 if the tool fails; what it says is on standard error then.`,
		Example: `  codeexec call github create_issue owner=me repo=demo title='A bug'
  codeexec call files read_file --json '{"path": "/data/notes.txt"}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) < 2:
				return usagef(cmd, "name a server and a tool")
			case len(args) > 2 && cmd.Flags().Changed("json"):
				return usagef(cmd, "either --json or KEY=VALUE, not both")
			}
			for _, arg := range args[2:] {
				if key, _, ok := strings.Cut(arg, "="); !ok || key == "" {
					return usagef(cmd, "%q must be KEY=VALUE", arg)
				}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd, args, std, env) },
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.json, "json", "", "the arguments, as a JSON `OBJECT`; - reads it from standard input")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print the whole result of the protocol, as JSON")
	cmd.Flags().StringVar(&f.save, "save", "", "write binary content to files in `DIR`")
	return cmd
}

func (f *callFlags) run(cmd *cobra.Command, args []string, std streams, env environment) (err error) {
	ctx := cmd.Context()
	settings, warnings := env.read(slog.LevelWarn)
	logger := newLogger(std.err, settings, warnings)
	f.only = args[0]
	set, err := f.load(cmd, settings, logger, true)
	if err != nil {
		return err
	}
	manager := openManager(settings, set, logger)
	defer func() { err = errors.Join(err, closeManager(ctx, manager)) }()
	server, tool := args[0], args[1]
	var arguments json.RawMessage
	if cmd.Flags().Changed("json") {
		arguments, err = f.object(cmd, std.in)
	} else {
		arguments, err = pairs(ctx, manager, server, tool, args[2:])
	}
	if err != nil {
		return err
	}
	result, err := manager.Call(ctx, server, tool, arguments)
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return f.print(result, std)
}

// maxArguments bounds what is read of standard input.
const maxArguments = 16 << 20

// object returns the arguments that --json gives.
func (f *callFlags) object(cmd *cobra.Command, in io.Reader) (json.RawMessage, error) {
	text := []byte(f.json)
	if f.json == "-" {
		var err error
		if text, err = io.ReadAll(io.LimitReader(in, maxArguments)); err != nil {
			return nil, fmt.Errorf("reading the arguments: %w", err)
		}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil || object == nil {
		return nil, usagef(cmd, "--json: it must be a JSON object")
	}
	return text, nil
}

// pairs makes arguments of KEY=VALUE. The tool's schema tells which values are text.
func pairs(ctx context.Context, manager *upstream.Manager, server, tool string, pairs []string) (json.RawMessage, error) {
	if len(pairs) == 0 {
		return json.RawMessage("{}"), nil
	}
	tools, err := manager.Tools(ctx, server)
	if err != nil {
		return nil, err
	}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if i := slices.IndexFunc(tools, func(t catalog.Tool) bool { return t.Name == tool }); i >= 0 {
		json.Unmarshal(tools[i].InputSchema, &schema) // a schema that says nothing is as good as none
	}
	arguments := make(map[string]json.RawMessage)
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		arguments[key] = argument(schema.Properties[key], value)
	}
	return json.Marshal(arguments)
}

// argument is the JSON of a value that the schema is for.
func argument(schema json.RawMessage, value string) json.RawMessage {
	if !wantsText(schema) && json.Valid([]byte(value)) {
		return json.RawMessage(value)
	}
	text, _ := json.Marshal(value) // a string
	return text
}

// wantsText reports whether the only values of the schema, besides null, are strings.
func wantsText(schema json.RawMessage) bool {
	var s struct {
		Type  json.RawMessage   `json:"type"`
		Enum  []json.RawMessage `json:"enum"`
		AnyOf []json.RawMessage `json:"anyOf"`
		OneOf []json.RawMessage `json:"oneOf"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return false
	}
	var types []string
	if one := ""; json.Unmarshal(s.Type, &one) == nil {
		types = []string{one}
	} else {
		json.Unmarshal(s.Type, &types) // absent, or a list
	}
	if len(types) > 0 {
		return slices.Contains(types, "string") && !slices.ContainsFunc(types, func(t string) bool { return t != "string" && t != "null" })
	}
	if len(s.Enum) > 0 {
		return !slices.ContainsFunc(s.Enum, func(v json.RawMessage) bool { return v[0] != '"' && string(v) != "null" })
	}
	text := false
	for _, branch := range append(s.AnyOf, s.OneOf...) {
		switch {
		case wantsText(branch):
			text = true
		case !bytes.Contains(branch, []byte(`"null"`)):
			return false
		}
	}
	return text
}

// print writes the result, and reports a tool's failure as an exit status.
func (f *callFlags) print(result *mcp.CallToolResult, std streams) error {
	out := std.out
	if result.IsError {
		out = std.err
	}
	if f.raw {
		encoder := json.NewEncoder(std.out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(result); err != nil {
			return err
		}
	} else if err := f.printContent(result, out, std.err); err != nil {
		return err
	}
	if result.IsError {
		return exitStatus(exitFailure)
	}
	return nil
}

func (f *callFlags) printContent(result *mcp.CallToolResult, out, notes io.Writer) error {
	structured, _ := result.StructuredContent.(json.RawMessage)
	if structured != nil {
		var b bytes.Buffer
		if json.Indent(&b, structured, "", "  ") != nil {
			b.Reset()
			b.Write(structured)
		}
		fmt.Fprintln(out, b.String())
	}
	for _, block := range result.Content {
		var err error
		switch c := block.(type) {
		case *mcp.TextContent:
			if structured == nil { // else it is the same in other words
				fmt.Fprintln(out, strings.TrimSuffix(c.Text, "\n"))
			}
		case *mcp.ImageContent:
			err = f.binary(notes, "image", c.MIMEType, c.Data)
		case *mcp.AudioContent:
			err = f.binary(notes, "audio", c.MIMEType, c.Data)
		case *mcp.ResourceLink:
			fmt.Fprintln(out, c.URI)
		case *mcp.EmbeddedResource:
			if r := c.Resource; r != nil && r.Blob != nil {
				err = f.binary(notes, "resource", r.MIMEType, r.Blob)
			} else if r != nil {
				fmt.Fprintln(out, strings.TrimSuffix(r.Text, "\n"))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// binary keeps binary content, or says that there is some.
func (f *callFlags) binary(notes io.Writer, kind, mimeType string, data []byte) error {
	what := fmt.Sprintf("%s (%s, %d bytes)", kind, oneLine(cmp.Or(mimeType, "of no type"), 60), len(data))
	if f.save == "" {
		fmt.Fprintf(notes, "codeexec: %s is not shown; --save DIR keeps it\n", what)
		return nil
	}
	if err := os.MkdirAll(f.save, 0o700); err != nil {
		return err
	}
	for n := 1; ; n++ {
		path := filepath.Join(f.save, fmt.Sprintf("%s-%d%s", kind, n, extension(mimeType)))
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		fmt.Fprintf(notes, "codeexec: %s is in %s\n", what, path)
		return nil
	}
}

// extension is the ending of a file's name that its type is known by. Package mime asks the machine, and gives
// several.
func extension(mimeType string) string {
	mimeType, _, _ = strings.Cut(strings.ToLower(mimeType), ";")
	switch strings.TrimSpace(mimeType) {
	case "image/png":
		return ".png"
	case "image/jpeg":
		return ".jpg"
	case "image/gif":
		return ".gif"
	case "image/webp":
		return ".webp"
	case "image/svg+xml":
		return ".svg"
	case "audio/wav", "audio/x-wav", "audio/wave":
		return ".wav"
	case "audio/mpeg":
		return ".mp3"
	case "audio/ogg":
		return ".ogg"
	case "application/pdf":
		return ".pdf"
	case "application/zip":
		return ".zip"
	}
	return ".bin"
}
