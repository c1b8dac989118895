package picture

import (
	"bytes"
	"encoding/base64"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

func encoded(t testing.TB, width, height int, encode func(*bytes.Buffer, image.Image) error) []byte {
	t.Helper()
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black})
	var b bytes.Buffer
	if err := encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asPNG(b *bytes.Buffer, img image.Image) error  { return png.Encode(b, img) }
func asJPEG(b *bytes.Buffer, img image.Image) error { return jpeg.Encode(b, img, nil) }
func asGIF(b *bytes.Buffer, img image.Image) error  { return gif.Encode(b, img, nil) }

// webP is one pixel; Go has no encoder.
var webP, _ = base64.StdEncoding.DecodeString("UklGRiIAAABXRUJQVlA4IBYAAAAwAQCdASoBAAEADsD+JaQAA3AAAAAA")

func TestCheck(t *testing.T) {
	small := encoded(t, 64, 48, asPNG)
	flipped := bytes.Clone(small)
	flipped[len(flipped)-20] ^= 0xff
	tests := []struct {
		name string
		data []byte
		want Info
		err  string // part of it; empty: it can be shown
	}{
		{"png", small, Info{"image/png", ".png", 64, 48}, ""},
		{"jpeg", encoded(t, 30, 20, asJPEG), Info{"image/jpeg", ".jpg", 30, 20}, ""},
		{"gif", encoded(t, 30, 20, asGIF), Info{"image/gif", ".gif", 30, 20}, ""},
		{"webp", webP, Info{"image/webp", ".webp", 1, 1}, ""},
		{"largest side", encoded(t, MaxSide, 1, asPNG), Info{"image/png", ".png", MaxSide, 1}, ""},
		{"too wide", encoded(t, MaxSide+1, 1, asPNG), Info{"image/png", ".png", MaxSide + 1, 1}, "wider or higher than 8000"},
		{"too many pixels", encoded(t, 5000, 5000, asGIF), Info{"image/gif", ".gif", 5000, 5000}, "more than 16 million"},
		{"nothing", nil, Info{}, "not a PNG"},
		{"text", []byte("<html>404</html>"), Info{}, "not a PNG"},
		{"only a signature", small[:8], Info{}, "damaged"},
		{"cut in the header", small[:20], Info{}, "damaged"},
		{"cut short", small[:len(small)-14], Info{}, "damaged"},
		{"a wrong byte", flipped, Info{}, "damaged"},
		{"half a jpeg", encoded(t, 300, 200, asJPEG)[:700], Info{}, "damaged"},
		{"svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`), Info{SVG, ".svg", 0, 0}, "can't show SVG"},
		{"svg with a preamble", []byte("\ufeff<?xml version=\"1.0\"?>\n<!-- x -->\n<!DOCTYPE svg>\n<svg/>"), Info{SVG, ".svg", 0, 0}, "can't show SVG"},
		{"unfinished preamble", []byte("<!-- <svg"), Info{}, "not a PNG"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			info, err := Check(tc.data)
			if info != tc.want {
				t.Errorf("got %+v, want %+v", info, tc.want)
			}
			if tc.err == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if e, ok := errors.AsType[*Error](err); !ok || !strings.Contains(err.Error(), tc.err) || e.Info != tc.want {
				t.Errorf("got %v, want an Error with %q", err, tc.err)
			}
		})
	}
}

// What Check accepts, the decoders of its type accept.
func FuzzCheck(f *testing.F) {
	for _, seed := range [][]byte{encoded(f, 3, 2, asPNG), encoded(f, 3, 2, asJPEG), encoded(f, 3, 2, asGIF), webP, []byte("<svg/>")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		info, err := Check(data)
		if err != nil {
			return
		}
		img, format, err := image.Decode(bytes.NewReader(data))
		if err != nil || img.Bounds().Dx() != info.Width || img.Bounds().Dy() != info.Height || !strings.HasSuffix(info.MIMEType, format) {
			t.Fatalf("%+v of a %s, %v", info, format, err)
		}
	})
}
