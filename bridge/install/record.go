package install

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"codeexec/bridge/config"
)

// A record remembers what was done to a client's file. It may have an entry in it
// that was there before, with its secrets.
type record struct {
	splice
	Created bool `json:"created,omitempty"` // there was no file
}

// recordsFile is the content of the file of records.
type recordsFile struct {
	Files map[string]record `json:"files"` // by path
}

// recordsPath is the file of records. The dot keeps it out of the state
// directory's configuration files.
func recordsPath(stateDir string) string { return filepath.Join(stateDir, ".installed.json") }

// readRecords returns what is remembered; without a state directory nothing is.
func readRecords(stateDir string) (map[string]record, error) {
	if stateDir == "" {
		return nil, nil
	}
	path := recordsPath(stateDir)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var file recordsFile
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("%s is damaged; remove it, and what was installed can still be uninstalled", path)
	}
	return file.Files, nil
}

// remember notes what was done to a file; a nil record forgets it.
func remember(stateDir, path string, r *record) error {
	if stateDir == "" {
		return nil
	}
	records, err := readRecords(stateDir)
	if err != nil {
		return err
	}
	before := maps.Clone(records)
	if records == nil {
		records = make(map[string]record)
	}
	if r == nil {
		delete(records, path)
	} else {
		records[path] = *r
	}
	if maps.Equal(before, records) {
		return nil
	}
	if len(records) == 0 {
		return os.Remove(recordsPath(stateDir))
	}
	data, err := json.MarshalIndent(recordsFile{records}, "", "\t")
	if err != nil {
		return err
	}
	return config.WriteFile(recordsPath(stateDir), append(data, '\n'), 0o600)
}
