package upstream

import (
	"fmt"
	"os"
)

// SuperviseMain isn't needed on Windows, where a job object does its work.
func SuperviseMain([]string) int {
	fmt.Fprintf(os.Stderr, "codeexec: %s doesn't exist on Windows\n", SuperviseArg)
	return 2
}
