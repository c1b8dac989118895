package bridge

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"codeexec/bridge/artifact"
	"codeexec/bridge/picture"
	"codeexec/wasmhost"
)

// The pictures of an answer. What is beyond is saved, and an answer has a link to it.
const (
	maxPictures     = 8
	maxFileName     = 300
	maxPictureBytes = 4 << 20 // of all together, in base64 as clients get them
)

// A PictureInfo describes a picture of an answer.
type PictureInfo struct {
	MIMEType string `json:"mime_type"`
	Width    int    `json:"width"` // in pixels
	Height   int    `json:"height"`
	Bytes    int    `json:"bytes"`
	File     string `json:"file,omitempty"` // where it was saved, in the run's folder
	URL      string `json:"url,omitempty"`  // the same as a file:// URL of the host
}

// A gallery takes what one run shows, and says in the run's output what became of it.
type gallery struct {
	ctx    context.Context  // of the run
	turns  chan struct{}    // of the bridge: to decode a picture takes memory
	folder *artifact.Folder // nil: nothing can be saved
	save   bool             // also what is shown
	logger *slog.Logger

	pictures []PictureInfo
	data     [][]byte // of pictures
	size     int      // of data in base64
	saved    int      // files
}

// displayHeader is the header of a frame that the function display of the guest writes. Its only attachment is the
// picture.
type displayHeader struct {
	Type  string `json:"type"`  // "picture"
	Saved string `json:"saved"` // the file in the run's folder where it is already; empty: nowhere
}

// show implements [wasmhost.Request].Show: it takes a picture and returns the line that stands for it.
func (g *gallery) show(d wasmhost.Display) string {
	var header displayHeader
	if err := json.Unmarshal(d.Header, &header); err != nil || header.Type != "picture" || len(d.Attachments) != 1 {
		return "[not shown: this build knows no such thing]\n"
	}
	data := d.Attachments[0]
	select {
	case g.turns <- struct{}{}:
	case <-g.ctx.Done():
		return "[image not shown: the run is over]\n"
	}
	info, err := picture.Check(data)
	<-g.turns

	encoded := base64.StdEncoding.EncodedLen(len(data))
	why := ""
	if e, ok := errors.AsType[*picture.Error](err); ok {
		if info = e.Info; info.MIMEType == "" {
			return fmt.Sprintf("[image not shown: %s]\n", firstLine(err.Error(), 200))
		}
		why = err.Error()
	} else if len(g.pictures) == maxPictures {
		why = fmt.Sprintf("an answer has at most %d images", maxPictures)
	} else if g.size+encoded > maxPictureBytes {
		why = fmt.Sprintf("the images of an answer have at most %d MiB", maxPictureBytes>>20)
	}
	shown := PictureInfo{MIMEType: info.MIMEType, Width: info.Width, Height: info.Height, Bytes: len(data)}
	if g.folder != nil && len(header.Saved) <= maxFileName && fs.ValidPath(header.Saved) {
		shown.File, shown.URL = firstLine(header.Saved, maxFileName), g.folder.FileURL(header.Saved)
	}
	notSaved := g.keep(&shown, info, data, why != "" || g.save)
	what := describePicture(shown)
	if why == "" {
		g.pictures = append(g.pictures, shown)
		g.data = append(g.data, data)
		g.size += encoded
		return fmt.Sprintf("[image %d: %s]\n", len(g.pictures), what)
	}
	if notSaved != nil {
		return fmt.Sprintf("[image not shown: %s; %s; not saved: %s]\n", what, why, firstLine(notSaved.Error(), 200))
	}
	return fmt.Sprintf("[image not shown: %s; %s; saved as %s]\n", what, why, shown.File)
}

// keep saves a picture if it should be and isn't yet.
func (g *gallery) keep(shown *PictureInfo, info picture.Info, data []byte, want bool) error {
	switch {
	case shown.File != "" || !want:
		return nil
	case g.folder == nil:
		return errNoFolder
	}
	g.saved++
	file, err := g.folder.Save(fmt.Sprintf("images/shown-%d%s", g.saved, info.Extension), data)
	if err != nil {
		g.logger.WarnContext(g.ctx, "saving a picture that a script showed", "error", err)
		return err
	}
	shown.File, shown.URL = file.Name, file.URL
	return nil
}

var errNoFolder = errors.New("codeexec keeps no files of runs here")

func describePicture(p PictureInfo) string {
	if p.Width == 0 {
		return fmt.Sprintf("%s, %d bytes", p.MIMEType, p.Bytes)
	}
	return fmt.Sprintf("%s, %d×%d", p.MIMEType, p.Width, p.Height)
}
