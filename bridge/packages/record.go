package packages

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"hash"
	"strconv"
	"strings"
)

// A digest is what a RECORD says of a file.
type digest struct {
	algorithm string
	sum       string // in base64 for URLs, without padding
	size      int64  // less than 0: not given
}

// newHash returns the function of a digest; nil if there is none, or only one that is too weak.
func (d digest) newHash() hash.Hash {
	switch d.algorithm {
	case "sha256":
		return sha256.New()
	case "sha384":
		return sha512.New384()
	case "sha512":
		return sha512.New()
	}
	return nil
}

func encodeSum(h hash.Hash) string { return base64.RawURLEncoding.EncodeToString(h.Sum(nil)) }

// A recordLine is a line of a RECORD.
type recordLine struct {
	path string
	digest
}

// parseRecord reads a RECORD, see https://packaging.python.org/specifications/recording-installed-packages/.
func parseRecord(data []byte) ([]recordLine, error) {
	reader := csv.NewReader(bytes.NewReader(data))
	reader.FieldsPerRecord = -1
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("RECORD: %w", err)
	}
	lines := make([]recordLine, 0, len(rows))
	for _, row := range rows {
		line := recordLine{path: row[0], digest: digest{size: -1}}
		if len(row) > 1 {
			algorithm, sum, _ := strings.Cut(row[1], "=")
			line.algorithm, line.sum = algorithm, strings.TrimRight(sum, "=")
		}
		if len(row) > 2 && row[2] != "" {
			if line.size, err = strconv.ParseInt(row[2], 10, 64); err != nil || line.size < 0 {
				return nil, fmt.Errorf("RECORD: %q is no size", row[2])
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// formatRecord writes a RECORD.
func formatRecord(lines []recordLine) []byte {
	var b bytes.Buffer
	writer := csv.NewWriter(&b)
	for _, line := range lines {
		row := []string{line.path, "", ""}
		if line.sum != "" {
			row[1] = line.algorithm + "=" + line.sum
			row[2] = strconv.FormatInt(line.size, 10)
		}
		writer.Write(row) // a buffer takes everything
	}
	writer.Flush()
	return b.Bytes()
}
