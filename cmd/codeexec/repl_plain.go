package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// A plainInput reads inputs of a repl from something that isn't a terminal. Lines are gathered until Python says
// that they are a whole input.
type plainInput struct {
	repl  *repl
	lines <-chan plainLine
}

type plainLine struct {
	text string
	err  error // of reading on; nil: there may be more
}

// newPlainInput reads in from a goroutine, so that the end of a context gets through. The goroutine lives as long as
// in gives no line and no error, which is as long as the process at most.
func newPlainInput(in io.Reader, r *repl) *plainInput {
	lines := make(chan plainLine)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(in)
		for {
			text, err := reader.ReadString('\n')
			lines <- plainLine{text, err}
			if err != nil {
				return
			}
		}
	}()
	return &plainInput{repl: r, lines: lines}
}

func (p *plainInput) read(ctx context.Context) (string, error) {
	var text strings.Builder
	for {
		var line plainLine
		ok := false
		select {
		case line, ok = <-p.lines:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		text.WriteString(line.text)
		if text.Len() > maxScript {
			return "", fmt.Errorf("an input has more than %d bytes", maxScript)
		}
		switch {
		case line.err != nil && !errors.Is(line.err, io.EOF):
			return "", fmt.Errorf("reading the input: %w", line.err)
		case !ok || line.err != nil:
			if text.Len() == 0 {
				return "", io.EOF
			}
			return text.String(), nil // unfinished or not: Python says what is wrong
		}
		if whole := strings.TrimSuffix(text.String(), "\n"); p.repl.isComplete(ctx, whole) {
			return whole, nil
		}
	}
}
