package bridge

import (
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/artifact"
	"codeexec/wasmhost"
)

// How many of the files that a run saved an answer lists, and how long their names may be together.
const (
	maxAnswerFiles = 20
	maxFileNames   = 8 << 10
)

// A FileInfo describes a file that a run saved.
type FileInfo struct {
	Name     string `json:"name"` // in the run's folder
	URI      string `json:"uri"`  // the resource to read it by
	URL      string `json:"url"`  // file:// on the host
	MIMEType string `json:"mime_type,omitempty"`
	Size     int64  `json:"size"` // in bytes
}

// answerFiles returns the files that an answer lists, the bytes that this takes as text, and how many are left out.
func answerFiles(files []artifact.File) (list []FileInfo, bytes, omitted int) {
	for i, f := range files {
		names := len(f.Name) + len(executionURI(f.Path)) + len(f.URL)
		if len(list) == maxAnswerFiles || bytes+names > maxFileNames {
			return list, bytes, len(files) - i
		}
		bytes += names + 100
		list = append(list, FileInfo{Name: f.Name, URI: executionURI(f.Path), URL: f.URL, MIMEType: fileType(f.Name), Size: f.Size})
	}
	return list, bytes, 0
}

// content returns the content of an answer in a version of the protocol: the text, the images in the order in which
// the script showed them, then links to what there is no room for and to what was saved. keep is how long whole
// texts can be read.
func (r *RunResult) content(text, version string, keep time.Duration) []mcp.Content {
	content := []mcp.Content{&mcp.TextContent{Text: text}}
	for i, data := range r.pictures {
		content = append(content, &mcp.ImageContent{Data: data, MIMEType: r.Images[i].MIMEType})
	}
	if version < linksVersion {
		return content
	}
	for _, w := range r.Whole {
		content = append(content, &mcp.ResourceLink{
			URI:         w.URI,
			Name:        w.Name,
			Title:       "Whole " + w.Name,
			Description: fmt.Sprintf("All that the answer has no room for; kept for %s, as far as memory allows", longTime(keep)),
			MIMEType:    "text/plain",
			Size:        &w.Size,
		})
	}
	for _, f := range r.Files {
		content = append(content, &mcp.ResourceLink{
			URI:         f.URI,
			Name:        f.Name,
			Description: "Saved by the script: " + f.URL,
			MIMEType:    f.MIMEType,
			Size:        &f.Size,
		})
	}
	return content
}

// transcript is what the file output.txt in a run's folder says.
func transcript(out *wasmhost.Result) string {
	var b strings.Builder
	b.WriteString(wholePrintable(out.Stdout))
	named := func(name, text string) {
		if text != "" {
			if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
				b.WriteString("\n")
			}
			fmt.Fprintf(&b, "--- %s\n%s", name, text)
		}
	}
	named("stderr", wholePrintable(out.Stderr))
	if out.Exception != nil {
		named("traceback", wholePrintable(wholeOutput(out.Exception.Traceback)))
	}
	named("result", wholePrintable(wholeOutput(out.Value)))
	if b.Len() > 0 && !strings.HasSuffix(b.String(), "\n") {
		b.WriteString("\n")
	}
	return b.String()
}
