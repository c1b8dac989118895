package bridge

import (
	"context"
	"encoding/json"
	"errors"

	"codeexec/wasmhost"
)

// Edit answers a line editor's question about code for the session of req, with the servers of req; see
// [wasmhost.Edit] for questions and answers. It waits for the session's runs. Nothing of it is a run: it is
// neither recorded nor counted. Where ctx ends first, the answer is null.
func (b *Bridge) Edit(ctx context.Context, req RunRequest, edit wasmhost.Edit) (json.RawMessage, error) {
	plan, err := b.plan(req)
	if err != nil {
		return nil, err
	}
	ctx, end, err := b.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	place, err := b.sessions.enqueue(sessionKey{req.Owner, plan.session})
	if err != nil {
		return nil, err
	}
	defer place.leave()
	b.closeEvicted(ctx, place)
	if err := place.wait(ctx); err != nil {
		return nil, err
	}
	session := place.session
	if err := b.openSandbox(ctx, session); err != nil {
		return nil, err
	}
	env, err := b.env(plan)
	if err != nil {
		return nil, err
	}
	res, err := session.sandbox.Run(withScope(ctx, b.newScope(newRunID(), req, plan)), wasmhost.Request{Edit: &edit, Env: env})
	switch {
	case err != nil:
		session.anew = "the sandbox had failed, and the session was reset"
		return nil, errors.Join(err, session.close(context.WithoutCancel(ctx)))
	case res.Reset != "":
		session.anew = "completing a line had failed, and the session was reset"
	}
	if !json.Valid([]byte(res.Value)) {
		return json.RawMessage("null"), nil
	}
	return json.RawMessage(res.Value), nil
}
