package bridge

import (
	"codeexec/bridge/artifact"
	_ "embed"
	"fmt"
	"strings"
	"text/template"
)

// CapabilitiesURI is the resource that holds [Bridge.Capabilities].
const CapabilitiesURI = "codeexec://capabilities"

//go:embed capabilities.md
var capabilitiesSource string

// capabilitiesText is the manual for models, true of a bridge with these options. It must stay under 400
// words: a model pays for each of them.
func capabilitiesText(opts Options) string {
	var b strings.Builder
	tmpl := template.Must(template.New("capabilities.md").Option("missingkey=error").Parse(capabilitiesSource))
	data := struct {
		Timeout, MaxTimeout, Memory, Output, Idle string
		Calls, InFlight, Sessions                 int
		Projects, Store, Folders                  bool
	}{
		Timeout:    seconds(opts.Timeout),
		MaxTimeout: seconds(opts.MaxTimeout),
		Output:     binarySize(int64(opts.OutputBytes)),
		Calls:      opts.MaxCalls,
		InFlight:   opts.MaxInFlight,
		Sessions:   opts.MaxSessions,
		Projects:   opts.Projects != "",
		Store:      opts.Store != nil,
		Folders:    artifact.Open(opts.Projects, opts.KeepRuns, 0) != nil,
	}
	if opts.SessionIdle > 0 {
		data.Idle = longTime(opts.SessionIdle)
	}
	if opts.Memory > 0 {
		data.Memory = binarySize(opts.Memory)
	}
	if err := tmpl.Execute(&b, data); err != nil {
		panic(err) // the template is part of the program, and a test executes it
	}
	return b.String()
}

// binarySize writes a number of bytes in the largest unit that divides it.
func binarySize(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB"}
	i := 0
	for i < len(units)-1 && n >= 1024 && n%1024 == 0 {
		n /= 1024
		i++
	}
	return fmt.Sprintf("%d %s", n, units[i])
}
