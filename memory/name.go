package memory

import (
	"crypto/sha256"
	"encoding/hex"
	"runtime"
	"slices"
	"strings"
	"unicode"
)

// extension is that of a record's file; other files in a directory are none of ours.
const extension = ".json"

// maxStem is the most characters of a key that a file's name has.
const maxStem = 100

// maxName is the longest name that common file systems can hold, in bytes.
const maxName = 255

// fileNames are the names that the file of a key may have, see the package comment.
type fileNames struct {
	own []string // given to no other key by the rule, the one for new records first
	old []string // without a hash: shared by several keys
	raw string   // the key is listed for a damaged file of this name; "" if there can't be one
}

// all returns all names, in the order in which they are looked at.
func (n fileNames) all() []string {
	names := append(slices.Clone(n.own), n.old...)
	if n.raw != "" {
		names = append(names, n.raw)
	}
	return names
}

func namesOf(key string) fileNames {
	stem := stemOf(key)
	sum := sha256.Sum256([]byte(key))
	hashed := stem + "~" + hex.EncodeToString(sum[:8]) + extension
	bare := stem + extension

	var names fileNames
	if stem == key && strings.ToLower(key) == key && !isDevice(key) {
		names.own = []string{bare, hashed}
	} else {
		names.own = []string{hashed}
		// The earlier system stripped keys of what Python calls white space.
		stripped := strings.TrimFunc(key, func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f })
		for _, old := range []string{bare, stemOf(stripped) + extension} {
			if old != extension && !slices.Contains(names.old, old) && (isPlain(old) || runtime.GOOS != "windows") {
				names.old = append(names.old, old)
			}
		}
	}
	if raw := key + extension; isPlain(raw) && !slices.Contains(names.all(), raw) {
		names.raw = raw
	}
	return names
}

// stemOf returns a key cut at maxStem, with everything replaced that some file system can't hold or distinguish.
func stemOf(key string) string {
	var stem strings.Builder
	for _, r := range key {
		if stem.Len() == maxStem {
			break
		}
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			stem.WriteRune(r)
		default:
			stem.WriteByte('_')
		}
	}
	return stem.String()
}

// isDevice reports whether Windows takes a name, whatever its extension, for a device.
func isDevice(name string) bool {
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && '0' <= name[3] && name[3] <= '9'
}

// isPlain reports whether a name is that of a file in the directory on every operating system.
func isPlain(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	return len(name) <= maxName && !isDevice(strings.ToLower(strings.TrimRight(stem, " "))) &&
		!strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || strings.ContainsRune(`/\:<>"|?*`, r) })
}
