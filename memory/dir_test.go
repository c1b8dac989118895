package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"codeexec/memory"
)

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func mustSave(t testing.TB, s memory.Store, key, value string) memory.Record {
	t.Helper()
	rec, err := memory.Save(t.Context(), s, key, raw(value), nil)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// write puts a file into a store's directory.
func write(t testing.TB, path, name, text string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// files returns the names in a store's directory.
func files(t testing.TB, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func wantFiles(t testing.TB, path string, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := files(t, path); !slices.Equal(got, want) {
		t.Errorf("the files are\n%q, want\n%q", got, want)
	}
}

func wantDamaged(t testing.TB, what string, err error) *memory.DamagedError {
	t.Helper()
	var damaged *memory.DamagedError
	if !errors.As(err, &damaged) {
		t.Fatalf("%s: error %v, want a *DamagedError", what, err)
	}
	return damaged
}

func TestFileFormat(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	_, err := dir.CompareAndSet(t.Context(), memory.Record{
		Key:      "a/é<",
		Value:    raw(`{"list":[1,2.50,{}],"none":[]}`),
		Metadata: raw(`{"tags":["x"]}`),
		Created:  time.Unix(1767225600, 500_000_000),
		Updated:  time.Unix(1767225601, 0),
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(path, "a___~029524381b818339.json"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "key": "a/é<",
  "value": {
    "list": [
      1,
      2.50,
      {}
    ],
    "none": []
  },
  "metadata": {
    "tags": [
      "x"
    ]
  },
  "created_at": 1767225600.5,
  "updated_at": 1767225601
}
`
	if string(got) != want {
		t.Errorf("the file is\n%s", got)
	}
}

func TestFileNames(t *testing.T) {
	tests := []struct{ key, want string }{
		{"project_context", "project_context.json"},
		{"a-b_0", "a-b_0.json"},
		{"K", "K~86be9a55762d316a.json"},
		{"k", "k.json"},
		{"a/b", "a_b~c14cddc033f64b9d.json"},
		{"a b", "a_b~c8687a08aa5d6ed2.json"},
		{"a.b", "a_b~2e7336dc8eba87ef.json"},
		{"é😀", "__~1184d1f608158eea.json"},
		{"..", "__~5ec1f7e700f37c3d.json"},
		{"con", "con~1143da2bc54c495c.json"},
		{strings.Repeat("x", 100), strings.Repeat("x", 100) + ".json"},
		{strings.Repeat("x", 101), strings.Repeat("x", 100) + "~c675a2e604b0cd12.json"},
	}
	for _, tc := range tests {
		dir, path := openDir(t, memory.Limits{})
		mustSave(t, dir, tc.key, "1")
		wantFiles(t, path, tc.want)
	}
}

// The earlier system put every record under the bare name.
func TestRecordsOfTheEarlierSystem(t *testing.T) {
	long := strings.Repeat("long/", 30)
	tests := []struct{ name, file, text, key, value string }{
		{"as written", "project_context.json", `{
  "key": "project_context",
  "value": {
    "goal": "Build API"
  },
  "metadata": {},
  "created_at": 1731000000.1234567,
  "updated_at": 1731000001.7654321
}`, "project_context", `{"goal":"Build API"}`},
		{"replaced characters", "a_b.json", `{"key":"a/b","value":1,"metadata":{},"created_at":1,"updated_at":2}`, "a/b", "1"},
		{"upper case", "Key.json", `{"key":"Key","value":1,"metadata":{},"created_at":1,"updated_at":2}`, "Key", "1"},
		{"stripped", "k.json", `{"key":" k\n","value":1,"metadata":{},"created_at":1,"updated_at":2}`, " k\n", "1"},
		{"cut", stem(long) + ".json", `{"key":"` + long + `","value":1,"metadata":{},"created_at":1,"updated_at":2}`, long, "1"},
		{"a number", "5.json", `{"key":5,"value":1,"metadata":{},"created_at":1,"updated_at":2}`, "5", "1"},
		{"by hand", "notes.json", `{"value": [1, 2], "key": "notes"}`, "notes", "[1,2]"},
		{"by hand, odd times", "notes.json", `{"value": 1, "key": "notes", "created_at": "yesterday", "updated_at": -1e400, "more": 1}`, "notes", "1"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir, path := openDir(t, memory.Limits{})
			write(t, path, tc.file, tc.text)
			rec, err := dir.Get(t.Context(), tc.key)
			if err != nil || string(rec.Value) != tc.value {
				t.Fatalf("Get: %s, %v", rec.Value, err)
			}
			infos, err := dir.List(t.Context(), "")
			if err != nil || len(infos) != 1 || infos[0].Key != tc.key || infos[0].Err != nil {
				t.Errorf("List: %+v, %v", infos, err)
			}
			saved := mustSave(t, dir, tc.key, "2")
			if !saved.Created.Equal(rec.Created) {
				t.Errorf("created at %v, after the save at %v", rec.Created, saved.Created)
			}
			wantFiles(t, path, tc.file) // where it was
			var stored struct {
				Created json.Number `json:"created_at"`
			}
			text, _ := os.ReadFile(filepath.Join(path, tc.file))
			if err := json.Unmarshal(text, &stored); err != nil {
				t.Error(err)
			}
			if tc.name == "as written" && stored.Created != "1731000000.1234567" {
				t.Errorf("created_at is now %s", stored.Created)
			}
			if err := dir.Delete(t.Context(), tc.key); err != nil {
				t.Error(err)
			}
			wantFiles(t, path)
		})
	}
}

// stem is the earlier system's rule.
func stem(key string) string {
	return strings.ReplaceAll(key, "/", "_")[:100]
}

func TestAFileThatHoldsAnotherKeyIsNeverWritten(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	theirs := `{"key":"a/b","value":"theirs"}`
	write(t, path, "a_b.json", theirs)

	if _, err := dir.Get(t.Context(), "a_b"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	if err := dir.Delete(t.Context(), "a_b"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Delete: %v", err)
	}
	mustSave(t, dir, "a_b", `"ours"`)
	mustSave(t, dir, "a b", `"third"`)
	if text, err := os.ReadFile(filepath.Join(path, "a_b.json")); string(text) != theirs {
		t.Errorf("the file is now %s, %v", text, err)
	}
	for key, want := range map[string]string{"a/b": `"theirs"`, "a_b": `"ours"`, "a b": `"third"`} {
		if rec, err := dir.Get(t.Context(), key); err != nil || string(rec.Value) != want {
			t.Errorf("%s is %s, %v", key, rec.Value, err)
		}
	}
	infos, err := dir.List(t.Context(), "")
	if err != nil || len(infos) != 3 {
		t.Errorf("List: %+v, %v", infos, err)
	}
	for _, name := range files(t, path) {
		write(t, path, name, theirs)
	}
	if _, err := memory.Save(t.Context(), dir, "a_b", raw("1"), nil); err == nil || !strings.Contains(err.Error(), "holds another key") {
		t.Errorf("save where both names are taken: %v", err)
	}
}

func TestAFileUnderTheWrongNameIsListedAsSuch(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	write(t, path, "notes.json", `{"key":"plans","value":1}`)
	infos, err := dir.List(t.Context(), "")
	if err != nil || len(infos) != 1 || infos[0].Key != "notes" || infos[0].Err == nil ||
		!strings.Contains(infos[0].Err.Error(), "plans.json") {
		t.Errorf("List: %+v, %v", infos, err)
	}
	mustSave(t, dir, "notes", "2")
	infos, err = dir.List(t.Context(), "")
	if err != nil || len(infos) != 1 || infos[0].Key != "notes" || infos[0].Err != nil {
		t.Errorf("List: %+v, %v", infos, err)
	}
}

func TestDamagedRecords(t *testing.T) {
	tests := []struct{ name, text, reason string }{
		{"empty", "", "not JSON"},
		{"cut", `{"key":"k","va`, "not JSON"},
		{"more than one", `{"key":"k","value":1}{}`, "not JSON"},
		{"not an object", `["k"]`, "not a JSON object"},
		{"NaN", `{"key":"k","value":NaN}`, "not JSON"},
		{"not UTF-8", "{\"key\":\"k\",\"value\":\"\xff\"}", "not UTF-8"},
		{"no key", `{"value":1}`, "no key"},
		{"names in another case", `{"Key":"k","value":1}`, "no key"},
		{"empty key", `{"key":"","value":1}`, "no key"},
		{"key is a list", `{"key":["k"],"value":1}`, "no key"},
		{"key with half of a pair", `{"key":"\ud800","value":1}`, "surrogate"},
		{"key too long", `{"key":"` + strings.Repeat("k", 2000) + `","value":1}`, "too long"},
		{"no value", `{"key":"k"}`, "no value"},
		{"value too large", `{"key":"k","value":"` + strings.Repeat("x", 2000) + `"}`, "the limit is 1000"},
		{"too deep", `{"key":"k","value":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`, "max depth"},
		{"NULs", strings.Repeat("\x00", 4096), "not JSON"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			dir, path := openDir(t, memory.Limits{Value: 1000})
			mustSave(t, dir, "other", "1")
			testDamaged(t, dir, path, tc.reason, func(name string) { write(t, path, name, tc.text) })
		})
	}
}

// testDamaged checks a store with a file that damage puts there.
func testDamaged(t *testing.T, dir *memory.Dir, path, reason string, damage func(name string)) {
	t.Helper()
	const hashedKey, hashedName = "a/b", "a_b~c14cddc033f64b9d"
	others := files(t, path)

	for _, tc := range []struct{ key, file string }{
		{"k", "k.json"},
		{hashedKey, hashedName + ".json"},
		{hashedName, hashedName + ".json"}, // as it is listed
	} {
		damage(tc.file)
		before, err := os.Lstat(filepath.Join(path, tc.file))
		if err != nil {
			t.Fatal(err)
		}
		listed := strings.TrimSuffix(tc.file, ".json")

		_, err = dir.Get(t.Context(), tc.key)
		damaged := wantDamaged(t, "Get", err)
		if damaged.Key != tc.key || damaged.File != tc.file || !strings.Contains(damaged.Reason, reason) {
			t.Errorf("Get: %+v, want a reason with %q", damaged, reason)
		}
		_, err = memory.Update(t.Context(), dir, tc.key, func(memory.Record) (json.RawMessage, error) {
			t.Error("the function of an update is called")
			return raw("0"), nil
		})
		wantDamaged(t, "Update", err)
		for _, revision := range []string{"", "damaged-else"} {
			_, err = dir.CompareAndSet(t.Context(), memory.Record{Key: tc.key, Value: raw("1"), Revision: revision})
			if !errors.Is(err, memory.ErrConflict) {
				t.Errorf("CompareAndSet: %v", err)
			}
		}
		infos, err := dir.List(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(infos, func(info memory.Info) bool { return info.Key == listed })
		if i < 0 || len(infos) != len(others)+1 {
			t.Fatalf("List: %+v", infos)
		}
		wantDamaged(t, "List", infos[i].Err)
		if rec, err := dir.Get(t.Context(), "other"); err != nil || string(rec.Value) != "1" {
			t.Errorf("another record: %s, %v", rec.Value, err)
		}

		// A save keeps it aside.
		mustSave(t, dir, tc.key, "2")
		if rec, err := dir.Get(t.Context(), tc.key); err != nil || string(rec.Value) != "2" {
			t.Errorf("after a save: %s, %v", rec.Value, err)
		}
		aside, err := os.Lstat(filepath.Join(path, tc.file+".damaged"))
		if err != nil || aside.Mode() != before.Mode() || aside.Size() != before.Size() {
			t.Errorf("what was damaged is now %v, %v", aside, err)
		}
		if infos, err := dir.List(t.Context(), ""); err != nil || len(infos) != len(others)+1 {
			t.Errorf("List after a save: %+v, %v", infos, err)
		}
		if err := dir.Delete(t.Context(), tc.key); err != nil {
			t.Error(err)
		}
		if err := os.Remove(filepath.Join(path, tc.file+".damaged")); err != nil {
			t.Error(err)
		}
		wantFiles(t, path, others...)

		// It can be deleted.
		damage(tc.file)
		if err := dir.Delete(t.Context(), tc.key); err != nil {
			t.Errorf("Delete: %v", err)
		}
		wantFiles(t, path, others...)
	}
}

func TestDamagedFilesAreAllKeptAside(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	for _, text := range []string{"one", "two", "three"} {
		write(t, path, "k.json", text)
		mustSave(t, dir, "k", "1")
	}
	for name, want := range map[string]string{"k.json.damaged": "one", "k.json.damaged-2": "two", "k.json.damaged-3": "three"} {
		if text, err := os.ReadFile(filepath.Join(path, name)); string(text) != want {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

func TestDamageOfABareNameIsNotThatOfOtherKeys(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	write(t, path, "a_b.json", "{")
	if _, err := dir.Get(t.Context(), "a/b"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	mustSave(t, dir, "a/b", "1")
	if err := dir.Delete(t.Context(), "a/b"); err != nil {
		t.Error(err)
	}
	wantFiles(t, path, "a_b.json")
}

func TestNothingIsMadeByReading(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	dir.Get(t.Context(), "k")
	dir.List(t.Context(), "")
	dir.Delete(t.Context(), "k")
	if names := files(t, filepath.Dir(filepath.Dir(path))); names != nil {
		t.Errorf("there are %q", names)
	}
}

func TestADirectoryThatIsRemovedIsMadeAgain(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	mustSave(t, dir, "k", "1")
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Get(t.Context(), "k"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	mustSave(t, dir, "k", "2")
	wantFiles(t, path, "k.json")
}

func TestADeepValueIsNotIndented(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	value := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	mustSave(t, dir, "k", value)
	if info, err := os.Stat(filepath.Join(path, "k.json")); err != nil || info.Size() > 20_000 {
		t.Errorf("the file has %v, %v", info, err)
	}
	if rec, err := dir.Get(t.Context(), "k"); err != nil || string(rec.Value) != value {
		t.Errorf("Get: %v", err)
	}
}

func TestTheLockMustBeOutOfReach(t *testing.T) {
	state := t.TempDir()
	path := filepath.Join(state, "user_tools", "memory")
	for _, lock := range []string{path, filepath.Join(path, "lock"), filepath.Join(path, "..", "lock"), filepath.Join(state, "user_tools")} {
		if _, err := memory.OpenDir(path, lock, memory.Limits{}); err == nil {
			t.Errorf("a lock at %s is taken", lock)
		}
	}
}

func TestALockThatIsHeld(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	mustSave(t, dir, "k", "1")
	lock := flock.New(filepath.Join(path, "../../memory.lock"))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	defer lock.Close()

	// Reading needs no lock.
	if _, err := dir.Get(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	if _, err := dir.List(t.Context(), ""); err != nil {
		t.Error(err)
	}
	cause := errors.New("the test's cause")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, cause)
	defer cancel()
	if _, err := memory.Save(ctx, dir, "k", raw("2"), nil); !errors.Is(err, cause) {
		t.Errorf("Save: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		dir, err := memory.OpenDir(path, filepath.Join(path, "../../memory.lock"), memory.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var held *memory.LockError
		if err := dir.Delete(t.Context(), "k"); !errors.As(err, &held) {
			t.Errorf("Delete: %v", err)
		}
	})
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	mustSave(t, dir, "k", "3")
}

func TestALockThatIsRemovedStillLocks(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	mustSave(t, dir, "k", "1")
	name := filepath.Join(path, "../../memory.lock")
	old := flock.New(name)
	if err := old.Lock(); err != nil {
		t.Fatal(err)
	}
	saved := make(chan error)
	go func() {
		_, err := memory.Save(t.Context(), dir, "k", raw("2"), nil)
		saved <- err
	}()
	// The save waits for a file that others won't find, or doesn't wait at all.
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := old.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := <-saved; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(name); err != nil {
		t.Error(err)
	}
}

// rival commits a change of its own before each commit of the store in it.
type rival struct{ memory.Store }

func (r rival) CompareAndSet(ctx context.Context, rec memory.Record) (memory.Record, error) {
	cur, err := r.Get(ctx, rec.Key)
	if err != nil && !errors.Is(err, memory.ErrNotFound) {
		return memory.Record{}, err
	}
	cur.Key, cur.Value = rec.Key, raw("1")
	cur.Updated = cur.Updated.Add(time.Second)
	if _, err := r.Store.CompareAndSet(ctx, cur); err != nil {
		return memory.Record{}, err
	}
	return r.Store.CompareAndSet(ctx, rec)
}

func TestAnUpdateGivesUpAfterManyConflicts(t *testing.T) {
	dir, _ := openDir(t, memory.Limits{})
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		_, err := memory.Update(t.Context(), rival{dir}, "k", func(memory.Record) (json.RawMessage, error) {
			calls++
			return raw("0"), nil
		})
		var contention *memory.ContentionError
		if !errors.As(err, &contention) || contention.Conflicts != memory.MaxConflicts || calls != memory.MaxConflicts {
			t.Errorf("after %d calls: %v", calls, err)
		}
		if _, err := memory.Save(t.Context(), rival{dir}, "k", raw("0"), nil); !errors.As(err, &contention) {
			t.Errorf("Save: %v", err)
		}
	})
}

// An update that has lost several times and then hangs delays others, but doesn't stop them.
func TestAHangingUpdateOnlyDelaysOthers(t *testing.T) {
	dir, _ := openDir(t, memory.Limits{})
	before := mustSave(t, dir, "k", "1")
	synctest.Test(t, func(t *testing.T) {
		dir := memory.Copy(dir)
		if _, err := memory.Attempt(t.Context(), dir, "k", 10); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := memory.Attempt(t.Context(), dir, "other", 0); err != nil || time.Since(start) > 0 {
			t.Errorf("another key waits %v, %v", time.Since(start), err)
		}
		// Whoever has lost more often, or doesn't ask, doesn't wait.
		if _, err := memory.Attempt(t.Context(), dir, "k", 50); err != nil || time.Since(start) > 0 {
			t.Errorf("an older update waits %v, %v", time.Since(start), err)
		}
		if _, err := memory.Commit(t.Context(), dir, "k", before.Revision, 0, raw("2")); err != nil || time.Since(start) > 0 {
			t.Errorf("a commit waits %v, %v", time.Since(start), err)
		}
		mustSave(t, dir, "k", "3")
		if waited := time.Since(start); waited == 0 || waited > 3*time.Second {
			t.Errorf("a save waits %v", waited)
		}
	})
}

func TestListIsBounded(t *testing.T) {
	dir, path := openDir(t, memory.Limits{Keys: 10})
	for i := range 50 {
		write(t, path, strings.Repeat("x", i+1)+".json", "{")
	}
	var limit *memory.LimitError
	if _, err := dir.List(t.Context(), ""); !errors.As(err, &limit) {
		t.Errorf("List: %v", err)
	}
	if _, err := memory.Save(t.Context(), dir, "k", raw("1"), nil); !errors.As(err, &limit) {
		t.Errorf("Save: %v", err)
	}
	if _, err := dir.Get(t.Context(), "k"); !errors.Is(err, memory.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	dir, path := openDir(t, memory.Limits{})
	names := []string{"readme.txt", ".json", "k.json.bak", "k", ".hidden"}
	for _, name := range names {
		write(t, path, name, "x")
	}
	mustSave(t, dir, "k", "1")
	infos, err := dir.List(t.Context(), "")
	if err != nil || len(infos) != 1 {
		t.Errorf("List: %+v, %v", infos, err)
	}
	if err := dir.Delete(t.Context(), "k"); err != nil {
		t.Error(err)
	}
	wantFiles(t, path, names...)
}

func TestRecordsAreEqualHoweverTheyAreGot(t *testing.T) {
	dir, _ := openDir(t, memory.Limits{})
	for range 100 {
		saved := mustSave(t, dir, "k", "1")
		if got, err := dir.Get(t.Context(), "k"); err != nil || !reflect.DeepEqual(got, saved) {
			t.Fatalf("got %+v, %v; saved %+v", got, err, saved)
		}
	}
}
