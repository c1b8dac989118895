// Command codeexec runs Python scripts that call MCP servers, in a sandbox.
//
// Each command is a file that turns flags and environment into options, calls package bridge, and turns
// what comes back into output and an exit code. How anything works is known elsewhere.
package main

import (
	"os"

	"codeexec/bridge/upstream"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == upstream.SuperviseArg {
		os.Exit(upstream.SuperviseMain(os.Args[2:]))
	}
	os.Exit(run(os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}
