package bridge

import (
	"bytes"
	_ "embed"
	"encoding/base64"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

//go:embed icon.svg
var iconSource []byte

// icons is the picture that clients show beside the name of the program. It rides along with many answers, so
// it has to be small.
func icons() []mcp.Icon {
	return []mcp.Icon{{
		Source:   "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(bytes.TrimSpace(iconSource)),
		MIMEType: "image/svg+xml",
		Sizes:    []string{"any"},
	}}
}
