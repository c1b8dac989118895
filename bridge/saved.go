package bridge

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"codeexec/bridge/config"
	"codeexec/hostfuncs"
	"codeexec/memory/filelock"
)

// toolFileName is the file of saved tools, in the directory that scripts see as /projects.
const toolFileName = "user_tools.py"

// maxToolFile is the length in bytes of the largest file of saved tools.
const maxToolFile = 4 << 20

// A toolFile is the Python file with the functions that scripts have saved. The guest reads and composes
// it; here is only what it can't do: replace the file at once and durably, and only if it is still the one
// that the new text is based on, whatever other processes do. So it is with an update of package memory: a
// loop in the guest over saved.read and saved.write, and no lock is held while the guest computes.
//
// Guests may put anything in the file's place.
type toolFile struct {
	dir  string
	lock *filelock.Lock
}

// newToolFile returns the file in a directory. lock is a file out of the reach of guests.
func newToolFile(dir, lock string) *toolFile {
	return &toolFile{dir: dir, lock: filelock.New(lock)}
}

// state is "" if there is no file, and else a text that is another one after the file has changed.
func (f *toolFile) state() string {
	if f == nil {
		return ""
	}
	info, err := os.Lstat(filepath.Join(f.dir, toolFileName))
	if err != nil {
		return ""
	}
	return strconv.FormatInt(info.ModTime().UnixNano(), 36) + "-" + strconv.FormatInt(info.Size(), 36)
}

// toolText is the answer to saved.read.
type toolText struct {
	Text     string `json:"text"`
	Revision string `json:"revision"` // "" if there is no file
}

// read returns what is in the file.
func (f *toolFile) read() (toolText, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return toolText{}, err
	}
	defer root.Close()
	data, err := readRegular(root, toolFileName, maxToolFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := root.Lstat(toolFileName); err == nil {
			return toolText{}, fmt.Errorf("/projects/%s is a link to nothing", toolFileName)
		}
		return toolText{}, nil
	case errors.Is(err, errNotRegular):
		return toolText{}, fmt.Errorf("/projects/%s is not a file", toolFileName)
	case errors.Is(err, errFileTooLarge):
		return toolText{}, fmt.Errorf("/projects/%s has more than %d bytes", toolFileName, maxToolFile)
	case err != nil:
		return toolText{}, err
	case !utf8.Valid(data):
		return toolText{}, fmt.Errorf("/projects/%s is not UTF-8", toolFileName)
	}
	sum := sha256.Sum256(data)
	return toolText{string(data), hex.EncodeToString(sum[:16])}, nil
}

// write replaces the file if it still has a revision, and reports whether it had.
func (f *toolFile) write(ctx context.Context, revision, text string) (bool, error) {
	if len(text) > maxToolFile {
		return false, &hostfuncs.Error{
			Kind:    kindLimitExceeded,
			Message: fmt.Sprintf("/projects/%s would have %d bytes, the limit is %d; delete tools that are not needed", toolFileName, len(text), maxToolFile),
		}
	}
	release, err := f.lock.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	now, err := f.read()
	if err != nil {
		return false, err
	}
	if now.Revision != revision {
		return false, nil
	}
	if err := config.WriteFile(filepath.Join(f.dir, toolFileName), []byte(text), 0o600); err != nil {
		return false, fmt.Errorf("/projects/%s can't be written: %w", toolFileName, err)
	}
	return true, nil
}

// useSaved answers the operations saved.*:
//
//	saved.read   {}                the file's text and revision
//	saved.write  {revision, text}  whether the file still had that revision and was replaced
func (h *guestHandler) useSaved(ctx context.Context, op string, params json.RawMessage) (hostfuncs.Response, error) {
	if h.tools == nil {
		return hostfuncs.Response{}, &hostfuncs.Error{
			Kind:    kindMCPError,
			Message: "tools can't be saved: codeexec has no state directory; set CODEEXEC_STATE_DIR to a directory that can be written",
		}
	}
	var p struct {
		Revision string `json:"revision"`
		Text     string `json:"text"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return hostfuncs.Response{}, fmt.Errorf("%s: %w", op, err)
	}
	var answer any
	var err error
	switch op {
	case "saved.read":
		answer, err = h.tools.read()
	case "saved.write":
		answer, err = h.tools.write(ctx, p.Revision, p.Text)
	default:
		return hostfuncs.Response{}, unsupported(op)
	}
	if err != nil {
		if ctx.Err() != nil {
			return hostfuncs.Response{}, context.Cause(ctx)
		}
		if own, ok := errors.AsType[*hostfuncs.Error](err); ok {
			return hostfuncs.Response{}, own
		}
		return hostfuncs.Response{}, &hostfuncs.Error{Kind: kindMCPError, Message: "saved tools: " + withoutPath(err)}
	}
	return respond(answer)
}

// withoutPath returns the message of an error without the path of the host that it names, which says nothing to
// scripts.
func withoutPath(err error) string {
	message := err.Error()
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		message = strings.ReplaceAll(message, file.Error(), file.Err.Error())
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		message = strings.ReplaceAll(message, link.Error(), link.Err.Error())
	}
	return message
}
