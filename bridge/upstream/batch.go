package upstream

import (
	"fmt"
	"path/filepath"
	"strings"
)

// isBatch reports whether Windows runs a program by its command interpreter.
func isBatch(path string) bool {
	ext := filepath.Ext(path)
	return strings.EqualFold(ext, ".cmd") || strings.EqualFold(ext, ".bat")
}

// batchLine returns the command line of Windows' cmd.exe that runs a batch file,
// which is what npx and most other programs from npm are there, with arguments
// that arrive as they are. The error says which one can't.
//
// # Why it isn't left to os/exec
//
// That quotes as C programs read their arguments. cmd.exe has other rules: it
// would run what follows an & in an argument, and replace %PATH%. It must be
// started by name, or Windows starts it with rules of its own.
func batchLine(interpreter, script string, args []string) (string, error) {
	if strings.ContainsAny(script, "\"%\r\n\x00") {
		return "", fmt.Errorf("the path of a batch file must have no quote, percent sign or line break in it: %q", script)
	}
	var b strings.Builder
	// With extensions, which the spelling of % needs; without delayed expansion,
	// which would give ! a meaning; and without what is configured to run first.
	fmt.Fprintf(&b, `"%s" /e:ON /v:OFF /d /c ""%s"`, interpreter, script)
	for i, arg := range args {
		if strings.ContainsAny(arg, "\r\n\x00") {
			return "", fmt.Errorf("args[%d] has a line break in it, which %s can't be given: it is a batch file", i, filepath.Base(script))
		}
		b.WriteString(" ")
		b.WriteString(batchArgument(arg))
	}
	b.WriteString(`"`) // cmd.exe takes off the first and the last
	return b.String(), nil
}

// batchArgument quotes an argument for cmd.exe and for the program that gets it
// from the batch file, which reads it as C programs do.
func batchArgument(arg string) string {
	const plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789#$*+-./:?@_\\"
	if arg != "" && strings.Trim(arg, plain) == "" && !strings.HasSuffix(arg, `\`) {
		return arg
	}
	var b strings.Builder
	backslashes := 0
	b.WriteByte('"')
	for i := range len(arg) {
		switch c := arg[i]; c {
		case '\\':
			backslashes++
			b.WriteByte(c)
			continue
		case '"':
			b.WriteString(strings.Repeat(`\`, backslashes))
			b.WriteString(`""`)
		case '%':
			// No escape exists. But a piece of no characters can be cut from
			// the value of a variable that is always there.
			b.WriteString(`%%cd:~,%`)
		default:
			b.WriteByte(c)
		}
		backslashes = 0
	}
	b.WriteString(strings.Repeat(`\`, backslashes))
	b.WriteByte('"')
	return b.String()
}
