package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/reeflective/readline"
	"github.com/reeflective/readline/inputrc"
	"golang.org/x/term"

	"codeexec/wasmhost"
)

const (
	prompt     = ">>> "
	promptMore = "... "
	indent     = "    "
)

// A terminalInput is a prompt with a line editor.
type terminalInput struct {
	repl  *repl
	shell *readline.Shell
	style style
	ctx   context.Context // of the read in progress; the editor's callbacks have no other way to it

	painted, painting string // the text that was coloured last, and how
}

// openTerminal makes a prompt if the standard streams are a terminal. history is a file; empty means that inputs are
// forgotten.
func openTerminal(std streams, r *repl, history string) (*terminalInput, bool) {
	in, ok := std.in.(*os.File)
	out, ok2 := std.out.(*os.File)
	if !ok || !ok2 || !term.IsTerminal(int(in.Fd())) || !term.IsTerminal(int(out.Fd())) {
		return nil, false
	}
	t := &terminalInput{repl: r, shell: readline.NewShell(inputrc.WithApp("codeexec")), style: terminalStyle(os.LookupEnv)}
	for _, option := range []struct {
		name  string
		value bool
	}{
		{"input-meta", true}, {"output-meta", true}, {"convert-meta", false}, // keys beyond ASCII are text, not commands
		{"menu-complete-display-prefix", true}, // as in a shell: first what all words have in common, then one after the other
	} {
		if err := t.shell.Config.Set(option.name, option.value); err != nil {
			return nil, false
		}
	}
	t.shell.Prompt.Primary(func() string { return t.style.paint(stylePrompt, prompt) })
	t.shell.Prompt.Secondary(func() string { return t.style.paint(stylePrompt, promptMore) })
	t.shell.Completer = t.complete
	if t.style.colours {
		t.shell.SyntaxHighlighter = t.highlight
	}
	if history != "" {
		if source, err := readline.NewHistoryFromFile(history); err == nil {
			t.shell.History.Add("inputs", source)
		}
	}
	accept, complete := t.shell.Keymap.Commands()["accept-line"], t.shell.Keymap.Commands()["menu-complete"]
	t.shell.Keymap.Register(map[string]func(){
		"python-enter": func() { t.enter(accept) },
		"python-tab":   func() { t.tab(complete) },
	})
	for _, keymap := range []string{"emacs", "vi-insert"} {
		for sequence, action := range map[string]string{`\C-m`: "python-enter", `\C-j`: "python-enter", `\C-i`: "python-tab"} {
			if err := t.shell.Config.Bind(keymap, inputrc.Unescape(sequence), action, false); err != nil {
				return nil, false
			}
		}
	}
	return t, true
}

// historyFile returns the name of the file of earlier inputs, which exists.
func historyFile(s settings, logger *slog.Logger) string {
	if s.stateDir == "" {
		return ""
	}
	name := filepath.Join(s.stateDir, "repl_history.jsonl")
	err := os.MkdirAll(s.stateDir, 0o700)
	if err == nil {
		var f *os.File
		if f, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			err = f.Close()
		}
	}
	if err != nil {
		logger.Warn("inputs aren't kept", "error", err)
		return ""
	}
	return name
}

func (t *terminalInput) read(ctx context.Context) (string, error) {
	t.ctx = ctx
	t.repl.logs.hold()
	defer t.repl.logs.release()
	text, err := t.shell.Readline()
	switch {
	case errors.Is(err, readline.ErrInterrupt):
		return "", errAbandoned
	case errors.Is(err, io.EOF) && strings.TrimSpace(text) != "":
		return "", errAbandoned
	}
	return text, err
}

// enter executes a whole input, and begins the next line of another, as deep as the code demands.
func (t *terminalInput) enter(accept func()) {
	line, cursor := t.shell.Line(), t.shell.Cursor()
	text := string(*line)
	atEnd := strings.TrimSpace(string((*line)[cursor.Pos():])) == ""
	if atEnd && t.repl.isComplete(t.ctx, strings.TrimRight(text, " \t")+blankEnd(text)) {
		accept()
		return
	}
	next := []rune("\n" + indentAfter(string((*line)[:cursor.Pos()])))
	line.Insert(cursor.Pos(), next...)
	cursor.Move(len(next))
}

// blankEnd is what has to stay of a text's last line if there is nothing but space in it.
func blankEnd(text string) string {
	if i := strings.LastIndexByte(text, '\n'); i >= 0 && strings.TrimSpace(text[i:]) == "" {
		return "\n"
	}
	return ""
}

// indentAfter returns the space in front of the line that follows text.
func indentAfter(text string) string {
	last := text[strings.LastIndexByte(text, '\n')+1:]
	depth := last[:len(last)-len(strings.TrimLeft(last, " \t"))]
	code := strings.TrimSpace(last)
	first, _, _ := strings.Cut(code, " ")
	switch {
	case strings.HasSuffix(code, ":"), strings.HasSuffix(code, "("), strings.HasSuffix(code, "["), strings.HasSuffix(code, "{"):
		return depth + indent
	case first == "return" || first == "pass" || first == "break" || first == "continue" || first == "raise":
		return strings.TrimSuffix(depth, indent)
	}
	return depth
}

// tab indents at the start of a line, and completes elsewhere.
func (t *terminalInput) tab(complete func()) {
	line, cursor := t.shell.Line(), t.shell.Cursor()
	before := string((*line)[:cursor.Pos()])
	if strings.TrimSpace(before[strings.LastIndexByte(before, '\n')+1:]) != "" {
		complete()
		return
	}
	line.Insert(cursor.Pos(), []rune(indent)...)
	cursor.Move(len(indent))
}

// complete offers what Python says can stand at the cursor.
func (t *terminalInput) complete(line []rune, cursor int) readline.Completions {
	var answer struct {
		start int
		names []string
	}
	parts := []any{&answer.start, &answer.names}
	if !t.repl.ask(t.ctx, wasmhost.EditNames, string(line[:cursor]), &parts) || answer.start < 0 || answer.start > cursor {
		return readline.Completions{}
	}
	// The editor replaces the word in front of the cursor, which for it begins after a space.
	word := answer.start
	for word > 0 && !unicode.IsSpace(line[word-1]) {
		word--
	}
	before := string(line[word:answer.start])
	offered := make([]readline.Completion, len(answer.names))
	for i, name := range answer.names {
		offered[i] = readline.Completion{Value: before + name, Display: name}
	}
	c := readline.CompleteRaw(offered)
	c.PREFIX = string(line[word:cursor])
	return c
}

// highlight colours a text. It is called for each key.
func (t *terminalInput) highlight(line []rune) string {
	text := string(line)
	if text == t.painted {
		return t.painting
	}
	var spans []span
	if !t.repl.ask(t.ctx, wasmhost.EditSpans, text, &spans) {
		return text
	}
	t.painted, t.painting = text, t.style.code(line, spans)
	return t.painting
}

// A span is a part of a text: its borders in code points, and what it is.
type span struct {
	start, end int
	kind       string
}

func (s *span) UnmarshalJSON(data []byte) error {
	return json.Unmarshal(data, &[]any{&s.start, &s.end, &s.kind})
}
