package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"codeexec/bridge/config/syntax"
)

// parseCodex decodes the configuration of Codex, which is TOML:
//
//	[mcp_servers.name]
//	command, args, env, env_vars, cwd                                     # a program
//	url, http_headers, env_http_headers, bearer_token_env_var             # or streamable HTTP
//	oauth = {client_id}, scopes
//	enabled, tool_timeout_sec
func parseCodex(data []byte, _ location) ([]entry, error) {
	file, err := syntax.TOML(data)
	if err != nil {
		return nil, err
	}
	value, ok := file["mcp_servers"]
	if !ok {
		return nil, errNoServers
	}
	servers, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New(`"mcp_servers" must be a table, a server's name each key`)
	}
	var entries []entry
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		entries = append(entries, codexEntry(name, servers[name]))
	}
	return entries, nil
}

func codexEntry(name string, value any) entry {
	e := entry{name: name}
	table, ok := value.(map[string]any)
	if !ok {
		e.err = errors.New("it must be a table")
		return e
	}
	for _, key := range slices.Sorted(maps.Keys(table)) {
		if err := codexField(&e, key, table[key]); err != nil {
			e.err = fmt.Errorf("%q %w", key, err)
			return e
		}
		if why, ok := ignoredField(key); ok {
			e.ignored = append(e.ignored, key+": "+why)
		}
	}
	if e.url != "" && e.command == "" {
		e.transport = TransportHTTP // it knows no other
	}
	return e
}

func codexField(e *entry, key string, value any) (err error) {
	header := func(name, value string) {
		if e.headers == nil {
			e.headers = make(map[string]string)
		}
		e.headers[name] = value
	}
	variable := func(name, value string) {
		if e.env == nil {
			e.env = make(map[string]string)
		}
		if _, given := e.env[name]; !given {
			e.env[name] = value
		}
	}
	switch key {
	case "command":
		e.command, err = tomlText(value)
	case "args":
		e.args, err = tomlTexts(value)
	case "cwd":
		e.cwd, err = tomlText(value)
	case "url":
		e.url, err = tomlText(value)
	case "env":
		e.env, err = tomlMap(value)
	case "env_vars": // to be passed on; after "env", by the order of keys
		var names []string
		names, err = codexVariables(value)
		for _, name := range names {
			variable(name, "${"+name+":-}")
		}
	case "http_headers":
		var headers map[string]string
		headers, err = tomlMap(value)
		for name, value := range headers {
			header(name, value)
		}
	case "env_http_headers":
		var headers map[string]string
		headers, err = tomlMap(value)
		for name, value := range headers {
			header(name, "${"+value+"}")
		}
	case "bearer_token_env_var":
		var name string
		if name, err = tomlText(value); err == nil && name != "" {
			header("Authorization", "Bearer ${"+name+"}")
		}
	case "oauth":
		table, ok := value.(map[string]any)
		if !ok {
			return errors.New("must be a table")
		}
		e.oauth.ClientID, _ = table["client_id"].(string)
	case "scopes":
		e.oauth.Scopes, err = tomlTexts(value)
	case "tool_timeout_sec":
		var s string
		if s, err = tomlText(value); err == nil {
			e.timeout, err = parseLimit(s, time.Second)
		}
	case "enabled":
		enabled, ok := value.(bool)
		if !ok {
			return errors.New("must be true or false")
		}
		e.disabled = !enabled
	}
	return err
}

// codexVariables decodes the names of variables, each a string or a table that
// has it.
func codexVariables(value any) ([]string, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("must be a list of names of variables")
	}
	var names []string
	for i, element := range list {
		if table, ok := element.(map[string]any); ok {
			if table["source"] == "remote" {
				continue // of another machine
			}
			element = table["name"]
		}
		name, ok := element.(string)
		if !ok || !isVariable(name) {
			return nil, fmt.Errorf("[%d] must be the name of a variable", i)
		}
		names = append(names, name)
	}
	return names, nil
}

// tomlText decodes a string, or a number or boolean as text.
func tomlText(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case int64:
		return strconv.FormatInt(v, 10), nil
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", errors.New("must be a string")
}

func tomlTexts(value any) ([]string, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("must be a list of strings")
	}
	var texts []string
	for i, element := range list {
		s, err := tomlText(element)
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
		texts = append(texts, s)
	}
	return texts, nil
}

func tomlMap(value any) (map[string]string, error) {
	table, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("must be a table of strings")
	}
	m := make(map[string]string, len(table))
	for _, key := range slices.Sorted(maps.Keys(table)) {
		s, err := tomlText(table[key])
		if err != nil {
			return nil, fmt.Errorf("[%q] %w", key, err)
		}
		m[key] = s
	}
	return m, nil
}
