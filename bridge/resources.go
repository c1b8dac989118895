package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/artifact"
	"codeexec/bridge/upstream"
)

// The resources. Names in their addresses are percent-encoded.
const (
	serversURI    = "codeexec://servers"
	sessionsURI   = "codeexec://sessions"
	runsURI       = "codeexec://runs"
	executionsURI = "codeexec://executions"

	stubsTemplate     = serversURI + "/{server}/stubs.pyi"
	sessionTemplate   = sessionsURI + "/{session}"
	runTemplate       = runsURI + "/{run}/{text}"
	executionTemplate = executionsURI + "/{+path}"
)

// How much resources/list shows of what comes and goes.
const (
	maxListedRuns  = 20
	maxListedFiles = 100
)

// maxResourceFile bounds a file that is read as a resource, in bytes.
const maxResourceFile = 16 << 20

// runURI is the resource that holds a text of a run.
func runURI(id, name string) string { return runsURI + "/" + id + "/" + name }

// stubsURI is the resource that holds the Python signatures of a server.
func stubsURI(server string) string { return serversURI + "/" + escapeName(server) + "/stubs.pyi" }

// escapeName writes a name so that it is one variable of a URI template.
func escapeName(name string) string { return strings.ReplaceAll(url.QueryEscape(name), "+", "%20") }

func (s *Server) addResources() {
	for _, r := range []struct {
		resource mcp.Resource
		read     mcp.ResourceHandler
	}{
		{mcp.Resource{
			URI:         CapabilitiesURI,
			Name:        "capabilities",
			Title:       "What scripts can do",
			Description: "How to find and call tools from Python, with examples and the limits in force",
			MIMEType:    "text/markdown",
		}, s.readCapabilities},
		{mcp.Resource{
			URI:         serversURI,
			Name:        "servers",
			Title:       "MCP servers that scripts can call",
			Description: "Name, alias, description and status of each",
			MIMEType:    "application/json",
		}, s.readServers},
		{mcp.Resource{
			URI:         sessionsURI,
			Name:        "sessions",
			Title:       "Sessions of run_python",
			Description: "Which sessions are alive, which of them are busy, and when idle ones expire",
			MIMEType:    "application/json",
		}, s.readSessions},
		{mcp.Resource{
			URI:         runsURI,
			Name:        "runs",
			Title:       "Recent runs",
			Description: "The runs whose whole output can still be read, newest first",
			MIMEType:    "application/json",
		}, s.readRuns},
		{mcp.Resource{
			URI:         executionsURI,
			Name:        "executions",
			Title:       "Files that scripts saved",
			Description: "The files under /projects/executions, newest folder first",
			MIMEType:    "application/json",
		}, s.readExecutions},
	} {
		s.mcp.AddResource(&r.resource, r.read)
	}
	for _, t := range []struct {
		template mcp.ResourceTemplate
		read     mcp.ResourceHandler
	}{
		{mcp.ResourceTemplate{
			URITemplate: stubsTemplate,
			Name:        "stubs",
			Title:       "Python signatures of a server's tools",
			MIMEType:    "text/x-python",
		}, s.readStubs},
		{mcp.ResourceTemplate{
			URITemplate: sessionTemplate,
			Name:        "session",
			Title:       "A session of run_python",
			MIMEType:    "application/json",
		}, s.readSession},
		{mcp.ResourceTemplate{
			URITemplate: runTemplate,
			Name:        "output",
			Title:       "Whole output of a run",
			Description: "text is stdout, stderr, result or traceback",
			MIMEType:    "text/plain",
		}, s.readRun},
		{mcp.ResourceTemplate{
			URITemplate: executionTemplate,
			Name:        "execution-file",
			Title:       "A file that a script saved",
		}, s.readExecution},
	} {
		s.mcp.AddResourceTemplate(&t.template, t.read)
	}
	s.mcp.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if list, ok := result.(*mcp.ListResourcesResult); ok && err == nil && list.NextCursor == "" {
				list.Resources = append(list.Resources, s.changingResources(ownerOf(req))...)
			}
			return result, err
		}
	})
}

// changingResources lists what comes and goes, in this order: the signatures of servers that are known, by
// name; the texts of the newest runs; the newest files that scripts saved.
func (s *Server) changingResources(owner string) []*mcp.Resource {
	var list []*mcp.Resource
	for _, info := range s.bridge.upstreams.Servers() {
		if info.Tools >= 0 && info.Status != upstream.StatusDisabled {
			list = append(list, &mcp.Resource{
				URI:         stubsURI(info.Name),
				Name:        info.Alias + ".pyi",
				Title:       fmt.Sprintf("Python signatures of %s", info.Name),
				Description: firstLine(info.Description, 200),
				MIMEType:    "text/x-python",
			})
		}
	}
	runs := s.bridge.Runs(owner)
	for _, run := range runs[:min(len(runs), maxListedRuns)] {
		for _, name := range []string{textStdout, textStderr, textResult, textTraceback} {
			if size, ok := run.Sizes[name]; ok {
				list = append(list, &mcp.Resource{
					URI:      runURI(run.ID, name),
					Name:     name,
					Title:    fmt.Sprintf("%s of the run in session %q at %s", name, run.Session, run.Ended.Format(time.TimeOnly)),
					MIMEType: "text/plain",
					Size:     int64(size),
				})
			}
		}
	}
	files, err := s.bridge.executionFiles()
	if err != nil {
		s.opts.Logger.Warn("listing the files that scripts saved", "error", err)
	}
	for _, f := range files[:min(len(files), maxListedFiles)] {
		list = append(list, &mcp.Resource{
			URI:         f.URI,
			Name:        path.Base(f.Path),
			Title:       f.Path,
			MIMEType:    f.MIMEType,
			Size:        f.Size,
			Annotations: &mcp.Annotations{LastModified: f.Modified.Format(time.RFC3339)},
		})
	}
	return list
}

// cacheHints says how long answers may be reused, and by whom.
func cacheHints(_ context.Context, req mcp.Request, c *mcp.Cacheable) {
	const fixed = 5 * time.Minute // what only changes with the program and its settings
	c.CacheScope = "private"
	switch r := req.(type) {
	case *mcp.ListToolsRequest, *mcp.ListPromptsRequest, *mcp.ListResourceTemplatesRequest, *mcp.ServerRequest[*mcp.DiscoverParams]:
		c.CacheScope, c.TTLMs = "public", int(fixed.Milliseconds())
	case *mcp.ReadResourceRequest:
		switch uri := r.Params.URI; {
		case uri == CapabilitiesURI:
			c.CacheScope, c.TTLMs = "public", int(fixed.Milliseconds())
		case strings.HasPrefix(uri, runsURI+"/"):
			c.TTLMs = int(DefaultKeepOutput.Milliseconds()) // a run that is over doesn't change
		}
	}
}

// textResource is the answer to the reading of a text. Its type is that of the resource.
func textResource(uri, mimeType, text string) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: mimeType, Text: text}}}, nil
}

func jsonResource(uri string, v any) (*mcp.ReadResourceResult, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", uri, err)
	}
	return textResource(uri, "application/json", string(text))
}

// variables returns the variables of an address, which are what is between its slashes.
func variables(uri, prefix string) []string {
	parts := strings.Split(strings.TrimPrefix(uri, prefix+"/"), "/")
	for i, part := range parts {
		if plain, err := url.PathUnescape(part); err == nil {
			parts[i] = plain
		}
	}
	return parts
}

func (s *Server) readCapabilities(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return textResource(CapabilitiesURI, "text/markdown", s.bridge.Capabilities())
}

func (s *Server) readServers(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return jsonResource(serversURI, s.bridge.handler.listServers())
}

func (s *Server) readSessions(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return jsonResource(sessionsURI, struct {
		Limit    int           `json:"limit"`
		Sessions []SessionInfo `json:"sessions"`
	}{s.bridge.opts.OwnSessions, s.bridge.Sessions(ownerOf(req))})
}

func (s *Server) readSession(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	name := strings.Join(variables(req.Params.URI, sessionsURI), "/")
	for _, info := range s.bridge.Sessions(ownerOf(req)) {
		if info.Name == name {
			return jsonResource(req.Params.URI, info)
		}
	}
	return nil, mcp.ResourceNotFoundError(req.Params.URI)
}

func (s *Server) readRuns(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return jsonResource(runsURI, struct {
		Runs []RunInfo `json:"runs"`
	}{s.bridge.Runs(ownerOf(req))})
}

func (s *Server) readRun(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	if v := variables(req.Params.URI, runsURI); len(v) == 2 {
		if text, ok := s.bridge.runs.text(ownerOf(req), v[0], v[1]); ok {
			return textResource(req.Params.URI, "text/plain", text)
		}
	}
	return nil, mcp.ResourceNotFoundError(req.Params.URI)
}

func (s *Server) readStubs(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	name := variables(req.Params.URI, serversURI)[0]
	info, err := s.callable(name)
	if err != nil {
		return nil, err
	}
	text, err := s.bridge.stubs(ctx, info.Name)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: fmt.Sprintf("the signatures of %q: %v", info.Name, err)}
	}
	return textResource(req.Params.URI, "text/x-python", text)
}

// callable finds a server by its name or alias among those that scripts can call. The error is for the client.
func (s *Server) callable(name string) (upstream.Info, error) {
	known := slices.DeleteFunc(s.bridge.upstreams.Servers(), func(info upstream.Info) bool { return info.Status == upstream.StatusDisabled })
	info, ok := findServer(known, name)
	if !ok {
		return info, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: unknownServer(name, serverNames(known))}
	}
	return info, nil
}

// An executionFile is a file that a script saved.
type executionFile struct {
	URI      string    `json:"uri"`
	Path     string    `json:"path"` // under /projects/executions
	MIMEType string    `json:"mime_type,omitempty"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

func (s *Server) readExecutions(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	files, err := s.bridge.executionFiles()
	if err != nil {
		return nil, err
	}
	return jsonResource(executionsURI, struct {
		Files []executionFile `json:"files"`
	}{files})
}

// maxExecutionFiles bounds how many files are looked at: scripts make them.
const maxExecutionFiles = 10_000

// executionFiles lists the regular files that scripts saved, by folder, the newest folder first.
func (b *Bridge) executionFiles() ([]executionFile, error) {
	files := []executionFile{}
	if b.opts.Projects == "" {
		return files, nil
	}
	root, err := os.OpenRoot(b.opts.Projects)
	if err != nil {
		return files, fmt.Errorf("opening the directory of /projects: %w", err)
	}
	defer root.Close()
	newest := map[string]time.Time{} // by folder
	err = fs.WalkDir(root.FS(), artifact.Dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil // one that can't be read, or a folder; what else there is still counts
		}
		if len(files) == maxExecutionFiles {
			return fs.SkipAll
		}
		info, err := entry.Info()
		if err != nil {
			return nil
		}
		name = strings.TrimPrefix(name, artifact.Dir+"/")
		if !utf8.ValidString(name) {
			return nil
		}
		files = append(files, executionFile{
			URI:      executionURI(name),
			Path:     name,
			MIMEType: fileType(name),
			Size:     info.Size(),
			Modified: info.ModTime().UTC().Truncate(time.Second),
		})
		folder, _, _ := strings.Cut(name, "/")
		if t := info.ModTime(); t.After(newest[folder]) {
			newest[folder] = t
		}
		return nil
	})
	slices.SortStableFunc(files, func(x, y executionFile) int {
		fx, _, _ := strings.Cut(x.Path, "/")
		fy, _, _ := strings.Cut(y.Path, "/")
		if c := newest[fy].Compare(newest[fx]); c != 0 {
			return c
		}
		return strings.Compare(x.Path, y.Path)
	})
	return files, err
}

// executionURI is the resource that is a file that a script saved.
func executionURI(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = escapeName(part)
	}
	return executionsURI + "/" + strings.Join(parts, "/")
}

func (s *Server) readExecution(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	name := strings.Join(variables(uri, executionsURI), "/")
	data, err := s.bridge.executionFile(name)
	switch {
	case errors.Is(err, errFileTooLarge):
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s: the file is larger than %d MiB", name, maxResourceFile>>20)}
	case err != nil:
		return nil, mcp.ResourceNotFoundError(uri)
	}
	contents := &mcp.ResourceContents{URI: uri, MIMEType: fileType(name)}
	if utf8.Valid(data) && !slices.Contains(data, 0) {
		if contents.Text = string(data); contents.MIMEType == "" {
			contents.MIMEType = "text/plain"
		}
	} else if contents.Blob = data; contents.MIMEType == "" {
		contents.MIMEType = "application/octet-stream"
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// fileType is the MIME type of a file by its name, empty if that doesn't say. What scripts write most is the same
// on all machines.
func fileType(name string) string {
	switch extension := strings.ToLower(path.Ext(name)); extension {
	case ".csv":
		return "text/csv"
	case ".md":
		return "text/markdown"
	case ".py":
		return "text/x-python"
	case ".txt", ".log":
		return "text/plain"
	default:
		return mime.TypeByExtension(extension)
	}
}

// executionFile reads a file that a script saved. Nothing outside of the directory can be read by any name, nor
// by a symbolic link.
func (b *Bridge) executionFile(name string) ([]byte, error) {
	if b.opts.Projects == "" || !fs.ValidPath(name) {
		return nil, fs.ErrNotExist
	}
	projects, err := os.OpenRoot(b.opts.Projects)
	if err != nil {
		return nil, err
	}
	defer projects.Close()
	root, err := projects.OpenRoot(artifact.Dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := readRegular(root, name, maxResourceFile)
	if errors.Is(err, errNotRegular) {
		return nil, fs.ErrNotExist
	}
	return data, err
}

var (
	errNotRegular   = errors.New("not a file")
	errFileTooLarge = errors.New("the file is too large")
)

// readRegular reads a file of at most limit bytes, in whose place scripts may have put anything. The error is
// errNotRegular or errFileTooLarge, or of the file system.
func readRegular(root *os.Root, name string, limit int64) ([]byte, error) {
	switch info, err := root.Stat(name); { // before it is opened: opening a pipe may wait for ever
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNotRegular
	case info.Size() > limit:
		return nil, errFileTooLarge
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errFileTooLarge
	}
	return data, err
}
