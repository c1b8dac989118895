package bridge

import (
	"crypto/sha256"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ownerOf says whose sessions and runs a request is about: whoever the token that came with it belongs to, or
// else the connection of the protocol that it is part of. It is empty where neither is known, as on standard
// input and output.
func ownerOf(req mcp.Request) string {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.UserID
	}
	if session := req.GetSession(); session != nil && session.ID() != "" {
		return connectionOwner(session.ID())
	}
	return ""
}

// connectionOwner is the owner that a connection over HTTP is. It can be logged: whoever knows the connection's
// own id can use it. No name of a token has a colon.
func connectionOwner(id string) string {
	return fmt.Sprintf("connection:%x", sha256.Sum256([]byte(id)))[:len("connection:")+12]
}
