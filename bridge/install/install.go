package install

import (
	"errors"
	"fmt"
	"slices"

	"codeexec/bridge/config"
)

// Options say what is installed where.
type Options struct {
	// Client is one of [config.Clients].
	Client config.Source
	// Command is the program that the client is to start: an absolute path.
	Command string
	// Args are its arguments. They come first where an entry that is there has
	// more.
	Args []string
	// Config says where the client's files are, by Home, GOOS and LookupEnv, and
	// where is remembered what was done, by StateDir.
	Config config.Options
	// Force replaces an entry of our name that starts something else.
	Force bool
}

// A Plan is a change of one client's file.
type Plan struct {
	Client config.Source
	// File is the file that changes, or would.
	File string
	// Before and After are its contents; nil means that there is no file.
	Before, After []byte
	// Note says in a few words what After is, where that isn't obvious; or is
	// empty.
	Note string

	stateDir string
	record   *record // what is to be remembered; nil: what is remembered is to be forgotten
}

// A file is a client's file, in which our entry can be found and changed.
type file interface {
	// entry returns our entry, or nil. The error says what is wrong with the place
	// where it belongs.
	entry() (*entry, error)
	// set returns the change after which our entry is there and starts us.
	set() (splice, error)
	// remove returns the change after which our entry, which exists, doesn't.
	remove() (splice, error)
	// rest spells everything in the file that isn't our entry, nor a place for
	// servers without any. Two files have the same rest if they mean the same.
	rest() (string, error)
}

// An entry is our entry as it is in a file.
type entry struct {
	words []string // the command line, as far as it is of a kind that we know
}

// ours reports whether the entry starts us.
func (e *entry) ours() bool {
	return len(e.words) > 0 && config.StartsSelf(e.words[0], e.words[1:])
}

func (f form) parse(data []byte) (file, error) {
	if f.toml {
		return parseTOML(data, f)
	}
	return parseJSON(data, f)
}

// PlanInstall plans to write our entry into a client's configuration. A file that
// is broken, or has something else in the place of our entry, is an error.
func PlanInstall(opts Options) (*Plan, error) {
	p, f, err := newPlan(opts)
	if err != nil {
		return nil, err
	}
	base, old, err := p.original(f)
	if err != nil {
		return nil, err
	}
	after, s, err := f.install(base, opts.Force)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.File, err)
	}
	p.After = after
	p.record = &record{splice: s, Created: base == nil}
	if old != nil && !old.undone {
		if e, err := f.find(base); err == nil && e != nil {
			p.record = &old.record // what is there is what we wrote, and somebody has edited
		}
	}
	if !p.Changed() {
		p.Note = "installed already"
	}
	return p, nil
}

// PlanUninstall plans to undo what [PlanInstall] did, or to remove our entry where
// that isn't known any more.
func PlanUninstall(opts Options) (*Plan, error) {
	p, f, err := newPlan(opts)
	if err != nil {
		return nil, err
	}
	p.After = p.Before
	base, old, err := p.original(f)
	if err != nil {
		return nil, err
	}
	if old != nil && old.undone {
		p.After = base
		if base != nil {
			if e, err := f.find(base); err == nil && e != nil {
				p.Note = "the entry that was there before stays; uninstall once more to remove it"
			}
		}
		return p, nil
	}
	if p.Before == nil {
		p.Note = "not installed"
		return p, nil
	}
	p.After, err = f.uninstall(p.Before, opts.Force)
	if errors.Is(err, errAbsent) {
		p.After, p.Note = p.Before, "not installed"
		return p, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.File, err)
	}
	return p, nil
}

func newPlan(opts Options) (*Plan, form, error) {
	f := formOf(opts.Client, opts.Command, opts.Args)
	path, err := fileOf(opts)
	if err != nil {
		return nil, f, err
	}
	p := &Plan{Client: opts.Client, File: path, stateDir: opts.Config.StateDir}
	if p.Before, err = read(path); err != nil {
		return nil, f, fmt.Errorf("%s: %w", path, err)
	}
	return p, f, nil
}

// An earlier installation is one that is remembered.
type earlier struct {
	record
	undone bool // or what it wrote isn't there any more
}

// original returns the file as it would be without an earlier installation. A base
// of nil means that there would be no file.
func (p *Plan) original(f form) (base []byte, old *earlier, err error) {
	records, err := readRecords(p.stateDir)
	if err != nil {
		return nil, nil, err
	}
	r, ok := records[p.File]
	if !ok || p.Before == nil {
		return p.Before, nil, nil
	}
	old = &earlier{record: r}
	rest, err := f.restOf(p.Before)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", p.File, err)
	}
	base, old.undone = r.undo(p.Before, func(data []byte) bool {
		then, err := f.restOf(data)
		return err == nil && rest == then
	})
	switch {
	case !old.undone:
		base = p.Before
	case r.Created && isBlank(string(base)):
		base = nil
	}
	return base, old, nil
}

// restOf is [file.rest] of a file's contents.
func (f form) restOf(data []byte) (string, error) {
	parsed, err := f.parse(data)
	if err != nil {
		return "", err
	}
	return parsed.rest()
}

// find returns our entry in a file's contents, or nil.
func (f form) find(data []byte) (*entry, error) {
	parsed, err := f.parse(data)
	if err != nil {
		return nil, err
	}
	return parsed.entry()
}

// errAbsent is the error for a file without our entry.
var errAbsent = errors.New("it has no entry of codeexec")

// install returns data with our entry, and how that differs.
func (f form) install(data []byte, force bool) ([]byte, splice, error) {
	return f.change(data, func(before file) (splice, error) {
		if e, err := before.entry(); err != nil {
			return splice{}, err
		} else if e != nil && !e.ours() {
			if !force {
				return splice{}, fmt.Errorf("its entry %q starts something else; --force replaces it", entryName)
			}
			return splice{}, errReplace
		}
		return before.set()
	}, true)
}

// errReplace is for an entry of which nothing can be kept: it has to go before
// ours is written.
var errReplace = errors.New("the entry has to be replaced")

// uninstall returns data without our entry. The error is errAbsent if it has none.
func (f form) uninstall(data []byte, force bool) ([]byte, error) {
	after, _, err := f.change(data, func(before file) (splice, error) {
		switch e, err := before.entry(); {
		case err != nil:
			return splice{}, err
		case e == nil:
			return splice{}, errAbsent
		case !e.ours() && !force:
			return splice{}, fmt.Errorf("its entry %q starts something else; --force removes it", entryName)
		}
		return before.remove()
	}, false)
	return after, err
}

// change edits data, and checks that nothing else has changed than whether our
// entry is there.
func (f form) change(data []byte, edit func(file) (splice, error), there bool) ([]byte, splice, error) {
	before, err := f.parse(data)
	if err != nil {
		return nil, splice{}, err
	}
	s, err := edit(before)
	if errors.Is(err, errReplace) {
		if s, err = before.remove(); err != nil {
			return nil, splice{}, err
		}
		removed := s.apply(data)
		after, _, err := f.change(removed, file.set, there)
		return after, difference(data, after), err
	}
	if err != nil {
		return nil, splice{}, err
	}
	after := s.apply(data)
	if !f.sameRest(before, after, there) {
		return nil, splice{}, errors.New("it is written in a way that can't be edited safely; change it by hand")
	}
	return after, s, nil
}

func (f form) sameRest(before file, data []byte, there bool) bool {
	after, err := f.parse(data)
	if err != nil {
		return false
	}
	e, err := after.entry()
	if err != nil || (e != nil) != there || there && !e.ours() {
		return false
	}
	was, err1 := before.rest()
	is, err2 := after.rest()
	return err1 == nil && err2 == nil && was == is
}

// difference returns the splice that turns one text into another, without what
// they begin and end with alike.
func difference(a, b []byte) splice {
	start := 0
	for start < min(len(a), len(b)) && a[start] == b[start] {
		start++
	}
	end := 0
	for end < min(len(a), len(b))-start && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	return splice{start, string(a[start : len(a)-end]), string(b[start : len(b)-end])}
}

// without spells a file's value without our entry, and without the places for
// servers that are empty then.
func without(value map[string]any, path []string) string {
	if value == nil {
		value = map[string]any{}
	}
	prune(value, append(slices.Clone(path), entryName))
	return fmt.Sprintf("%#v", value) // with sorted keys, and NaN the same as NaN
}

func prune(value map[string]any, path []string) {
	key := path[0]
	if len(path) == 1 {
		delete(value, key)
		return
	}
	switch inner := value[key].(type) {
	case nil:
		delete(value, key)
	case map[string]any:
		if prune(inner, path[1:]); len(inner) == 0 {
			delete(value, key)
		}
	}
}

// Changed reports whether Apply would write the client's file.
func (p *Plan) Changed() bool {
	return (p.Before == nil) != (p.After == nil) || string(p.Before) != string(p.After)
}
