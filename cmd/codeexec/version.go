package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	pythonwasm "codeexec/python-wasm"
)

// versions are the versions of everything that a bug report needs.
type versions struct {
	Codeexec string `json:"codeexec"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	CPython  string `json:"cpython"`
	Wazero   string `json:"wazero"`
	Artifact string `json:"artifact"` // a hash of the embedded module, also the name of its folder in the cache
}

func newVersionCommand(std streams) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of codeexec and its parts",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			v := currentVersions()
			if asJSON {
				return json.NewEncoder(std.out).Encode(v)
			}
			_, err := fmt.Fprintf(std.out, "codeexec %s (%s, %s)\nCPython %s\nwazero %s\nartifact %s\n",
				v.Codeexec, v.Go, v.Platform, v.CPython, v.Wazero, v.Artifact)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func currentVersions() versions {
	v := versions{
		Codeexec: programVersion(),
		Go:       runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPython:  "none",
		Wazero:   moduleVersion("github.com/tetratelabs/wazero"),
		Artifact: "none, run make python-wasm",
	}
	artifacts, err := pythonwasm.Open()
	if err != nil {
		return v
	}
	v.CPython = artifacts.Manifest.CPython
	if module, err := artifacts.Module(); err != nil {
		v.Artifact = "damaged: " + err.Error()
	} else {
		sum := sha256.Sum256(module)
		v.Artifact = hex.EncodeToString(sum[:8])
	}
	return v
}

// programVersion is the version of the module, "(devel)" for a build from a checkout without tags.
func programVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// moduleVersion is the version of a dependency.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			if dep.Replace != nil {
				dep = dep.Replace
			}
			return dep.Version
		}
	}
	return "unknown"
}
