package memory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxFile returns the length in bytes of the largest file that may hold a record. Indentation makes
// a file longer than its values, by a factor of up to maxIndent in those of our own.
func (l Limits) maxFile() int {
	return maxIndent*(l.Value+MaxMetadata) + smallFile
}

const (
	// A JSON text is indented unless that makes it both longer than smallFile and maxIndent times
	// as long: a deep enough array of 16 MiB would have terabytes of indentation.
	maxIndent = 4
	smallFile = 1 << 20
)

// encode returns the contents of a record's file.
func encode(rec Record) []byte {
	var buf bytes.Buffer
	buf.Grow(len(rec.Value) + len(rec.Metadata) + 1024)
	buf.WriteString("{\n  \"key\": ")
	buf.Write(quote(rec.Key))
	buf.WriteString(",\n  \"value\": ")
	indent(&buf, rec.Value)
	buf.WriteString(",\n  \"metadata\": ")
	indent(&buf, rec.Metadata)
	buf.WriteString(",\n  \"created_at\": ")
	writeEpoch(&buf, rec.Created)
	buf.WriteString(",\n  \"updated_at\": ")
	writeEpoch(&buf, rec.Updated)
	buf.WriteString("\n}\n")
	return buf.Bytes()
}

func quote(s string) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.Encode(s) // a string has no errors
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// Indentation of a part of a record.
const (
	indentPrefix = "  "
	indentStep   = "  "
)

// indent writes a JSON text that has no white space.
func indent(buf *bytes.Buffer, text json.RawMessage) {
	if size := indentedSize(text); size > smallFile && size > maxIndent*len(text) {
		buf.Write(text)
		return
	}
	json.Indent(buf, text, indentPrefix, indentStep) // the text has been checked
}

// indentedSize returns how many bytes json.Indent makes of a text that has no white space.
func indentedSize(text []byte) int {
	size, depth := len(text), 0
	newline := func() { size += 1 + len(indentPrefix) + depth*len(indentStep) }
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			if next := text[i+1]; next == '}' || next == ']' {
				i++
				continue
			}
			depth++
			newline()
		case '}', ']':
			depth--
			newline()
		case ',':
			newline()
		case ':':
			size++
		}
	}
	return size
}

// decode returns the record in a file, without a revision. The error says what is wrong with the
// file.
func (l Limits) decode(data []byte, modified time.Time) (Record, error) {
	if !utf8.Valid(data) {
		return Record{}, errors.New("not UTF-8")
	}
	// A map, because a struct would take "Key" for "key".
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		if fields == nil && json.Valid(data) {
			return Record{}, errors.New("not a JSON object")
		}
		return Record{}, fmt.Errorf("not JSON: %w", err)
	}
	key, err := decodeKey(fields["key"])
	if err != nil {
		return Record{}, err
	}
	if fields["value"] == nil {
		return Record{}, errors.New("it has no value")
	}
	return l.Check(Record{
		Key:      key,
		Value:    fields["value"],
		Metadata: fields["metadata"],
		Created:  decodeTime(fields["created_at"], modified),
		Updated:  decodeTime(fields["updated_at"], modified),
	})
}

// decodeKey returns the key in a file. The earlier system stored keys that are numbers as such, and
// named their files as if they were strings.
func decodeKey(text json.RawMessage) (string, error) {
	var number json.Number
	if err := json.Unmarshal(text, &number); err == nil && number != "" && text[0] != '"' {
		return number.String(), nil
	}
	var key string
	if err := json.Unmarshal(text, &key); err != nil || key == "" {
		return "", errors.New("it has no key")
	}
	// encoding/json turns half of a surrogate pair into U+FFFD, and so into another key.
	if strings.ContainsRune(key, utf8.RuneError) && bytes.Contains(bytes.ToLower(text), []byte(`\ud`)) {
		return "", errors.New("its key has half of a surrogate pair")
	}
	return key, nil
}

// decodeTime returns the time in a file, or the one given if the file has none that can be.
func decodeTime(text json.RawMessage, instead time.Time) time.Time {
	seconds, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !isEpoch(seconds) {
		return instead
	}
	return fromEpoch(seconds)
}

// isEpoch reports whether a number of seconds since 1970 is in the years 1970 to 9999.
func isEpoch(seconds float64) bool { return 0 <= seconds && seconds < 253402300800 }

// storable returns a time as it will be read back, or the one given if a file can't hold it.
func storable(t, instead time.Time) time.Time {
	if seconds := epoch(t); isEpoch(seconds) {
		return fromEpoch(seconds)
	}
	return fromEpoch(epoch(instead))
}

// epoch returns a time in seconds since 1970.
func epoch(t time.Time) float64 {
	return float64(t.Unix()) + float64(t.Nanosecond())/1e9
}

// fromEpoch returns the time that epoch turns into the same number, unless that is finer than
// nanoseconds, as it may be in the first 97 days.
func fromEpoch(seconds float64) time.Time {
	whole, fraction := math.Modf(seconds)
	return time.Unix(int64(whole), int64(math.Round(fraction*1e9))).UTC()
}

func writeEpoch(buf *bytes.Buffer, t time.Time) {
	buf.Write(strconv.AppendFloat(buf.AvailableBuffer(), epoch(t), 'f', -1, 64))
}
