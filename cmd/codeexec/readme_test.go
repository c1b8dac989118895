package main

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// The reference tables of README.md name what there is, and nothing else.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)

	t.Run("environment variables", func(t *testing.T) {
		read := make(map[string]bool)
		environment(func(name string) (string, bool) {
			read[name] = true
			return "", false
		}).read(slog.LevelInfo)
		listed := make(map[string]bool)
		for _, row := range regexp.MustCompile("(?m)^\\| `(CODEEXEC_[A-Z_]+)` \\|").FindAllStringSubmatch(readme, -1) {
			listed[row[1]] = true
			if !read[row[1]] {
				t.Errorf("%s is listed, and nothing reads it", row[1])
			}
		}
		for name := range read {
			if strings.HasPrefix(name, "CODEEXEC_") && !listed[name] {
				t.Errorf("%s is not listed", name)
			}
		}
	})

	root := newRootCommand(streams{})
	t.Run("commands", func(t *testing.T) {
		table := regexp.MustCompile(`(?s)\| command \| \|.*?\n\n`).FindString(readme)
		for _, cmd := range root.Commands() {
			if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
				continue
			}
			if !regexp.MustCompile("`(codeexec )?" + cmd.Name() + "\\b").MatchString(table) {
				t.Errorf("%s is not listed", cmd.CommandPath())
			}
			for _, sub := range cmd.Commands() {
				if !sub.Hidden && !regexp.MustCompile(`\b`+cmd.Name()+` [a-z\\|]*\b`+sub.Name()+`\b`).MatchString(table) {
					t.Errorf("%s is not listed", sub.CommandPath())
				}
			}
		}
	})

	t.Run("flags", func(t *testing.T) {
		rows := regexp.MustCompile("(?m)^\\| (?:`-[a-z]`, )?`--([a-z-]+)[^`]*` \\| ([a-z, ]+) \\|").FindAllStringSubmatch(readme, -1)
		if len(rows) == 0 {
			t.Fatal("no flags are listed")
		}
		listed := make(map[string][]string) // commands, by flag
		for _, row := range rows {
			listed[row[1]] = strings.Split(row[2], ", ")
			for _, name := range listed[row[1]] {
				cmd, _, err := root.Find(strings.Fields(name))
				if err != nil || cmd == root || cmd.Flags().Lookup(row[1]) == nil {
					t.Errorf("there is no flag --%s of %q", row[1], name)
				}
			}
		}
		for _, name := range []string{"exec", "serve", "repl", "install", "uninstall"} {
			cmd, _, err := root.Find([]string{name})
			if err != nil {
				t.Fatal(err)
			}
			for _, flag := range flagNames(cmd) {
				if !slices.Contains(listed[flag], name) {
					t.Errorf("--%s of %s is not listed", flag, name)
				}
			}
		}
	})
}

func flagNames(cmd *cobra.Command) (names []string) {
	for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
		if m := regexp.MustCompile(`--([a-z-]+)`).FindStringSubmatch(line); m != nil && m[1] != "help" {
			names = append(names, m[1])
		}
	}
	return names
}
