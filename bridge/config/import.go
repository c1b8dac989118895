package config

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"codeexec/bridge/config/syntax"
)

// An Import is what copying the entries of another client into the state
// directory would do. [PlanImport] makes it, and [Import.Apply] does it.
type Import struct {
	Client  Source
	From    []string // the client's files that were read
	File    string   // the file of the state directory that gets the entries
	Changes []Change // by name
	// Problems are those of the client's files.
	Problems []Problem

	before []byte // what File has in it; nil if there is no file
	sums   map[string]string
	values map[string][]byte // what Add and Update write
}

// A Change is what an import does with one entry.
type Change struct {
	Preview
	Action Action
	Note   string // why, where that isn't obvious
}

// An Action is what becomes of an entry.
type Action string

const (
	ActionAdd    Action = "add"    // it is new
	ActionUpdate Action = "update" // the client's changed, ours is as it was copied
	ActionSame   Action = "same"   // nothing to do
	ActionKeep   Action = "keep"   // ours was edited, or removed, and stays so
	ActionSkip   Action = "skip"   // it can't be used, or isn't needed
)

// PlanImport compares the user's entries of a client with those that the state
// directory has of it. Files of projects aren't read: they are for
// [InspectProject].
//
// Entries are copied as the client's file spells them, with references to
// variables and not their values, so that a secret which isn't in one file
// doesn't get into another. An entry that was edited after it was copied is
// left alone, unless force is set.
func PlanImport(ctx context.Context, opts Options, client Source, force bool) (*Import, error) {
	if opts.StateDir == "" {
		return nil, errors.New("there is no state directory to copy to")
	}
	l := newLoader(opts)
	im := &Import{
		Client: client,
		File:   filepath.Join(absolute(opts.StateDir), "imported-"+string(client)+".json"),
		values: make(map[string][]byte),
	}
	theirs, err := l.clientEntries(ctx, im)
	if err != nil {
		return nil, err
	}
	ours, err := im.readTarget()
	if err != nil {
		return nil, fmt.Errorf("%s: %w; correct the file, or remove it", im.File, err)
	}
	others, err := l.otherEntries(ctx, im.File)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(theirs)) {
		change := l.compare(theirs[name], ours, others, im.sums, force)
		change.Preview = theirs[name].preview()
		im.Changes = append(im.Changes, change)
		if change.Action == ActionAdd || change.Action == ActionUpdate {
			im.values[name] = theirs[name].canonical()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(im.sums)) {
		if _, there := theirs[name]; there {
			continue
		}
		if e, here := ours[name]; here {
			im.Changes = append(im.Changes, Change{e.preview(), ActionKeep, "the client doesn't have it any more"})
		}
	}
	im.Problems = l.problems
	return im, nil
}

// clientEntries reads the user's files of the client. The first definition of
// a name wins, as it does in the client.
func (l *loader) clientEntries(ctx context.Context, im *Import) (map[string]entry, error) {
	entries := make(map[string]entry)
	for _, at := range l.locations(im.Client) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at.project != "" {
			continue
		}
		data, err := l.read(at)
		if err != nil {
			l.problem(at.path, "", "not copied: "+err.Error())
			continue
		}
		if data == nil {
			continue
		}
		im.From = append(im.From, at.path)
		list, err := at.parse(data, at)
		if err != nil && !errors.Is(err, errNoServers) {
			l.problem(at.path, "", "not copied: "+err.Error())
		}
		for _, e := range list {
			if err := checkName(e.name); err != nil {
				l.problem(at.path, e.name, "not copied: "+err.Error())
				continue
			}
			for _, field := range e.ignored {
				l.problem(at.path, e.name, field)
			}
			if _, taken := entries[e.name]; !taken {
				entries[e.name] = l.anchored(at, e)
			}
		}
	}
	return entries, nil
}

// anchored makes relative paths of an entry absolute, which is to be copied
// into another directory.
func (l *loader) anchored(at location, e entry) entry {
	for _, path := range []*string{&e.cwd, &e.envFile} {
		if *path != "" && !filepath.IsAbs(*path) && !strings.HasPrefix(*path, "~") && !strings.HasPrefix(*path, "${") {
			*path = filepath.Join(at.base(), *path)
		}
	}
	return e
}

// readTarget reads the file of an earlier import: the entries that it has now,
// and the checksums of those that were copied.
func (im *Import) readTarget() (map[string]entry, error) {
	im.sums = make(map[string]string)
	data, err := readFile(im.File, MaxClientFileSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, errors.New(reason(err))
	}
	im.before = data
	object, err := syntax.JSON(data)
	if err != nil {
		return nil, err
	}
	if imported := child(object, "imported"); imported != nil {
		for _, m := range imported.Members {
			if sum, err := text(m.Value); err == nil {
				im.sums[literal(m.Name)] = sum
			}
		}
	}
	list, err := dialect{}.servers(object, "mcpServers", location{path: im.File})
	if err != nil {
		return nil, err
	}
	return byName(list), nil
}

// otherEntries reads the other files of the state directory, and says of each
// entry which file has it.
func (l *loader) otherEntries(ctx context.Context, except string) (map[string]owned, error) {
	others := make(map[string]owned)
	for _, at := range l.locations(SourceState) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if at.path == except {
			continue
		}
		data, err := l.read(at)
		if err != nil {
			continue // Load reports it
		}
		list, _ := at.parse(data, at)
		for name, e := range byName(list) {
			if _, taken := others[name]; !taken && e.err == nil {
				others[name] = owned{filepath.Base(at.path), e}
			}
		}
	}
	return others, nil
}

type owned struct {
	file  string
	entry entry
}

// byName returns entries by their names; of several with one name, the first.
func byName(list []entry) map[string]entry {
	entries := make(map[string]entry, len(list))
	for _, e := range list {
		if _, taken := entries[e.name]; !taken {
			entries[e.name] = e
		}
	}
	return entries
}

// compare decides what to do with a client's entry.
func (l *loader) compare(e entry, ours map[string]entry, others map[string]owned, sums map[string]string, force bool) Change {
	if e.err != nil {
		return Change{Action: ActionSkip, Note: e.err.Error()}
	}
	if _, err := e.kind(); err != nil {
		return Change{Action: ActionSkip, Note: err.Error()}
	}
	if e.command != "" && !l.opts.AllowSelf && l.self.starts(e.command, e.args) {
		return Change{Action: ActionSkip, Note: errSelf.Error()}
	}
	if other, taken := others[e.name]; taken {
		note := other.file + " defines another one of this name"
		if bytes.Equal(other.entry.canonical(), e.canonical()) {
			note = other.file + " has it already"
		}
		return Change{Action: ActionSkip, Note: note}
	}
	sum, copied := sums[e.name]
	our, here := ours[e.name]
	switch {
	case here && our.err == nil && bytes.Equal(our.canonical(), e.canonical()):
		return Change{Action: ActionSame}
	case here && (our.err != nil || checksum(our.canonical()) != sum):
		if force {
			return Change{Action: ActionUpdate, Note: "edits since it was copied are lost"}
		}
		return Change{Action: ActionKeep, Note: "edited since it was copied"}
	case here:
		return Change{Action: ActionUpdate}
	case copied && !force:
		return Change{Action: ActionKeep, Note: "removed since it was copied"}
	}
	return Change{Action: ActionAdd}
}

// canonical spells an entry as codeexec writes it.
func (e entry) canonical() []byte {
	kind := e.transport
	if kind == TransportStdio && e.command != "" && e.url == "" {
		kind = "" // as most files have it
	}
	value := struct {
		Type        string            `json:"type,omitempty"`
		Command     string            `json:"command,omitempty"`
		Args        []string          `json:"args,omitempty"`
		Env         map[string]string `json:"env,omitempty"`
		EnvFile     string            `json:"envFile,omitempty"`
		Cwd         string            `json:"cwd,omitempty"`
		URL         string            `json:"url,omitempty"`
		Headers     map[string]string `json:"headers,omitempty"`
		OAuth       any               `json:"oauth,omitempty"`
		Timeout     string            `json:"timeout,omitempty"`
		Description string            `json:"description,omitempty"`
		Disabled    bool              `json:"disabled,omitempty"`
	}{kind, e.command, e.args, e.env, e.envFile, e.cwd, e.url, e.headers, writtenOAuth(e.oauth), "", e.description, e.disabled}
	if e.timeout > 0 {
		value.Timeout = e.timeout.String()
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.Encode(value) // strings, which can't fail
	return bytes.TrimSpace(b.Bytes())
}

// Changed reports whether Apply would write anything.
func (im *Import) Changed() bool { return len(im.values) > 0 }

// Apply writes what was planned. Comments and whatever else the user has in the
// file stay there. It fails if the file has changed since the import was
// planned.
func (im *Import) Apply() error {
	if !im.Changed() {
		return nil
	}
	now, err := readFile(im.File, MaxClientFileSize)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, im.before) {
		return fmt.Errorf("%s has changed in the meantime; try again", im.File)
	}
	if now == nil {
		return WriteFile(im.File, im.newFile(), 0o600)
	}
	file, err := hujson.Parse(append(bytes.TrimPrefix(now, []byte("\uFEFF")), '\n'))
	if err != nil {
		return fmt.Errorf("%s: %w", im.File, syntax.Position(err))
	}
	if object, ok := file.Value.(*hujson.Object); ok && len(members(object, "imported")) == 0 {
		if err := patch(&file, "/imported", []byte("{}")); err != nil {
			return fmt.Errorf("%s: %w", im.File, err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(im.values)) {
		sum, _ := json.Marshal(checksum(im.values[name])) // a string
		pointer := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		err := errors.Join(
			patch(&file, "/mcpServers/"+pointer, im.values[name]),
			patch(&file, "/imported/"+pointer, sum),
		)
		if err != nil {
			return fmt.Errorf("%s: server %q: %w", im.File, name, err)
		}
	}
	file.Format()
	return WriteFile(im.File, file.Pack(), 0o600)
}

// newFile spells a file with the entries and, under "imported", the checksums by
// which edits are told.
func (im *Import) newFile() []byte {
	file := struct {
		Servers  map[string]json.RawMessage `json:"mcpServers"`
		Imported map[string]string          `json:"imported"`
	}{make(map[string]json.RawMessage), make(map[string]string)}
	for name, value := range im.values {
		file.Servers[name], file.Imported[name] = value, checksum(value)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "\t")
	encoder.Encode(file) // JSON and strings, which can't fail
	return b.Bytes()
}

// patch sets the value at a JSON pointer (RFC 6901), whose parent exists.
func patch(file *hujson.Value, pointer string, value []byte) error {
	var operation bytes.Buffer
	encoder := json.NewEncoder(&operation)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode([]map[string]any{{"op": "add", "path": pointer, "value": json.RawMessage(value)}}); err != nil {
		return err
	}
	if err := file.Patch(operation.Bytes()); err != nil {
		return errors.New("the entry can't be replaced; remove it from the file first")
	}
	return nil
}
