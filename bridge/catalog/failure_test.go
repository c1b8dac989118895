package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Why a server failed is known to other processes, until it has gone well: a start that failed until a start, a
// crash until a call.
func TestFailuresLastUntilItGoesWell(t *testing.T) {
	tests := []struct {
		name    string
		crashed bool
		after   func(*Record)
		want    bool // whether it is known still
	}{
		{"nothing happens", false, func(*Record) {}, true},
		{"a start", false, (*Record).Started, false},
		{"a crash, and a start", true, (*Record).Started, true},
		{"a crash, a start and a call", true, func(r *Record) { r.Started(); r.Answered() }, false},
		{"tools that were listed", true, func(r *Record) { r.Save(Listing{Seen: time.Now()}) }, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			at := time.Now()
			Open(dir, nil).Record(github).Fail(Failure{At: at, Reason: "no such program", Crashed: tc.crashed})
			got, ok := Open(dir, nil).Record(github).Failure()
			if !ok || got.Reason != "no such program" || !got.At.Equal(at.Round(0)) {
				t.Fatalf("another process knows %+v, %v", got, ok)
			}
			tc.after(Open(dir, nil).Record(github)) // a third
			if _, ok := Open(dir, nil).Record(github).Failure(); ok != tc.want {
				t.Errorf("known afterwards: %v", ok)
			}
		})
	}
}

func TestFailuresAreBoundedAndPrivate(t *testing.T) {
	dir := t.TempDir()
	record := Open(dir, nil).Record(github)
	record.Fail(Failure{At: time.Now(), Reason: strings.Repeat("ü", 1<<20)})
	if got, ok := record.Failure(); !ok || len(got.Reason) > maxReason {
		t.Errorf("%d bytes, %v", len(got.Reason), ok)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"+failureSuffix))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(files[0], []byte("{damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, ok := record.Failure(); ok {
		t.Errorf("of a damaged file: %+v", got)
	}
	// Without a folder there is nothing to tell others.
	memory := Open("", nil).Record(github)
	memory.Fail(Failure{Reason: "x"})
	memory.Started()
	memory.Answered()
}
