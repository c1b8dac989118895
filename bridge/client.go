//lint:file-ignore SA1019 Sampling and roots are deprecated, but in use for years to come.

package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"codeexec/bridge/upstream"
)

// errNoSuchRequest is said to servers that ask a client for what it hasn't offered.
var errNoSuchRequest = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the client can't be asked for that"}

// answerTime is how long people may think about a question. A client may have gone without a word.
const answerTime = 10 * time.Minute

var errNoAnswer = fmt.Errorf("the client has not answered within %v", answerTime)

// A sessionClient is the MCP client at the other end of a connection, as the servers that scripts call may
// turn to it.
type sessionClient struct {
	session *mcp.ServerSession
	owner   string // of the run; empty where there is only one client
	feed    *feed  // gets how far calls are

	// How it is asked if the protocol version has no requests of servers, and what its request says that it can
	// be asked; nil otherwise.
	rounds       *rounds
	capabilities *mcp.ClientCapabilities
}

// Capabilities implements [upstream.Client].
func (c *sessionClient) Capabilities() *mcp.ClientCapabilities {
	if c.rounds != nil {
		return c.capabilities
	}
	if params := c.session.InitializeParams(); params != nil {
		return params.Capabilities
	}
	return nil
}

// Identity implements [upstream.Client]. An owner is the same over all of its connections, of which it may make
// one for each request.
func (c *sessionClient) Identity() any {
	if c.owner != "" {
		return c.owner
	}
	return c.session
}

// Request implements [upstream.Client].
func (c *sessionClient) Request(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	request, err := decodeRequest(method, params)
	if err != nil {
		return nil, err
	}
	if !supports(c.Capabilities(), request) {
		return nil, errNoSuchRequest
	}
	if elicit, ok := request.(*mcp.ElicitParams); ok {
		// People should know who wants to know.
		elicit.Message = fmt.Sprintf("[%s] %s", server, elicit.Message)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errNoAnswer)
	defer cancel()
	if c.rounds != nil {
		return c.rounds.ask(ctx, request)
	}
	var result any
	switch p := request.(type) {
	case *mcp.ElicitParams:
		result, err = c.session.Elicit(ctx, p)
	case *mcp.CreateMessageWithToolsParams:
		result, err = c.session.CreateMessageWithTools(ctx, p)
	case *mcp.ListRootsParams:
		result, err = c.session.ListRoots(ctx, p)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// supports reports whether a client with these capabilities can be asked that.
func supports(has *mcp.ClientCapabilities, request mcp.InputRequest) bool {
	if has == nil {
		return false
	}
	switch request.(type) {
	case *mcp.ElicitParams:
		return has.Elicitation != nil
	case *mcp.CreateMessageWithToolsParams:
		return has.Sampling != nil
	case *mcp.ListRootsParams:
		return has.RootsV2 != nil
	}
	return false
}

// decodeRequest reads the parameters of a request that servers may make of clients.
func decodeRequest(method string, params json.RawMessage) (mcp.InputRequest, error) {
	var request mcp.InputRequest
	switch method {
	case "elicitation/create":
		request = &mcp.ElicitParams{}
	case "sampling/createMessage":
		request = &mcp.CreateMessageWithToolsParams{}
	case "roots/list":
		request = &mcp.ListRootsParams{}
	default:
		return nil, errNoSuchRequest
	}
	if err := json.Unmarshal(params, request); err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("%s: %v", method, err)}
	}
	return request, nil
}

// Progress implements [upstream.Client].
func (c *sessionClient) Progress(server, tool string, p upstream.Progress) {
	c.feed.call(server, tool, p)
}

// A runClient is a client as one run sees it: the run's clock stands still while it is asked.
type runClient struct {
	upstream.Client
	clock *clock
}

// Request implements [upstream.Client].
func (c *runClient) Request(ctx context.Context, server, method string, params json.RawMessage) (json.RawMessage, error) {
	defer c.clock.stop()()
	return c.Client.Request(ctx, server, method, params)
}
