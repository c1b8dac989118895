package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"codeexec/bridge/upstream"
	"codeexec/wasmhost"
)

// stubTime bounds how long it may take to write the signatures of a server, which may have to start for it.
const stubTime = time.Minute

// stubs returns the Python signatures of a server's tools. They are those that a script gets by
// runtime.stubs: it is a script that writes them, in a sandbox of its own that sees no files.
func (b *Bridge) stubs(ctx context.Context, server string) (string, error) {
	ctx, end, err := b.begin(ctx)
	if err != nil {
		return "", err
	}
	defer end()
	ctx, cancel := context.WithTimeout(ctx, stubTime)
	defer cancel()
	select { // one at a time: they count among no session's
	case b.stubTurn <- struct{}{}:
		defer func() { <-b.stubTurn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	info, ok := findServer(b.upstreams.Servers(), server)
	if !ok {
		return "", errors.New(unknownServer(server, nil))
	}
	env, err := b.env(&plan{timeout: stubTime, restricted: true, servers: []upstream.Info{info}})
	if err != nil {
		return "", err
	}
	name, err := json.Marshal(info.Name) // which is a string of Python's too
	if err != nil {
		return "", err
	}
	sandbox, err := b.opts.Engine.NewSandbox(ctx, wasmhost.SessionOptions{Handler: b.handler})
	if err != nil {
		return "", err
	}
	defer func() {
		if err := sandbox.Close(context.WithoutCancel(ctx)); err != nil {
			b.opts.Logger.ErrorContext(ctx, "closing a sandbox", "error", err)
		}
	}()
	scope := &runScope{id: newRunID(), allowed: []string{info.Name}}
	res, err := sandbox.Run(withScope(ctx, scope), wasmhost.Request{
		Code: fmt.Sprintf("import mcp.runtime\nprint(mcp.runtime.stubs(%s), end='')\n", name),
		Env:  env,
	})
	switch {
	case err != nil:
		return "", err
	case res.Exception != nil:
		return "", errors.New(firstLine(res.Exception.Message, maxMessage))
	case res.Outcome != wasmhost.Success:
		return "", fmt.Errorf("ended with %s", res.Outcome)
	}
	return wholePrintable(res.Stdout), nil
}
