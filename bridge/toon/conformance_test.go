package toon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"codeexec/testdata/npm"
)

// The tests for encoders that come with the specification, all of them.
func TestConformance(t *testing.T) {
	bin := npm.Need(t, npm.Bin)
	files, err := filepath.Glob(filepath.Join(filepath.Dir(bin), "@toon-format/spec/tests/fixtures/encode/*.json"))
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var fixture struct {
			Tests []struct {
				Name        string
				Input       json.RawMessage
				Expected    string
				ShouldError bool
				Options     struct {
					Indent       int
					Delimiter    string
					KeyFolding   string
					FlattenDepth *int
				}
			}
		}
		if err := json.Unmarshal(data, &fixture); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, tc := range fixture.Tests {
			count++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json")+"/"+tc.Name, func(t *testing.T) {
				opts := Options{Indent: tc.Options.Indent}
				if d := tc.Options.Delimiter; d != "" {
					opts.Delimiter = Delimiter(d[0])
				}
				if tc.Options.KeyFolding == "safe" {
					opts.Fold = FoldAll
					if depth := tc.Options.FlattenDepth; depth != nil {
						opts.Fold = *depth
					}
				}
				var b strings.Builder
				err := Encode(&b, tc.Input, opts)
				if (err != nil) != tc.ShouldError {
					t.Fatalf("error %v", err)
				}
				if got := b.String(); err == nil && got != tc.Expected {
					t.Errorf("%s is written as\n%s\nwant\n%s", tc.Input, got, tc.Expected)
				}
			})
		}
	}
	if count < 100 {
		t.Errorf("%d tests in %d files, want all of the specification's", count, len(files))
	}
}
