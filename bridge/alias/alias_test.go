package alias

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestServers(t *testing.T) {
	tests := []struct {
		name  string
		names []string
		want  map[string]string
	}{
		{"no names", nil, map[string]string{}},
		{"a valid name stays", []string{"github", "myServer", "_x", "v2"},
			map[string]string{"github": "github", "myServer": "myServer", "_x": "_x", "v2": "v2"}},
		{"other characters become underscores", []string{"my-server", "a b.c/d", "naïve"},
			map[string]string{"my-server": "my_server", "a b.c/d": "a_b_c_d", "naïve": "na_ve"}},
		{"each invalid byte is one character", []string{"a\xff\xfeb"}, map[string]string{"a\xff\xfeb": "a__b"}},
		{"a leading digit", []string{"3d", "1"}, map[string]string{"3d": "_3d", "1": "_1"}},
		{"keywords", []string{"class", "None", "print", "match", "type"},
			map[string]string{"class": "class_", "None": "None_", "print": "print", "match": "match", "type": "type"}},
		{"a keyword only after replacement", []string{"is"}, map[string]string{"is": "is_"}},
		{"only underscores left", []string{"", "_", "__", "日本", "-"},
			map[string]string{"": "server", "-": "server_2", "_": "server_3", "__": "server_4", "日本": "server_5"}},
		{"the fallback can't take a name", []string{"-", "server"},
			map[string]string{"server": "server", "-": "server_2"}},
		{"servers is reserved", []string{"servers"}, map[string]string{"servers": "servers_"}},
		{"servers_ keeps itself", []string{"servers", "servers_"},
			map[string]string{"servers": "servers__2", "servers_": "servers_"}},
		{"collisions in byte order", []string{"a_b", "a.b", "a-b"},
			map[string]string{"a_b": "a_b", "a-b": "a_b_2", "a.b": "a_b_3"}},
		{"numbers that are taken are skipped", []string{"a-b", "a.b", "a_b", "a_b_2"},
			map[string]string{"a_b": "a_b", "a_b_2": "a_b_2", "a-b": "a_b_3", "a.b": "a_b_4"}},
		{"without a valid name the first in byte order gets it", []string{"a.b", "a-b"},
			map[string]string{"a-b": "a_b", "a.b": "a_b_2"}},
		{"a number that another name wants", []string{"a-b", "a.b", "a_b-2"},
			map[string]string{"a-b": "a_b", "a.b": "a_b_2", "a_b-2": "a_b_2_2"}},
		{"case matters", []string{"A", "a"}, map[string]string{"A": "A", "a": "a"}},
		{"a name given twice", []string{"a-b", "a-b"}, map[string]string{"a-b": "a_b"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			if got := Servers(tc.names); !maps.Equal(got, tc.want) {
				t.Errorf("Servers(%q) = %q, want %q", tc.names, got, tc.want)
			}
		})
	}
}

func TestTools(t *testing.T) {
	got := Tools([]string{"servers", "-", "list-items", "get.value", "class", "tool"})
	want := map[string]string{
		"servers": "servers", "-": "tool_2", "list-items": "list_items",
		"get.value": "get_value", "class": "class_", "tool": "tool",
	}
	if !maps.Equal(got, want) {
		t.Errorf("Tools = %q, want %q", got, want)
	}
}

func TestManyCollisions(t *testing.T) {
	const n = 1 << 16 // names of 16 dashes and dots, which all want one identifier
	names := make([]string, n)
	for i := range names {
		b := []byte("a................")
		for bit := range 16 {
			if i>>bit&1 == 1 {
				b[1+bit] = '-'
			}
		}
		names[i] = string(b)
	}
	if got := Tools(names); len(got) != n {
		t.Errorf("%d aliases, want %d", len(got), n)
	}
}

func FuzzAliases(f *testing.F) {
	f.Add("a-b\na.b\na_b\na_b_2")
	f.Add("class\nclass_\nservers\nservers_\nserver\n-")
	f.Add("1\n_1\n\n\xff")
	identifier := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	f.Fuzz(func(t *testing.T, list string) {
		names := strings.Split(list, "\n")
		for what, fn := range map[string]func([]string) map[string]string{"servers": Servers, "tools": Tools} {
			got := fn(names)
			seen := make(map[string]string)
			for name, id := range got {
				if !identifier.MatchString(id) || isKeyword(id) || what == "servers" && id == "servers" {
					t.Errorf("%s: alias of %q is %q", what, name, id)
				}
				if other, ok := seen[id]; ok {
					t.Errorf("%s: %q and %q share the alias %q", what, name, other, id)
				}
				seen[id] = name
				if fn([]string{name})[name] == name && id != name {
					t.Errorf("%s: the valid name %q became %q", what, name, id)
				}
			}
			for _, name := range names {
				if _, ok := got[name]; !ok {
					t.Errorf("%s: %q has no alias", what, name)
				}
			}
			back := slices.Clone(names)
			slices.Reverse(back)
			if again := fn(back); !maps.Equal(got, again) {
				t.Errorf("%s: aliases depend on the order: %q, %q", what, got, again)
			}
		}
	})
}
