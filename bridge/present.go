package bridge

import (
	"encoding/json"
	"fmt"
	"strings"

	"codeexec/bridge/toon"
)

// text returns the result, whose structured form is given too, as the text of an answer.
func (r *RunResult) text(form TextForm, structured json.RawMessage) string {
	switch form {
	case TextJSON:
		return string(structured)
	case TextTOON:
		var b strings.Builder
		if err := toon.Encode(&b, structured, toon.Options{}); err != nil {
			panic(err) // what json.Marshal has made of a RunResult is valid and flat
		}
		return b.String()
	}
	return r.Compact()
}

// Compact returns the result as text for a model to read: first what happened, then each thing that there
// is to see, once. It has all that the structured form has, except what the summary already says.
func (r *RunResult) Compact() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", r.Status, r.Summary)
	section(&b, "stdout", r.Stdout)
	section(&b, "stderr", r.Stderr)
	if r.Error != nil {
		// The last line of a traceback is the type and the message.
		section(&b, "traceback", r.Error.Traceback)
		if r.Error.Traceback == "" && strings.Contains(strings.TrimSpace(r.Error.Message), "\n") {
			section(&b, "message", r.Error.Message)
		}
	}
	section(&b, "result", r.Result)
	if len(r.Files) > 0 {
		b.WriteString("files:\n")
		for _, f := range r.Files {
			fmt.Fprintf(&b, "  %s %d bytes %s\n", firstLine(f.Name, 300), f.Size, f.URL)
		}
	}
	if len(r.Calls) > 0 {
		b.WriteString("calls made:\n")
		for _, c := range r.Calls {
			fmt.Fprintf(&b, "  %s.%s %s %d ms\n", c.Server, c.Tool, c.Outcome, c.MS)
		}
	}
	return b.String()
}

// section writes text under its name, on the same line if it has only one.
func section(b *strings.Builder, name, text string) {
	if text == "" {
		return
	}
	if body := strings.TrimSuffix(text, "\n"); !strings.Contains(body, "\n") {
		fmt.Fprintf(b, "%s: %s\n", name, body)
		return
	}
	fmt.Fprintf(b, "%s:\n%s", name, text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteString("\n")
	}
}
