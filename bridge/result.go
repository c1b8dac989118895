package bridge

import (
	"encoding/json"
	"fmt"

	"codeexec/hostfuncs"
)

// guestResult prepares a tool's result for the guest: it is passed on as the server sent it, except that
// base64 text becomes attachments. In content blocks "data" (image, audio) and "resource"."blob" are
// replaced by "attachment", the index of an attachment; a structuredContent that is null stays, so that it
// differs from one that is absent.
//
// raw is a CallToolResult (https://modelcontextprotocol.io/specification/2025-11-25/server/tools#tool-result).
func guestResult(raw json.RawMessage) (resp hostfuncs.Response, isError bool, err error) {
	var result map[string]json.RawMessage
	if err := json.Unmarshal(raw, &result); err != nil {
		return hostfuncs.Response{}, false, fmt.Errorf("the result is not a JSON object: %w", err)
	}
	if e, ok := result["isError"]; ok {
		// A server that sends something else than a boolean gets the benefit of the doubt.
		_ = json.Unmarshal(e, &isError)
	}
	var blocks []map[string]json.RawMessage
	if content, ok := result["content"]; ok {
		if err := json.Unmarshal(content, &blocks); err != nil {
			return hostfuncs.Response{}, false, fmt.Errorf("content is not a list of objects: %w", err)
		}
	}
	for i, block := range blocks {
		var kind string
		_ = json.Unmarshal(block["type"], &kind) // no type: a block of no kind that we know
		where, key := block, "data"
		switch kind {
		case "image", "audio":
		case "resource":
			key, where = "blob", nil
			if err := json.Unmarshal(block["resource"], &where); err != nil {
				return hostfuncs.Response{}, false, fmt.Errorf("content[%d].resource is not an object: %w", i, err)
			}
		default:
			continue
		}
		encoded, ok := where[key]
		if !ok {
			continue
		}
		var data []byte
		if err := json.Unmarshal(encoded, &data); err != nil {
			return hostfuncs.Response{}, false, fmt.Errorf("content[%d] %s: %s is not base64: %w", i, kind, key, err)
		}
		delete(where, key)
		where["attachment"], _ = json.Marshal(len(resp.Attachments)) // an int always encodes
		resp.Attachments = append(resp.Attachments, data)
		if kind == "resource" {
			if block["resource"], err = json.Marshal(where); err != nil {
				return hostfuncs.Response{}, false, err
			}
		}
	}
	if len(resp.Attachments) > 0 {
		if result["content"], err = json.Marshal(blocks); err != nil {
			return hostfuncs.Response{}, false, err
		}
		if raw, err = json.Marshal(result); err != nil {
			return hostfuncs.Response{}, false, err
		}
	}
	resp.Value = raw
	return resp, isError, nil
}
