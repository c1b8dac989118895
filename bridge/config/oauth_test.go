package config

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Every client spells what it knows of OAuth in its own way.
func TestOAuth(t *testing.T) {
	tests := []struct {
		name  string
		entry string // fields beside "url"
		toml  bool
		want  OAuth
		wrong string // what is wrong with it
	}{
		{name: "nothing"},
		{name: "Claude Code", entry: `"oauth": {"clientId": "c", "callbackPort": 8080, "scopes": "read  write"}`,
			want: OAuth{ClientID: "c", RedirectURI: "http://localhost:8080/callback", Scopes: []string{"read", "write"}}},
		{name: "VS Code", entry: `"type": "http", "oauth": {"clientId": "c"}`, want: OAuth{ClientID: "c"}},
		{name: "Gemini CLI", entry: `"oauth": {"enabled": true, "clientId": "c", "clientSecret": "${SECRET}", "scopes": ["read"], "redirectUri": "http://localhost:7777/oauth/callback"}`,
			want: OAuth{ClientID: "c", ClientSecret: "sesame", Scopes: []string{"read"}, RedirectURI: "http://localhost:7777/oauth/callback"}},
		{name: "OpenCode", entry: `"oauth": {"clientId": "c", "clientSecret": "sesame", "scope": "read"}`, want: OAuth{ClientID: "c", ClientSecret: "sesame", Scopes: []string{"read"}}},
		{name: "OpenCode, off", entry: `"oauth": false`, want: OAuth{Off: true}},
		{name: "Gemini CLI, off", entry: `"oauth": {"enabled": false}`, want: OAuth{Off: true}},
		{name: "Cursor", entry: `"auth": {"CLIENT_ID": "c", "CLIENT_SECRET": "sesame", "scopes": ["read"]}`, want: OAuth{ClientID: "c", ClientSecret: "sesame", Scopes: []string{"read"}}},
		{name: "a word where Cursor has an object", entry: `"auth": "oauth"`},
		{name: "Codex", toml: true, entry: "scopes = [\"read\"]\noauth = {client_id = \"c\"}", want: OAuth{ClientID: "c", Scopes: []string{"read"}}},
		{name: "for itself", entry: `"oauth": {"grantType": "client_credentials", "clientId": "c", "clientSecret": "sesame", "issuer": "https://a.example"}`,
			want: OAuth{ClientID: "c", ClientSecret: "sesame", Issuer: "https://a.example", ClientCredentials: true}},
		{name: "with a key", entry: `"oauth": {"grantType": "client_credentials", "clientId": "c", "privateKey": "${SECRET}"}`,
			want: OAuth{ClientID: "c", PrivateKey: "sesame", ClientCredentials: true}},
		{name: "a key for nothing", entry: `"oauth": {"clientId": "c", "privateKey": "sesame"}`, wrong: "is for the grantType client_credentials"},
		{name: "a key and a secret", entry: `"oauth": {"grantType": "client_credentials", "clientId": "c", "clientSecret": "sesame", "privateKey": "sesame"}`, wrong: "a clientSecret or a privateKey"},
		{name: "on, and null", entry: `"oauth": null, "auth": {}`},
		{name: "on", entry: `"oauth": true`},
		{name: "a number", entry: `"oauth": 1`, wrong: "must be an object or false"},
		{name: "a scope that is an object", entry: `"oauth": {"scopes": {"sesame": 1}}`, wrong: `["scopes"] must be a string`},
		{name: "a secret of nobody", entry: `"oauth": {"clientSecret": "sesame"}`, wrong: "a clientSecret needs its clientId"},
		{name: "a far redirect", entry: `"oauth": {"redirectUri": "http://sesame.example/"}`, wrong: "must be on this machine"},
		{name: "a redirect that only looks near", entry: `"oauth": {"redirectUri": "http://localhost.sesame.example/"}`, wrong: "must be on this machine"},
		{name: "an odd port", entry: `"oauth": {"callbackPort": "1@sesame.example"}`, wrong: "must be on this machine"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			file, text := filepath.Join(t.TempDir(), "servers.json"), `{"mcpServers": {"x": {"url": "https://x.test/mcp", `+tc.entry+`}}}`
			if tc.entry == "" {
				text = strings.Replace(text, ", }", "}", 1)
			}
			if tc.toml {
				file, text = filepath.Join(t.TempDir(), "config.toml"), "[mcp_servers.x]\nurl = \"https://x.test/mcp\"\n"+tc.entry
			}
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			set, err := Load(context.Background(), Options{
				Files: []string{file}, Sources: []Source{}, LookupEnv: func(name string) (string, bool) { return "sesame", name == "SECRET" },
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range set.Problems {
				if strings.Contains(p.Message, "sesame") {
					t.Errorf("a value is shown: %s", p)
				}
			}
			if tc.wrong != "" {
				if len(set.Servers) != 0 || len(set.Problems) != 1 || !strings.Contains(set.Problems[0].Message, tc.wrong) {
					t.Errorf("got %+v, problems %v", set.Servers, set.Problems)
				}
				return
			}
			if len(set.Servers) != 1 || len(set.Problems) != 0 {
				t.Fatalf("got %+v, problems %v", set.Servers, set.Problems)
			}
			if got := set.Servers[0].OAuth; !reflect.DeepEqual(got, tc.want) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// What is copied from another client says the same afterwards.
func TestOAuthIsImported(t *testing.T) {
	tests := []OAuth{
		{},
		{Off: true},
		{ClientID: "c", ClientSecret: "${SECRET}", Scopes: []string{"a", "b"}, RedirectURI: "http://127.0.0.1:1/x", Issuer: "https://a.example", ClientCredentials: true},
		{Scopes: []string{"a"}},
		{ClientID: "c", PrivateKey: "${file:key.pem}", ClientCredentials: true},
	}
	for _, want := range tests {
		text := `{"mcpServers": {"x": ` + string(entry{url: "https://x.test", oauth: want}.canonical()) + `}}`
		got, err := parseMCPServers([]byte(text), location{})
		if err != nil || len(got) != 1 || got[0].err != nil || !reflect.DeepEqual(got[0].oauth, want) {
			t.Errorf("%s is read as %+v, %v", text, got, err)
		}
	}
}
