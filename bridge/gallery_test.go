package bridge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/artifact"
	"codeexec/bridge/picture"
	"codeexec/hostfuncs"
	"codeexec/wasmhost"
)

// pngOf returns a PNG of about the given size in bytes, whose pixels are noise.
func pngOf(t testing.TB, size int) []byte {
	t.Helper()
	side := 1
	for side*side < size {
		side++
	}
	img := image.NewGray(image.Rect(0, 0, side, side))
	random := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = byte(random.Uint32())
	}
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func wide(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, picture.MaxSide+1, 1))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A shown is a text that a script prints, or a picture that it shows.
type shown struct {
	text    string
	picture []byte
}

// showing is a script that prints and shows things in order.
func showing(things ...shown) script {
	return func(_ context.Context, _ *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
		var out strings.Builder
		for _, s := range things {
			out.WriteString(s.text)
			if s.picture != nil {
				out.WriteString(req.Show(wasmhost.Display{Header: json.RawMessage(`{"type":"picture"}`), Attachments: [][]byte{s.picture}}))
			}
		}
		return succeed(out.String()), nil
	}
}

func TestPictures(t *testing.T) {
	small := pngOf(t, 100)
	var many, large []shown
	for range maxPictures + 2 {
		many = append(many, shown{picture: small})
	}
	for range 4 {
		large = append(large, shown{picture: pngOf(t, 1_000_000)})
	}
	tests := []struct {
		name   string
		things []shown
		save   bool
		folder bool // there is a directory for it
		stdout string
		images int
		files  []string // of its folder; after them come the size and the address in an answer
	}{
		{"in the order of output", []shown{{"a\n", small}, {"b\n", small}, {"c\n", nil}}, false, true,
			"a\n[image 1: image/png, 10×10]\nb\n[image 2: image/png, 10×10]\nc\n", 2, nil},
		{"broken", []shown{{"", small[:12]}, {"", []byte("<html>")}, {"", small}}, false, true,
			"[image not shown: a damaged picture: unexpected EOF]\n[image not shown: not a PNG, JPEG, GIF, WebP or SVG]\n[image 1: image/png, 10×10]\n", 1, nil},
		{"svg", []shown{{"", []byte("<svg/>")}}, false, true,
			"[image not shown: image/svg+xml, 6 bytes; clients can't show SVG; saved as images/shown-1.svg]\n", 0, []string{"images/shown-1.svg"}},
		{"svg without a folder", []shown{{"", []byte("<svg/>")}}, false, false,
			"[image not shown: image/svg+xml, 6 bytes; clients can't show SVG; not saved: codeexec keeps no files of runs here]\n", 0, nil},
		{"too wide", []shown{{"", wide(t)}}, false, true,
			"[image not shown: image/png, 8001×1; wider or higher than 8000 pixels; saved as images/shown-1.png]\n", 0, []string{"images/shown-1.png"}},
		{"saved too", []shown{{"", small}}, true, true, "[image 1: image/png, 10×10]\n", 1, []string{"images/shown-1.png"}},
		{"saved without a folder", []shown{{"", small}}, true, false, "[image 1: image/png, 10×10]\n", 1, nil},
		{"too many", many, false, true,
			numbered(8, "image/png, 10×10") +
				"[image not shown: image/png, 10×10; an answer has at most 8 images; saved as images/shown-1.png]\n" +
				"[image not shown: image/png, 10×10; an answer has at most 8 images; saved as images/shown-2.png]\n",
			8, []string{"images/shown-1.png", "images/shown-2.png"}},
		{"too large", append(large, shown{picture: small}), false, true,
			numbered(3, "image/png, 1000×1000") +
				"[image not shown: image/png, 1000×1000; the images of an answer have at most 4 MiB; saved as images/shown-1.png]\n" +
				"[image 4: image/png, 10×10]\n",
			4, []string{"images/shown-1.png"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			opts := Options{}
			if tc.folder {
				opts.Projects = t.TempDir()
			}
			b, _ := newFakeBridge(t, opts, map[string]script{"show": showing(tc.things...)}, nil)
			res := mustRun(t, b, RunRequest{Code: "show", SavePictures: tc.save})
			if res.Stdout != tc.stdout {
				t.Errorf("stdout is\n%s\nwant\n%s", res.Stdout, tc.stdout)
			}
			var files []string
			for _, f := range res.Files {
				files = append(files, f.Name)
			}
			if fmt.Sprint(files) != fmt.Sprint(tc.files) {
				t.Errorf("files %v, want %v", files, tc.files)
			}

			// The content has what the structured form says, in the same order.
			size := 0
			content := res.content("text", "2025-11-25", time.Hour)
			if len(content) != 1+tc.images+len(tc.files) || len(res.Images) != tc.images {
				t.Fatalf("%d blocks and %d images for %d images and %d files", len(content), len(res.Images), tc.images, len(tc.files))
			}
			for i, info := range res.Images {
				block, ok := content[1+i].(*mcp.ImageContent)
				if !ok || block.MIMEType != info.MIMEType || len(block.Data) != info.Bytes {
					t.Fatalf("block %d is %+v, the image %+v", 1+i, content[1+i], info)
				}
				if _, err := png.Decode(bytes.NewReader(block.Data)); err != nil {
					t.Error(err)
				}
				size += base64.StdEncoding.EncodedLen(len(block.Data))
				if saved := tc.save && tc.folder; saved != (info.URL != "") {
					t.Errorf("image %d is at %q", i, info.URL)
				}
			}
			if size > maxPictureBytes {
				t.Errorf("the images have %d bytes", size)
			}
			for i, f := range res.Files {
				link, ok := content[1+tc.images+i].(*mcp.ResourceLink)
				if !ok || link.URI != f.URI || *link.Size != f.Size {
					t.Errorf("block %d is %+v, the file %+v", 1+tc.images+i, content[1+tc.images+i], f)
				}
				data, err := b.executionFile(strings.TrimPrefix(f.URI, executionsURI+"/"))
				if err != nil || int64(len(data)) != f.Size {
					t.Errorf("%s has %d bytes, %v", f.URI, len(data), err)
				}
			}
			if old := res.content("text", "2024-11-05", time.Hour); len(old) != 1+tc.images {
				t.Errorf("an old client gets %d blocks", len(old))
			}
		})
	}
}

// numbered is what the output says of n equal pictures.
func numbered(n int, what string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "[image %d: %s]\n", i+1, what)
	}
	return b.String()
}

// What a run saves is listed within bounds, and its code and output are kept beside it.
func TestSavedFiles(t *testing.T) {
	projects := t.TempDir()
	save := func(_ context.Context, _ *fakeSandbox, req wasmhost.Request) (*wasmhost.Result, error) {
		var env guestEnv
		if err := json.Unmarshal(req.Env, &env); err != nil {
			return nil, err
		}
		dir := filepath.Join(projects, strings.TrimPrefix(env.Execution.Path, "/projects"))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		for i := range maxAnswerFiles + 5 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.txt", i)), []byte("x"), 0o600); err != nil {
				return nil, err
			}
		}
		res := succeed("out\xff\n")
		res.Stderr = wasmhost.Output{Head: []byte("err\n")}
		res.Value = "42"
		return res, nil
	}
	b, _ := newFakeBridge(t, Options{Projects: projects}, map[string]script{"save": save}, nil)
	res := mustRun(t, b, RunRequest{Code: "save"})
	if len(res.Files) != maxAnswerFiles || !strings.Contains(res.Summary, "25 files saved, of which 5 are not listed") {
		t.Errorf("%d files, %q", len(res.Files), res.Summary)
	}
	folder, _, _ := strings.Cut(strings.TrimPrefix(res.Files[0].URI, executionsURI+"/"), "/")
	for name, want := range map[string]string{"code.py": "save", "output.txt": "out\\xff\n--- stderr\nerr\n--- result\n42\n"} {
		if data, err := b.executionFile(folder + "/" + name); string(data) != want {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
	if !strings.Contains(res.Compact(), "files:\n  00.txt 1 bytes file://") {
		t.Errorf("the text is\n%s", res.Compact())
	}
}

// However a guest fills its frames, what comes of them is printable, and only pictures that can be decoded are
// passed on.
func FuzzShow(f *testing.F) {
	f.Add([]byte(`{"type":"picture","saved":"images/x.png"}`), pngOf(f, 30), []byte("<svg/>"))
	f.Add([]byte(`{"type":"picture","saved":"../x\u0000"}`), []byte("GIF89a"), []byte(nil))
	f.Add([]byte(`{"type":1}`), []byte("\x89PNG\r\n\x1a\n"), []byte("RIFF1234WEBP"))
	projects := f.TempDir()
	f.Fuzz(func(t *testing.T, header, first, second []byte) {
		frame := hostfuncs.Frame{Header: header, Attachments: [][]byte{first}}
		g := gallery{
			ctx: t.Context(), turns: make(chan struct{}, 1), save: true, logger: slog.New(slog.DiscardHandler),
			folder: artifact.Open(projects, artifact.Written, 0).Folder(newRunID(), time.Now()),
		}
		var lines []string
		for _, data := range [][]byte{first, second} {
			frame.Attachments[0] = data
			lines = append(lines, g.show(wasmhost.Display{Header: frame.Header, Attachments: frame.Attachments}))
		}
		for _, line := range lines {
			if text, shortened := printable(wholeOutput(line), 2000); text != line || shortened || strings.Count(line, "\n") != 1 || !strings.HasSuffix(line, "]\n") {
				t.Errorf("the line %q", line)
			}
		}
		if len(g.pictures) != len(g.data) {
			t.Fatalf("%d pictures, %d of them described", len(g.data), len(g.pictures))
		}
		for i, data := range g.data {
			if info, err := picture.Check(data); err != nil || info.MIMEType != g.pictures[i].MIMEType {
				t.Errorf("passed on: %+v, %v", info, err)
			}
		}
	})
}

// However a guest fills a request for a chart, the answer is a picture or an error.
func FuzzRenderChart(f *testing.F) {
	numbers := []byte("\x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00@")
	f.Add([]byte(`{"type":"line","axis":"number","width":3,"height":2,"series":["a"]}`), numbers, numbers)
	f.Add([]byte(`{"type":"bar","axis":"category","labels":["a","b","c"],"width":3,"height":2,"series":["a"]}`), numbers, numbers)
	f.Add([]byte(`{"type":"hist","width":3,"height":2,"series":["a","b"]}`), numbers, numbers)
	f.Add([]byte(`{"type":"pie","axis":"category","labels":["a","b","c"],"title":"\ud800","width":1e308,"height":2,"series":["a"]}`), numbers, numbers[:9])
	h := &guestHandler{drawing: make(chan struct{}, 1)}
	f.Fuzz(func(t *testing.T, params, x, y []byte) {
		var size struct{ Width, Height float64 }
		if json.Unmarshal(params, &size) == nil && size.Width*size.Height > 20 {
			t.Skip("too slow for a fuzz test")
		}
		ctx := withScope(t.Context(), &runScope{})
		resp, err := h.Handle(ctx, hostfuncs.Request{Op: "chart.render", Params: params, Attachments: [][]byte{x, y}})
		if err != nil {
			return
		}
		if len(resp.Attachments) != 1 || !json.Valid(resp.Value) {
			t.Fatalf("%d attachments, %s", len(resp.Attachments), resp.Value)
		}
		if _, err := picture.Check(resp.Attachments[0]); err != nil {
			t.Fatal(err)
		}
	})
}
