package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"
)

// members returns the values of a key, of which there may be several.
func members(object *hujson.Object, key string) []hujson.Value {
	var values []hujson.Value
	for _, m := range object.Members {
		if literal(m.Name) == key {
			values = append(values, m.Value)
		}
	}
	return values
}

// child returns the object that a key holds, or nil.
func child(object *hujson.Object, key string) *hujson.Object {
	for _, v := range members(object, key) {
		if o, ok := v.Value.(*hujson.Object); ok {
			return o
		}
	}
	return nil
}

// A dialect is what differs between the formats that spell an entry as a JSON
// object.
type dialect struct {
	// unit is that of numbers that are time limits; 0 means that they may be
	// in seconds or milliseconds.
	unit time.Duration
	// references respells the references to variables in a value of the file;
	// nil leaves them as they are.
	references func(value string, at location) string
}

// servers decodes the entries that a key of an object holds, by their names.
// It returns errNoServers if there is no such key.
func (d dialect) servers(object *hujson.Object, key string, at location) ([]entry, error) {
	values := members(object, key)
	if len(values) == 0 {
		return nil, errNoServers
	}
	var entries []entry
	for _, v := range values {
		servers, ok := v.Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("%q must be an object, a server's name each key", key)
		}
		for _, server := range servers.Members {
			entries = append(entries, d.entry(literal(server.Name), server.Value, at))
		}
	}
	return entries, nil
}

// entry decodes one entry. The clients' names for its fields don't contradict
// each other, so all of them are understood wherever they are found. Fields
// that aren't known are ignored: they are the client's business. Numbers and
// booleans are taken for strings where a string is wanted ("PORT": 8080).
func (d dialect) entry(name string, value hujson.Value, at location) entry {
	e := entry{name: name}
	fields, ok := value.Value.(*hujson.Object)
	if !ok {
		e.err = errors.New("it must be an object")
		return e
	}
	urls := make(map[string]string)
	for _, field := range fields.Members {
		key := literal(field.Name)
		if err := d.field(&e, urls, key, field.Value); err != nil {
			// The rest of the entry isn't worth reporting: one thing at a time.
			e.err = fmt.Errorf("%q %w", key, err)
			return e
		}
		if why, ok := ignoredField(key); ok && !empty(field.Value) {
			e.ignored = append(e.ignored, key+": "+why)
		}
	}
	// Gemini CLI takes the first of these that is there.
	for _, key := range []string{"httpUrl", "serverUrl", "url"} {
		if e.url == "" && urls[key] != "" {
			e.url = urls[key]
			if key == "httpUrl" && e.transport == "" && e.command == "" {
				e.transport = TransportHTTP
			}
		}
	}
	if d.references != nil {
		e.eachValue(func(value string) string { return d.references(value, at) })
	}
	return e
}

func (d dialect) field(e *entry, urls map[string]string, key string, value hujson.Value) (err error) {
	switch key {
	case "command":
		return d.command(e, value)
	case "args":
		var args []string
		args, err = texts(value)
		e.args = append(e.args, args...)
	case "env", "environment":
		e.env, err = variables(value)
	case "envFile":
		e.envFile, err = text(value)
	case "cwd":
		e.cwd, err = text(value)
	case "url", "httpUrl", "serverUrl":
		urls[key], err = text(value)
	case "type", "transport":
		var word string
		if word, err = text(value); err == nil {
			e.transport, err = parseTransport(word)
		}
	case "headers":
		e.headers, err = variables(value)
	case "oauth":
		err = decodeOAuth(e, value)
	case "auth":
		// Cursor's name for it; elsewhere it can be a word or a token.
		if _, ok := value.Value.(*hujson.Object); ok {
			err = decodeOAuth(e, value)
		}
	case "timeout":
		e.timeout, err = d.limit(value)
	case "description":
		e.description, err = text(value)
	case "disabled":
		var disabled bool
		disabled, err = boolean(value)
		e.disabled = e.disabled || disabled
	case "enabled":
		var enabled bool
		enabled, err = boolean(value)
		e.disabled = e.disabled || !enabled && !isNull(value)
	}
	return err
}

// command decodes a program: its name, its command line as a list (OpenCode),
// or an object (Zed, until 2025).
func (d dialect) command(e *entry, value hujson.Value) (err error) {
	switch v := value.Value.(type) {
	case *hujson.Array:
		words, err := texts(value)
		if err != nil || len(words) == 0 {
			return err
		}
		e.command, e.args = words[0], append(words[1:], e.args...)
	case *hujson.Object:
		for _, field := range v.Members {
			switch literal(field.Name) {
			case "path":
				e.command, err = text(field.Value)
			case "args":
				e.args, err = texts(field.Value)
			case "env":
				e.env, err = variables(field.Value)
			}
			if err != nil {
				return fmt.Errorf("%q %w", literal(field.Name), err)
			}
		}
	default:
		e.command, err = text(value)
	}
	return err
}

// limit decodes a time limit: a number, a string with a unit, or an object
// whose key "request" has it (OpenCode).
func (d dialect) limit(value hujson.Value) (time.Duration, error) {
	if object, ok := value.Value.(*hujson.Object); ok {
		for _, v := range members(object, "request") {
			return limit(v, d.unit)
		}
		return 0, nil
	}
	return limit(value, d.unit)
}

// parseTransport reads a client's name for a transport.
func parseTransport(word string) (string, error) {
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(word)) {
	case "stdio", "local":
		return TransportStdio, nil
	case "http", "streamablehttp":
		return TransportHTTP, nil
	case "sse":
		return TransportSSE, nil
	case "", "remote": // by the URL
		return "", nil
	}
	return "", errors.New("must be stdio, http or sse")
}

// eachValue replaces the values in which there may be references.
func (e *entry) eachValue(replace func(string) string) {
	o := &e.oauth
	for _, field := range []*string{&e.command, &e.cwd, &e.envFile, &e.url, &o.ClientID, &o.ClientSecret, &o.PrivateKey, &o.RedirectURI, &o.Issuer} {
		*field = replace(*field)
	}
	for i := range e.args {
		e.args[i] = replace(e.args[i])
	}
	for _, m := range []map[string]string{e.env, e.headers} {
		for key, value := range m {
			m[key] = replace(value)
		}
	}
}

// empty reports whether a value is one that asks for nothing.
func empty(v hujson.Value) bool {
	switch v := v.Value.(type) {
	case *hujson.Object:
		return len(v.Members) == 0
	case *hujson.Array:
		return len(v.Elements) == 0
	}
	return isNull(v)
}

// literal returns the text of an object's key.
func literal(name hujson.Value) string {
	lit, _ := name.Value.(hujson.Literal)
	return lit.String()
}

// text decodes a string, or a number or boolean as its own spelling; null is
// the empty string.
func text(v hujson.Value) (string, error) {
	lit, ok := v.Value.(hujson.Literal)
	if !ok {
		return "", errors.New("must be a string")
	}
	switch lit.Kind() {
	case '"':
		var s string
		if err := json.Unmarshal(lit, &s); err != nil {
			return "", errors.New("is not a valid string")
		}
		return s, nil
	case 'n':
		return "", nil
	}
	return string(lit), nil
}

func texts(v hujson.Value) ([]string, error) {
	if isNull(v) {
		return nil, nil
	}
	array, ok := v.Value.(*hujson.Array)
	if !ok {
		return nil, errors.New("must be a list of strings")
	}
	var list []string
	for i, element := range array.Elements {
		s, err := text(element)
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
		list = append(list, s)
	}
	return list, nil
}

func variables(v hujson.Value) (map[string]string, error) {
	if isNull(v) {
		return nil, nil
	}
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("must be an object of strings")
	}
	env := make(map[string]string, len(object.Members))
	for _, member := range object.Members {
		key := literal(member.Name)
		if isNull(member.Value) {
			continue
		}
		s, err := text(member.Value)
		if err != nil {
			return nil, fmt.Errorf("[%q] %w", key, err)
		}
		env[key] = s
	}
	return env, nil
}

func boolean(v hujson.Value) (bool, error) {
	lit, ok := v.Value.(hujson.Literal)
	if ok {
		switch lit.Kind() {
		case 't':
			return true, nil
		case 'f', 'n':
			return false, nil
		}
	}
	return false, errors.New("must be true or false")
}

// limit decodes a time limit, see the package's documentation. A number is in
// the given unit, or in milliseconds or seconds if unit is 0.
func limit(v hujson.Value, unit time.Duration) (time.Duration, error) {
	s, err := text(v)
	if err != nil {
		return 0, errors.New("must be a number")
	}
	return parseLimit(s, unit)
}

// longest is the longest time limit that is told from none.
const longest = 365 * 24 * time.Hour

func parseLimit(s string, unit time.Duration) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return min(d, longest), nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0) {
		return 0, errors.New(`must be a number, or a string such as "30s"`)
	}
	switch {
	case unit != 0:
	case n < 1000:
		unit = time.Second
	default:
		unit = time.Millisecond
	}
	if n >= float64(longest)/float64(unit) {
		return longest, nil
	}
	return time.Duration(n * float64(unit)), nil
}

func isNull(v hujson.Value) bool {
	lit, ok := v.Value.(hujson.Literal)
	return ok && lit.Kind() == 'n'
}
