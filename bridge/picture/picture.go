// Package picture tells which pictures can be given to a client.
//
// It knows nothing of scripts or of MCP. Package bridge asks it about everything that a script shows.
//
// # Why pictures are decoded
//
// A client puts a picture into the conversation and sends it to a model with every further message. One that the
// model's host can't decode (cut short, of another type than it is said to be, a page of HTML in place of it) is then
// refused with each of them: the conversation can't go on. So a picture is given on only if all of it could be
// decoded here, under the type that its bytes say.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	_ "image/gif" // registers the decoder
	_ "image/jpeg"
	_ "image/png"

	_ "golang.org/x/image/webp"
)

// The limits of a picture that can be shown.
const (
	// MaxSide is how many pixels wide and high it may be; the API behind Claude refuses more
	// (https://docs.claude.com/en/docs/build-with-claude/vision).
	MaxSide = 8000
	// MaxPixels bounds what decoding takes: 8 bytes a pixel, at most.
	MaxPixels = 16 << 20
)

// SVG is the type of vector graphics. They are known, but can't be shown: clients take none as image content.
const SVG = "image/svg+xml"

// Info describes a picture.
type Info struct {
	MIMEType      string // image/png, image/jpeg, image/gif, image/webp, or SVG
	Extension     string // of a file of that type, with its dot
	Width, Height int    // in pixels; 0 for SVG
}

// An Error says why a picture can't be shown. Where Info is not zero, it is one that could be looked at elsewhere.
type Error struct {
	Info Info
	why  string
}

func (e *Error) Error() string { return e.why }

var types = map[string]Info{
	"png":  {MIMEType: "image/png", Extension: ".png"},
	"jpeg": {MIMEType: "image/jpeg", Extension: ".jpg"},
	"gif":  {MIMEType: "image/gif", Extension: ".gif"},
	"webp": {MIMEType: "image/webp", Extension: ".webp"},
}

// Check reports what data is. The error is an [*Error] unless it is a picture that can be shown.
//
// It may take half a second and 128 MB, for the largest ones.
func Check(data []byte) (Info, error) {
	if isSVG(data) {
		info := Info{MIMEType: SVG, Extension: ".svg"}
		return info, &Error{info, "clients can't show SVG"}
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(data))
	if errors.Is(err, image.ErrFormat) {
		return Info{}, &Error{why: "not a PNG, JPEG, GIF, WebP or SVG"}
	}
	info := types[format]
	if err != nil {
		return Info{}, &Error{why: fmt.Sprintf("a damaged picture: %v", err)}
	}
	info.Width, info.Height = config.Width, config.Height
	switch {
	case info.Width < 1 || info.Height < 1:
		return Info{}, &Error{why: fmt.Sprintf("%s of %d×%d pixels", info.MIMEType, info.Width, info.Height)}
	case info.Width > MaxSide || info.Height > MaxSide:
		return info, &Error{info, fmt.Sprintf("wider or higher than %d pixels", MaxSide)}
	case info.Width*info.Height > MaxPixels:
		return info, &Error{info, fmt.Sprintf("more than %d million pixels", MaxPixels>>20)}
	}
	if _, _, err := image.Decode(bytes.NewReader(data)); err != nil {
		return Info{}, &Error{why: fmt.Sprintf("a damaged picture: %v", err)}
	}
	return info, nil
}

// isSVG reports whether a text begins as an SVG does: perhaps with a declaration, a document type and comments.
func isSVG(data []byte) bool {
	const within = 4096
	head := bytes.TrimLeft(bytes.TrimPrefix(data[:min(len(data), within)], []byte("\ufeff")), " \t\r\n")
	for {
		var end string
		switch {
		case bytes.HasPrefix(head, []byte("<svg")):
			return true
		case bytes.HasPrefix(head, []byte("<!--")):
			end = "-->"
		case bytes.HasPrefix(head, []byte("<?")):
			end = "?>"
		case bytes.HasPrefix(head, []byte("<!DOCTYPE svg")):
			end = ">"
		default:
			return false
		}
		_, after, ok := bytes.Cut(head, []byte(end))
		if !ok {
			return false
		}
		head = bytes.TrimLeft(after, " \t\r\n")
	}
}
