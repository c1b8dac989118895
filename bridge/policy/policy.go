// Package policy decides which tools scripts may call.
//
// Its one job is the owner's say: it reads the tables policy.* of the file
// codeexec.toml and answers, for a call, whether it is allowed, denied, or to be
// asked about, and which limits a server has. It calls nothing and asks nobody;
// the bridge does.
//
//	[policy]
//	default = "allow"                  # where no rule applies; this is the default
//
//	[[policy.rules]]                   # the first rule that applies decides
//	action  = "deny"                   # or "ask" or "allow"
//	servers = ["github", "git-*"]      # absent: all
//	tools   = ["delete_*"]             # absent: all
//	reason  = "Ask Ada first."         # shown to whoever is refused
//
//	[[policy.rules]]
//	action = "ask"
//	when   = ["not read-only", "destructive"]   # all of them; also "open-world"
//
//	[[policy.limits]]
//	servers   = ["*"]
//	in_flight = 4                      # calls at a time
//	calls     = 100                    # calls in one run
//	seconds   = 20                     # for one call
//
// Patterns are matched against whole names, as the server and its tools are
// really called. In them * is any text and ? any character.
//
// # Why the first rule decides
//
// It is the one order in which both "all but these" and "only these" can be
// said, and a reader needs no table of precedences.
//
// # Why a file that can't be read denies everything
//
// A typing mistake must not open what was meant to be closed. That holds for
// keys that nobody knows too.
//
// # Why a tool without annotations is destructive
//
// The protocol says so: these are the defaults of its hints
// (https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations).
// They are the server's own word, so rules on them guard against mistakes of a
// script, not against a server that lies.
package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
)

// An Action is what is done with a call.
type Action string

const (
	Allow Action = "allow"
	Ask   Action = "ask" // the user; without an answer it is denied
	Deny  Action = "deny"
)

// A Policy is what the owner has laid down. Nil allows everything. It doesn't
// change; its methods may be called concurrently.
type Policy struct {
	file     string // base name of the file, for messages
	fallback Action
	rules    []rule
	limits   []limit
	broken   error // why everything is denied, or nil
}

type rule struct {
	action  Action
	servers patterns
	tools   patterns
	when    []condition
	reason  string
}

type limit struct {
	servers patterns
	Limits
}

// Limits bound the calls to one server. Zero is no limit.
type Limits struct {
	InFlight int           // calls at a time
	Calls    int           // calls in one run
	PerCall  time.Duration // for one call
}

// Annotations are what a tool says of itself, with the protocol's defaults
// where it says nothing.
type Annotations struct {
	ReadOnly, Destructive, OpenWorld bool
}

// ParseAnnotations reads the annotations of a tool
// (https://modelcontextprotocol.io/specification/2025-11-25/schema#toolannotations).
// What isn't there or isn't right counts as the default, which is the worst.
func ParseAnnotations(raw json.RawMessage) Annotations {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields) // nothing is the worst
	is := func(name string, otherwise bool) bool {
		switch string(fields[name]) {
		case "true":
			return true
		case "false":
			return false
		}
		return otherwise
	}
	a := Annotations{ReadOnly: is("readOnlyHint", false), OpenWorld: is("openWorldHint", true)}
	a.Destructive = !a.ReadOnly && is("destructiveHint", true)
	return a
}

// A Call is what is to be decided on.
type Call struct {
	Server, Tool string
	// Annotations returns the tool's. It is called at most once, and only if
	// the decision depends on it.
	Annotations func() (Annotations, error)
}

// A Decision is what was decided, and why.
type Decision struct {
	Action Action
	// Rule names the rule that applied, for who is refused: "rule 2 of
	// codeexec.toml". Reason is what the owner says about it; it may be empty.
	Rule, Reason string
}

// Load reads a policy. A file that doesn't exist is one that allows everything.
// The policy is never nil; if there is an error, it denies everything.
func Load(path string) (*Policy, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		data, err = nil, nil
	}
	var p *Policy
	if err == nil {
		p, err = parse(filepath.Base(path), data)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
		return &Policy{file: filepath.Base(path), broken: err}, err
	}
	return p, nil
}

// file is the shape of the tables.
type file struct {
	Policy struct {
		Default string `toml:"default"`
		Rules   []struct {
			Action  string   `toml:"action"`
			Servers []string `toml:"servers"`
			Tools   []string `toml:"tools"`
			When    []string `toml:"when"`
			Reason  string   `toml:"reason"`
		} `toml:"rules"`
		Limits []struct {
			Servers  []string `toml:"servers"`
			InFlight *int     `toml:"in_flight"`
			Calls    *int     `toml:"calls"`
			Seconds  *float64 `toml:"seconds"`
		} `toml:"limits"`
	} `toml:"policy"`
}

// tables are those that the file may have. The others than policy belong to
// other packages, and are read by them.
var tables = []string{"policy", "audit"}

func parse(name string, data []byte) (*Policy, error) {
	var f file
	meta, err := toml.Decode(string(data), &f)
	if err != nil {
		return nil, err
	}
	for _, key := range meta.Undecoded() {
		if strings.EqualFold(key[0], "policy") {
			return nil, fmt.Errorf("%s is not a setting", key)
		}
		if len(key) == 1 && !slices.ContainsFunc(tables, func(name string) bool { return strings.EqualFold(name, key[0]) }) {
			return nil, fmt.Errorf("%s is not a table of this file; there are %s", key, strings.Join(tables, " and "))
		}
	}
	p := &Policy{file: name, fallback: Allow}
	if meta.IsDefined("policy", "default") {
		if p.fallback, err = parseAction(f.Policy.Default); err != nil {
			return nil, fmt.Errorf("policy.default: %w", err)
		}
	}
	for i, r := range f.Policy.Rules {
		out := rule{servers: r.Servers, tools: r.Tools, reason: r.Reason}
		if out.action, err = parseAction(r.Action); err != nil {
			return nil, fmt.Errorf("rule %d: action: %w", i+1, err)
		}
		for _, text := range r.When {
			c, err := parseCondition(text)
			if err != nil {
				return nil, fmt.Errorf("rule %d: when: %w", i+1, err)
			}
			out.when = append(out.when, c)
		}
		p.rules = append(p.rules, out)
	}
	for i, l := range f.Policy.Limits {
		out := limit{servers: l.Servers}
		for _, n := range []struct {
			key  string
			from *int
			to   *int
		}{{"in_flight", l.InFlight, &out.InFlight}, {"calls", l.Calls, &out.Calls}} {
			if n.from == nil {
				continue
			}
			if *n.from < 1 {
				return nil, fmt.Errorf("limit %d: %s must be at least 1; to forbid calls, write a rule", i+1, n.key)
			}
			*n.to = *n.from
		}
		if l.Seconds != nil {
			if !(*l.Seconds > 0 && *l.Seconds <= 1e6) {
				return nil, fmt.Errorf("limit %d: seconds must be above 0 and at most a million", i+1)
			}
			out.PerCall = time.Duration(*l.Seconds * float64(time.Second))
		}
		if out.Limits == (Limits{}) {
			return nil, fmt.Errorf("limit %d limits nothing: set in_flight, calls or seconds", i+1)
		}
		p.limits = append(p.limits, out)
	}
	return p, nil
}

func parseAction(text string) (Action, error) {
	switch a := Action(text); a {
	case Allow, Ask, Deny:
		return a, nil
	}
	return "", fmt.Errorf("must be \"allow\", \"ask\" or \"deny\", not %q", text)
}

// A condition is one of an annotation.
type condition struct {
	name string
	not  bool
}

func parseCondition(text string) (condition, error) {
	var c condition
	c.name, c.not = strings.CutPrefix(strings.TrimSpace(text), "not ")
	c.name = strings.TrimSpace(c.name)
	switch c.name {
	case "read-only", "destructive", "open-world":
		return c, nil
	}
	return c, fmt.Errorf("%q is not an annotation; they are \"read-only\", \"destructive\" and \"open-world\", each with or without \"not \" before it", text)
}

func (c condition) holds(a Annotations) bool {
	is := map[string]bool{"read-only": a.ReadOnly, "destructive": a.Destructive, "open-world": a.OpenWorld}[c.name]
	return is != c.not
}

// Decide decides on a call. The error is that of call.Annotations; the call
// must not be made then.
func (p *Policy) Decide(call Call) (Decision, error) {
	switch {
	case p == nil:
		return Decision{Action: Allow}, nil
	case p.broken != nil:
		return Decision{Action: Deny, Rule: p.file + ", which can't be used", Reason: p.broken.Error()}, nil
	}
	var hints *Annotations
	for i, r := range p.rules {
		if !r.servers.match(call.Server) || !r.tools.match(call.Tool) {
			continue
		}
		if len(r.when) > 0 && hints == nil {
			a, err := call.Annotations()
			if err != nil {
				return Decision{}, err
			}
			hints = &a
		}
		if slices.ContainsFunc(r.when, func(c condition) bool { return !c.holds(*hints) }) {
			continue
		}
		return Decision{Action: r.action, Rule: fmt.Sprintf("rule %d of %s", i+1, p.file), Reason: r.reason}, nil
	}
	return Decision{Action: p.fallback, Rule: "the default of " + p.file}, nil
}

// Limits returns the limits of a server: the lowest of all that apply to it.
func (p *Policy) Limits(server string) Limits {
	var out Limits
	if p == nil {
		return out
	}
	for _, l := range p.limits {
		if l.servers.match(server) {
			out.InFlight = lower(out.InFlight, l.InFlight)
			out.Calls = lower(out.Calls, l.Calls)
			out.PerCall = lower(out.PerCall, l.PerCall)
		}
	}
	return out
}

// lower returns the lower of two limits, of which 0 is none.
func lower[T int | time.Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// patterns match if any of them does. Nil matches all names, empty none.
type patterns []string

func (p patterns) match(name string) bool {
	return p == nil || slices.ContainsFunc(p, func(pattern string) bool { return matches(pattern, name) })
}

// matches reports whether the pattern matches the whole name. It takes time in
// proportion to the product of their lengths at most.
func matches(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, mark := -1, 0 // the last * and where the text for it ends
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}
