package policy

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func load(t *testing.T, text string) (*Policy, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "codeexec.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(path)
}

func TestDecide(t *testing.T) {
	const example = `
[audit]
arguments = true

[[policy.rules]]
action = "allow"
servers = ["github"]
tools = ["get_*", "list_*"]

[[policy.rules]]
action = "deny"
servers = ["github", "git-*"]
tools = ["delete_*"]
reason = "Ask Ada first."

[[policy.rules]]
action = "ask"
when = ["not read-only", "destructive"]

[[policy.rules]]
action = "deny"
servers = ["web"]
when = ["open-world"]
`
	const (
		readOnly = `{"readOnlyHint":true,"openWorldHint":false}`
		additive = `{"destructiveHint":false,"openWorldHint":false}`
	)
	tests := []struct {
		name, text, server, tool, hints string
		want                            Action
		rule                            string
	}{
		{"no rules", "", "s", "t", "", Allow, "the default of codeexec.toml"},
		{"a default", "policy.default = \"deny\"", "s", "t", "", Deny, "the default of codeexec.toml"},
		{"the first rule decides", example, "github", "get_repo", "", Allow, "rule 1 of codeexec.toml"},
		{"denied by name", example, "git-lab", "delete_repo", readOnly, Deny, "rule 2 of codeexec.toml"},
		{"another server", example, "gitlab", "delete_repo", additive, Allow, "the default of codeexec.toml"},
		{"no annotations are the worst", example, "x", "y", "", Ask, "rule 3 of codeexec.toml"},
		{"annotations that aren't right", example, "x", "y", `{"readOnlyHint":"yes","destructiveHint":0}`, Ask, "rule 3 of codeexec.toml"},
		{"read-only is never destructive", example, "x", "y", `{"readOnlyHint":true,"destructiveHint":true}`, Allow, "the default of codeexec.toml"},
		{"all conditions must hold", example, "x", "y", additive, Allow, "the default of codeexec.toml"},
		{"open world by default", example, "web", "get", `{"readOnlyHint":true}`, Deny, "rule 4 of codeexec.toml"},
		{"not open world", example, "web", "get", readOnly, Allow, "the default of codeexec.toml"},
		{"case counts", example, "GitHub", "delete_x", additive, Allow, "the default of codeexec.toml"},
		{"an empty list is none", "[[policy.rules]]\naction = \"deny\"\nservers = []", "x", "y", "", Allow, "the default of codeexec.toml"},
		{"only a rule that denies all", "[[policy.rules]]\naction = \"deny\"", "x", "y", "", Deny, "rule 1 of codeexec.toml"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p, err := load(t, tc.text)
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Decide(Call{Server: tc.server, Tool: tc.tool, Annotations: func() (Annotations, error) {
				return ParseAnnotations(json.RawMessage(tc.hints)), nil
			}})
			if err != nil || got.Action != tc.want || got.Rule != tc.rule {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

// Nobody is asked for annotations that nothing depends on, and where they can't
// be had, nothing is decided.
func TestAnnotationsAreAskedForLast(t *testing.T) {
	p, err := load(t, "[[policy.rules]]\naction = \"allow\"\ntools = [\"a\"]\n[[policy.rules]]\naction = \"deny\"\ntools = [\"b\"]\nwhen = [\"destructive\"]\n")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the server is down")
	for tool, want := range map[string]error{"a": nil, "b": broken, "c": nil} {
		_, err := p.Decide(Call{Server: "s", Tool: tool, Annotations: func() (Annotations, error) { return Annotations{}, broken }})
		if err != want {
			t.Errorf("%s: %v, want %v", tool, err, want)
		}
	}
}

func TestFilesThatCantBeUsedDenyEverything(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"not TOML", "[[policy", "codeexec.toml"},
		{"an unknown key", "[policy]\ndefualt = \"deny\"", "policy.defualt is not a setting"},
		{"an unknown key of a rule", "[[policy.rules]]\naction = \"deny\"\ntool = \"x\"", "policy.rules.tool is not a setting"},
		{"a table in the wrong place", "[[rules]]\naction = \"deny\"", "rules is not a table of this file"},
		{"no action", "[[policy.rules]]\ntools = [\"x\"]", `rule 1: action: must be "allow", "ask" or "deny", not ""`},
		{"another action", "[[policy.rules]]\naction = \"Deny\"", `not "Deny"`},
		{"an empty default", "[policy]\ndefault = \"\"", "policy.default"},
		{"another annotation", "[[policy.rules]]\naction = \"deny\"\nwhen = [\"dangerous\"]", `"dangerous" is not an annotation`},
		{"a string for a list", "[[policy.rules]]\naction = \"deny\"\ntools = \"x\"", "codeexec.toml"},
		{"a limit of nothing", "[[policy.limits]]\nservers = [\"x\"]", "limit 1 limits nothing"},
		{"a limit of 0", "[[policy.limits]]\ncalls = 0", "calls must be at least 1"},
		{"a limit that isn't a number", "[[policy.limits]]\nseconds = nan", "seconds must be above 0"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			p, err := load(t, tc.text)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("err = %v, want … %s", err, tc.want)
			}
			got, err := p.Decide(Call{Server: "s", Tool: "t"})
			if err != nil || got.Action != Deny || !strings.Contains(got.Reason, tc.want) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	t.Run("a directory", func(t *testing.T) {
		p, err := Load(t.TempDir())
		if err == nil {
			t.Fatal("no error")
		}
		if got, _ := p.Decide(Call{}); got.Action != Deny {
			t.Errorf("got %+v", got)
		}
	})
}

func TestWithoutAFileEverythingIsAllowed(t *testing.T) {
	p, err := Load(filepath.Join(t.TempDir(), "none", "codeexec.toml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Policy{p, nil} {
		if got, err := p.Decide(Call{Server: "s", Tool: "t"}); err != nil || got.Action != Allow {
			t.Errorf("got %+v, %v", got, err)
		}
		if got := p.Limits("s"); got != (Limits{}) {
			t.Errorf("limits %+v", got)
		}
	}
}

func TestLimits(t *testing.T) {
	p, err := load(t, `
[[policy.limits]]
in_flight = 8
seconds = 1.5
[[policy.limits]]
servers = ["git*"]
in_flight = 2
calls = 10
seconds = 60
`)
	if err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]Limits{
		"github": {InFlight: 2, Calls: 10, PerCall: 1500 * time.Millisecond},
		"files":  {InFlight: 8, PerCall: 1500 * time.Millisecond},
	} {
		if got := p.Limits(server); got != want {
			t.Errorf("%s: %+v, want %+v", server, got, want)
		}
	}
}

func TestMatches(t *testing.T) {
	tests := []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b.c", true}, {"a", "a", true}, {"a", "ab", false},
		{"a*", "a", true}, {"a*c", "abbc", true}, {"a*c", "abcd", false}, {"*b*", "abc", true}, {"?", "é", true},
		{"a?c", "ac", false}, {"[a]", "a", false}, {"[a]", "[a]", true}, {"*_repo", "delete_repo", true},
		{"a*b*c", "aXbYbZc", true}, {"**", "x", true},
		{strings.Repeat("a*", 500) + "b", strings.Repeat("a", 2000), false},
	}
	for _, tc := range tests {
		if got := matches(tc.pattern, tc.name); got != tc.want {
			t.Errorf("matches(%.20q, %.20q) = %v", tc.pattern, tc.name, got)
		}
	}
}
