package packages

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"
)

// Python is the version for which packages are added.
const Python = "3.13"

// maxMetadata is the length in bytes of the longest METADATA, WHEEL or RECORD that is read.
const maxMetadata = 8 << 20

// metadata is what is used of a distribution's METADATA.
type metadata struct {
	name, version  string
	summary        string
	requires       []string // Requires-Dist
	requiresPython string
}

// parseHeaders reads the headers of a METADATA or WHEEL file, which are those of an e-mail.
func parseHeaders(data []byte) (textproto.MIMEHeader, error) {
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	head, _, _ := bytes.Cut(data, []byte("\n\n"))
	header, err := textproto.NewReader(bufio.NewReader(bytes.NewReader(append(head, "\n\n"...)))).ReadMIMEHeader()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return header, err
}

func parseMetadata(data []byte) (metadata, error) {
	header, err := parseHeaders(data)
	if err != nil {
		return metadata{}, fmt.Errorf("METADATA: %w", err)
	}
	m := metadata{
		name:           header.Get("Name"),
		version:        header.Get("Version"),
		summary:        oneLine(header.Get("Summary")),
		requires:       header.Values("Requires-Dist"),
		requiresPython: header.Get("Requires-Python"),
	}
	switch {
	case !namePattern.MatchString(m.name):
		return metadata{}, fmt.Errorf("METADATA: %q is no name of a package", m.name)
	case !versionPattern.MatchString(m.version):
		return metadata{}, fmt.Errorf("METADATA: %q is no version", m.version)
	}
	return m, nil
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

var (
	namePattern    = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+!-]{0,127}$`)
	separators     = regexp.MustCompile(`[-_.]+`)
)

// normalized returns a name in the form in which names are compared, see PEP 503.
func normalized(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

// requiredName returns the name in a requirement such as "attrs>=23; python_version<'3.12'".
func requiredName(requirement string) string {
	end := strings.IndexFunc(requirement, func(r rune) bool { return !strings.ContainsRune(nameRunes, r) })
	if end < 0 {
		end = len(requirement)
	}
	return requirement[:end]
}

const nameRunes = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"

// needs returns the names of what a distribution requires whatever the circumstances.
func (m metadata) needs() []string {
	var names []string
	for _, requirement := range m.requires {
		if !strings.Contains(requirement, ";") {
			names = append(names, requiredName(strings.TrimSpace(requirement)))
		}
	}
	return names
}

var specifier = regexp.MustCompile(`^(===|==|~=|!=|<=|>=|<|>)\s*v?(\d+(?:\.\d+)*)(\.\*)?`)

// allowsPython reports whether a Requires-Python allows a version. What it can't read it takes for allowed.
func allowsPython(requires, version string) bool {
	for part := range strings.SplitSeq(requires, ",") {
		match := specifier.FindStringSubmatch(strings.TrimSpace(part))
		if match == nil {
			continue
		}
		operator, bound, prefix := match[1], match[2], match[3] != ""
		order := compareVersions(version, bound)
		// The micro version isn't known: 3.13 stands for all of 3.13.x.
		same := order == 0 || strings.HasPrefix(bound, version+".")
		if prefix {
			same = version == bound || strings.HasPrefix(version, bound+".")
		}
		ok := true
		switch operator {
		case "==", "===":
			ok = same
		case "!=":
			ok = !same || !prefix && bound != version
		case ">=":
			ok = order >= 0 || same
		case ">":
			ok = order > 0 || same
		case "<=":
			ok = order <= 0
		case "<":
			ok = order < 0
		case "~=":
			stem := bound[:max(strings.LastIndex(bound, "."), 0)]
			ok = (order >= 0 || same) && (stem == "" || version == stem || strings.HasPrefix(version, stem+"."))
		}
		if !ok {
			return false
		}
	}
	return true
}

// compareVersions compares the numbers in two versions.
func compareVersions(a, b string) int {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(as), len(bs)) {
		var x, y int
		if i < len(as) {
			x, _ = strconv.Atoi(as[i])
		}
		if i < len(bs) {
			y, _ = strconv.Atoi(bs[i])
		}
		if c := cmp.Compare(x, y); c != 0 {
			return c
		}
	}
	return 0
}
