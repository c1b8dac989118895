// Package storetest is the test that every memory.Store must pass.
package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"codeexec/memory"
)

// Run tests a kind of store. open returns an empty one with the given limits, for one test.
func Run(t *testing.T, open func(t *testing.T, limits memory.Limits) memory.Store) {
	tests := []struct {
		name   string
		limits memory.Limits
		test   func(*testing.T, memory.Store)
	}{
		{"absent record", memory.Limits{}, absent},
		{"what is set is got", memory.Limits{}, setAndGet},
		{"compare-and-set", memory.Limits{}, compareAndSet},
		{"JSON is kept as it is spelled", memory.Limits{}, spelling},
		{"times", memory.Limits{}, times},
		{"odd keys", memory.Limits{}, oddKeys},
		{"list by prefix", memory.Limits{}, list},
		{"invalid keys", memory.Limits{}, invalidKeys},
		{"invalid JSON", memory.Limits{}, invalidJSON},
		{"limit of a value", memory.Limits{Value: 100}, valueLimit},
		{"default limit of a value", memory.Limits{}, largeValue},
		{"limit of the metadata", memory.Limits{}, metadataLimit},
		{"limit of the records", memory.Limits{Keys: 3}, keyLimit},
		{"cancelled context", memory.Limits{}, cancelled},
		{"one of many creations wins", memory.Limits{}, createRace},
		{"concurrent updates are all applied", memory.Limits{}, updateRace},
		{"readers see only whole records", memory.Limits{}, readRace},
		{"save", memory.Limits{}, save},
		{"update", memory.Limits{}, update},
		{"commit and attempt", memory.Limits{}, commit},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) { tc.test(t, open(t, tc.limits)) })
	}
}

// OddKeys are keys that a careless store would confuse or let out of where it keeps its records.
var OddKeys = []string{
	"a", "A", "b", "ab", "aB", "Ab", "AB",
	"a/b", "a b", "a_b", "a.b", "a\\b", "a:b", "a*b", "a\x00b", "a\nb", "a~b", "a%2Fb",
	".", "..", "../a", "../../etc/passwd", "/", "/etc/passwd", "a/", "/a", "a/../b", "./a",
	"C:\\a", "\\\\host\\share", "a.json", "a.json.damaged", ".commit.tmp", ".commit.tmp.json", ".json", "~",
	"con", "CON", "nul", "NUL", "aux", "prn", "com1", "lpt9", "con.txt", "COM1.json",
	" ", " a", "a ", "a.", "a..", "a. .", ".a", "-", "--help", "_", "__", "-rf",
	"\t", "\n", "\x00", "\x01", "\x1c", "\x7f", "\u0080", "\u00a0", "\u2028", "\ufeff", "\ufffd",
	"é", "e\u0301", "ß", "ẞ", "SS", "ss", "İ", "i", "ı", "I", "ſ", "K", "\u212a", "k", "日本", "😀", "👩\u200d💻",
	`"`, `'`, `\u0061`, `{"key":"a"}`, "null", "5", "5.0", "$HOME", "`id`", "<a>&amp;", "a>b.*", "a.>",
	strings.Repeat("x", 100), strings.Repeat("x", 101), strings.Repeat("x", 100) + "y",
	strings.Repeat("x", memory.MaxKey), strings.Repeat("/", memory.MaxKey), strings.Repeat("é", memory.MaxKey/2),
	strings.Repeat("../", 300), strings.Repeat("x", 250) + ".json", strings.Repeat("\x00", memory.MaxKey),
}

func set(t *testing.T, s memory.Store, rec memory.Record) memory.Record {
	t.Helper()
	got, err := s.CompareAndSet(t.Context(), rec)
	if err != nil {
		t.Fatalf("CompareAndSet of %.50q: %v", rec.Key, err)
	}
	return got
}

func get(t *testing.T, s memory.Store, key string) memory.Record {
	t.Helper()
	rec, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("Get of %.50q: %v", key, err)
	}
	return rec
}

// keys returns those of all records.
func keys(t *testing.T, s memory.Store) []string {
	t.Helper()
	infos, err := s.List(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, info := range infos {
		if info.Err != nil {
			t.Errorf("record %q: %v", info.Key, info.Err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantErrAs returns the error of type E.
func wantErrAs[E error](t *testing.T, what string, err error) E {
	t.Helper()
	var e E
	if !errors.As(err, &e) {
		t.Fatalf("%s: error %v, want a %T", what, err, e)
	}
	return e
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

func absent(t *testing.T, s memory.Store) {
	_, err := s.Get(t.Context(), "k")
	wantErr(t, "Get", err, memory.ErrNotFound)
	wantErr(t, "Delete", s.Delete(t.Context(), "k"), memory.ErrNotFound)
	wantEqual(t, "keys", keys(t, s), []string(nil))
	set(t, s, memory.Record{Key: "other", Value: raw("1")})
	_, err = s.Get(t.Context(), "k")
	wantErr(t, "Get", err, memory.ErrNotFound)
	wantErr(t, "Delete", s.Delete(t.Context(), "k"), memory.ErrNotFound)
}

func setAndGet(t *testing.T, s memory.Store) {
	first := set(t, s, memory.Record{Key: "k", Value: raw("1"), Metadata: raw(`{"m":1}`)})
	if first.Revision == "" {
		t.Error("a stored record has no revision")
	}
	wantEqual(t, "record", get(t, s, "k"), first)

	second := first
	second.Value = raw(`{"a":[1,2]}`)
	second = set(t, s, second)
	if second.Revision == first.Revision {
		t.Error("the revision is the same after a change")
	}
	wantEqual(t, "record", get(t, s, "k"), second)

	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Get(t.Context(), "k")
	wantErr(t, "Get after Delete", err, memory.ErrNotFound)
	wantErr(t, "second Delete", s.Delete(t.Context(), "k"), memory.ErrNotFound)
	set(t, s, memory.Record{Key: "k", Value: raw("3")})
	wantEqual(t, "value of a new record", string(get(t, s, "k").Value), "3")
}

func compareAndSet(t *testing.T, s memory.Store) {
	try := func(revision, value string) error {
		_, err := s.CompareAndSet(t.Context(), memory.Record{Key: "k", Value: raw(value), Revision: revision})
		return err
	}
	wantErr(t, "change of an absent record", try("nonsense", "0"), memory.ErrConflict)
	wantEqual(t, "keys", keys(t, s), []string(nil))

	one := set(t, s, memory.Record{Key: "k", Value: raw("1")})
	wantErr(t, "creation of a record that is there", try("", "0"), memory.ErrConflict)
	two := one
	two.Value = raw("2")
	two = set(t, s, two)
	wantErr(t, "change of an old revision", try(one.Revision, "0"), memory.ErrConflict)
	wantErr(t, "change of an unknown revision", try("nonsense", "0"), memory.ErrConflict)
	wantEqual(t, "record", get(t, s, "k"), two)

	if err := s.Delete(t.Context(), "k"); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "change of a deleted record", try(two.Revision, "0"), memory.ErrConflict)
	wantEqual(t, "keys", keys(t, s), []string(nil))
}

func spelling(t *testing.T, s memory.Store) {
	deep := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	tests := []struct{ given, want string }{
		{`null`, ""}, {`true`, ""}, {`0`, ""}, {`-0`, ""}, {`1.0`, ""}, {`1.10`, ""}, {`1e5`, ""}, {`1E+005`, ""},
		{`123456789012345678901234567890`, ""}, {`0.1000000000000000055511151231257827`, ""}, {`1e400`, ""},
		{`""`, ""}, {`"\u0041\/\ud800\udc00"`, ""}, {`"\ud800"`, ""}, {`"A/é😀<>&"`, ""}, {"\"\u2028\x7f\"", ""}, {`"\\\""`, ""},
		{`[]`, ""}, {`{}`, ""}, {`[[],{},[[]]]`, ""}, {`{"b":1,"a":2,"b":3}`, ""}, {`{"":{"":""}}`, ""},
		{`{"key":"x","value":1,"metadata":2}`, ""}, {deep, ""},
		{" {\n\t\"a\" : [ 1 , 2.50 ] ,\r\n \"b c\" : \"d , e\" } ", `{"a":[1,2.50],"b c":"d , e"}`},
	}
	for i, tc := range tests {
		if tc.want == "" {
			tc.want = tc.given
		}
		key := strconv.Itoa(i)
		set(t, s, memory.Record{Key: key, Value: raw(tc.given), Metadata: raw(tc.given)})
		rec := get(t, s, key)
		wantEqual(t, "value", string(rec.Value), tc.want)
		wantEqual(t, "metadata", string(rec.Metadata), tc.want)
	}
	set(t, s, memory.Record{Key: "none", Value: raw("1")})
	wantEqual(t, "metadata where none is given", string(get(t, s, "none").Metadata), "{}")
}

func times(t *testing.T, s memory.Store) {
	created := time.Date(2024, 2, 29, 23, 59, 59, 500_000_000, time.UTC)
	updated := time.Date(2025, 1, 1, 0, 0, 0, 123_456_000, time.FixedZone("", 3600))
	set(t, s, memory.Record{Key: "k", Value: raw("1"), Created: created, Updated: updated})
	rec := get(t, s, "k")
	if d := rec.Created.Sub(created).Abs(); d > time.Microsecond {
		t.Errorf("Created is %v, want %v", rec.Created, created)
	}
	if d := rec.Updated.Sub(updated).Abs(); d > time.Microsecond {
		t.Errorf("Updated is %v, want %v", rec.Updated, updated)
	}
	rec.Value = raw("2")
	again := set(t, s, rec)
	if !again.Created.Equal(rec.Created) || !again.Updated.Equal(rec.Updated) {
		t.Errorf("times that were got don't stay: %v, %v", again, rec)
	}
}

func oddKeys(t *testing.T, s memory.Store) {
	var want []string
	for i, key := range OddKeys {
		set(t, s, memory.Record{Key: key, Value: raw(strconv.Itoa(i))})
		want = append(want, key)
	}
	slices.Sort(want)
	wantEqual(t, "keys", keys(t, s), want)
	for i, key := range OddKeys {
		wantEqual(t, fmt.Sprintf("value of %.50q", key), string(get(t, s, key).Value), strconv.Itoa(i))
	}
	for i, key := range OddKeys {
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete of %.50q: %v", key, err)
		}
		_, err := s.Get(t.Context(), key)
		wantErr(t, "Get after Delete", err, memory.ErrNotFound)
		if i+1 < len(OddKeys) {
			get(t, s, OddKeys[i+1])
		}
	}
	wantEqual(t, "keys", keys(t, s), []string(nil))
}

func list(t *testing.T, s memory.Store) {
	stored := map[string]memory.Record{}
	for _, key := range []string{"p/b", "p/a", "p", "P/a", "q", "p/", "p é", "p😀", "%", "p/é"} {
		stored[key] = set(t, s, memory.Record{Key: key, Value: raw(`["` + key + `"]`), Metadata: raw(`{"of":"` + key + `"}`)})
	}
	tests := []struct {
		prefix string
		want   []string
	}{
		{"", []string{"%", "P/a", "p", "p é", "p/", "p/a", "p/b", "p/é", "p😀", "q"}},
		{"p/", []string{"p/", "p/a", "p/b", "p/é"}},
		{"p", []string{"p", "p é", "p/", "p/a", "p/b", "p/é", "p😀"}},
		{"p/a", []string{"p/a"}},
		{"p/aa", nil},
		{"%", []string{"%"}},
		{"*", nil},
		{strings.Repeat("p", 2000), nil},
	}
	for _, tc := range tests {
		infos, err := s.List(t.Context(), tc.prefix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, info := range infos {
			got = append(got, info.Key)
			rec := stored[info.Key]
			wantEqual(t, "description", info, memory.Info{
				Key: rec.Key, Metadata: rec.Metadata, Created: rec.Created, Updated: rec.Updated,
				Size: len(rec.Value), Revision: rec.Revision,
			})
		}
		wantEqual(t, fmt.Sprintf("keys with prefix %.20q", tc.prefix), got, tc.want)
	}
}

func invalidKeys(t *testing.T, s memory.Store) {
	for _, key := range []string{"", strings.Repeat("x", memory.MaxKey+1), strings.Repeat("é", 513), "\xff", "a\xc3", "\xed\xa0\x80"} {
		what := fmt.Sprintf("key %.20q", key)
		_, err := s.Get(t.Context(), key)
		wantErrAs[*memory.KeyError](t, what, err)
		_, err = s.CompareAndSet(t.Context(), memory.Record{Key: key, Value: raw("1")})
		wantErrAs[*memory.KeyError](t, what, err)
		wantErrAs[*memory.KeyError](t, what, s.Delete(t.Context(), key))
	}
	wantEqual(t, "keys", keys(t, s), []string(nil))
}

func invalidJSON(t *testing.T, s memory.Store) {
	before := set(t, s, memory.Record{Key: "k", Value: raw("1")})
	for _, text := range []string{"", " ", "nan", "NaN", "Infinity", "{", "[1,]", "1 2", "'a'", "\"\xff\"", "\"a\nb\"", "\ufeff1", "01", "{1:2}"} {
		rec := before
		rec.Value = raw(text)
		_, err := s.CompareAndSet(t.Context(), rec)
		if e := wantErrAs[*memory.ValueError](t, text, err); e.Key != "k" || e.Part != "value" {
			t.Errorf("error %+v", e)
		}
		rec = before
		rec.Metadata = raw(text)
		_, err = s.CompareAndSet(t.Context(), rec)
		if e := wantErrAs[*memory.ValueError](t, text, err); e.Part != "metadata" {
			t.Errorf("error %+v", e)
		}
	}
	wantEqual(t, "record", get(t, s, "k"), before)
}

func valueLimit(t *testing.T, s memory.Store) {
	most := raw(`"` + strings.Repeat("x", 98) + `"`)
	before := set(t, s, memory.Record{Key: "k", Value: raw("  " + string(most) + "\n")})
	rec := before
	rec.Value = raw(`"` + strings.Repeat("x", 99) + `"`)
	_, err := s.CompareAndSet(t.Context(), rec)
	if e := wantErrAs[*memory.LimitError](t, "101 bytes", err); e.Limit != 100 || e.Actual != 101 || e.Key != "k" {
		t.Errorf("error %+v", e)
	}
	wantEqual(t, "record", get(t, s, "k"), before)
}

func largeValue(t *testing.T, s memory.Store) {
	large := raw(`"` + strings.Repeat("x", memory.DefaultValue-2) + `"`)
	set(t, s, memory.Record{Key: "k", Value: large})
	if string(get(t, s, "k").Value) != string(large) {
		t.Error("a value of 16 MiB doesn't come back")
	}
	_, err := s.CompareAndSet(t.Context(), memory.Record{Key: "l", Value: append(large[:len(large)-1:len(large)-1], `x"`...)})
	wantErrAs[*memory.LimitError](t, "a value of 16 MiB and a byte", err)
}

func metadataLimit(t *testing.T, s memory.Store) {
	text := raw(`"` + strings.Repeat("x", memory.MaxMetadata-2) + `"`)
	set(t, s, memory.Record{Key: "k", Value: raw("1"), Metadata: text})
	wantEqual(t, "length of the metadata", len(get(t, s, "k").Metadata), memory.MaxMetadata)
	_, err := s.CompareAndSet(t.Context(), memory.Record{Key: "l", Value: raw("1"), Metadata: append(text[:len(text)-1:len(text)-1], `x"`...)})
	wantErrAs[*memory.LimitError](t, "longer metadata", err)
}

func keyLimit(t *testing.T, s memory.Store) {
	var last memory.Record
	for _, key := range []string{"a", "b", "c"} {
		last = set(t, s, memory.Record{Key: key, Value: raw("1")})
	}
	_, err := s.CompareAndSet(t.Context(), memory.Record{Key: "d", Value: raw("1")})
	if e := wantErrAs[*memory.LimitError](t, "fourth record", err); e.Limit != 3 {
		t.Errorf("error %+v", e)
	}
	last.Value = raw("2")
	set(t, s, last)
	if err := s.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	set(t, s, memory.Record{Key: "d", Value: raw("1")})
	wantEqual(t, "keys", keys(t, s), []string{"b", "c", "d"})
}

func cancelled(t *testing.T, s memory.Store) {
	before := set(t, s, memory.Record{Key: "k", Value: raw("1")})
	cause := errors.New("the test's cause")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	check := func(what string, err error) {
		if !errors.Is(err, cause) && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", what, err)
		}
	}
	_, err := s.Get(ctx, "k")
	check("Get", err)
	rec := before
	rec.Value = raw("2")
	_, err = s.CompareAndSet(ctx, rec)
	check("CompareAndSet", err)
	check("Delete", s.Delete(ctx, "k"))
	_, err = s.List(ctx, "")
	check("List", err)
	wantEqual(t, "record", get(t, s, "k"), before)
}

func createRace(t *testing.T, s memory.Store) {
	const creators = 16
	var won atomic.Int32
	var group sync.WaitGroup
	for i := range creators {
		group.Go(func() {
			_, err := s.CompareAndSet(t.Context(), memory.Record{Key: "k", Value: raw(strconv.Itoa(i))})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, memory.ErrConflict):
				t.Error(err)
			}
		})
	}
	group.Wait()
	wantEqual(t, "creators that won", won.Load(), int32(1))
}

// Increment is an update that adds one to a number.
func Increment(rec memory.Record) (json.RawMessage, error) {
	n := 0
	if rec.Revision != "" {
		if err := json.Unmarshal(rec.Value, &n); err != nil {
			return nil, err
		}
	}
	return json.Marshal(n + 1)
}

func updateRace(t *testing.T, s memory.Store) {
	const updaters, updates = 8, 10
	var group sync.WaitGroup
	for range updaters {
		group.Go(func() {
			for range updates {
				if _, err := memory.Update(t.Context(), s, "k", Increment); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	wantEqual(t, "number", string(get(t, s, "k").Value), strconv.Itoa(updaters*updates))
}

func readRace(t *testing.T, s memory.Store) {
	value := func(n int) json.RawMessage { return raw(`"` + strings.Repeat(strconv.Itoa(n), 10_000) + `"`) }
	set(t, s, memory.Record{Key: "k", Value: value(0)})
	ctx, stop := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for ctx.Err() == nil {
				rec, err := s.Get(t.Context(), "k")
				if err != nil || len(rec.Value) != 10_002 || strings.Trim(string(rec.Value[1:10_001]), string(rec.Value[1])) != "" {
					t.Errorf("Get: %.20q, %v", rec.Value, err)
					return
				}
				if infos, err := s.List(t.Context(), ""); err != nil || len(infos) != 1 || infos[0].Err != nil {
					t.Errorf("List: %v, %v", infos, err)
					return
				}
			}
		})
	}
	for i := range 20 {
		if _, err := memory.Save(t.Context(), s, "k", value(i%10), nil); err != nil {
			t.Error(err)
		}
	}
	stop()
	group.Wait()
}

func save(t *testing.T, s memory.Store) {
	start := time.Now().Add(-time.Millisecond)
	first, err := memory.Save(t.Context(), s, "k", raw("1"), raw(`{"m":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if first.Created.Before(start) || !first.Updated.Equal(first.Created) || first.Created.After(time.Now().Add(time.Millisecond)) {
		t.Errorf("times of a new record: %v, %v", first.Created, first.Updated)
	}
	second, err := memory.Save(t.Context(), s, "k", raw("2"), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "value", string(second.Value), "2")
	wantEqual(t, "metadata where none are given", string(second.Metadata), `{"m":1}`)
	wantEqual(t, "time of creation", second.Created, first.Created)
	if second.Updated.Before(first.Updated) {
		t.Errorf("updated at %v, before %v", second.Updated, first.Updated)
	}
	third, err := memory.Save(t.Context(), s, "k", raw("3"), raw("{}"))
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "new metadata", string(third.Metadata), `{}`)
	wantEqual(t, "record", get(t, s, "k"), third)

	_, err = memory.Save(t.Context(), s, "", raw("1"), nil)
	wantErrAs[*memory.KeyError](t, "Save", err)
	_, err = memory.Save(t.Context(), s, "k", raw("{"), nil)
	wantErrAs[*memory.ValueError](t, "Save", err)
}

func update(t *testing.T, s memory.Store) {
	rec, err := memory.Update(t.Context(), s, "k", func(rec memory.Record) (json.RawMessage, error) {
		wantEqual(t, "what there is before the first", rec, memory.Record{Key: "k"})
		return raw("1"), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "record", get(t, s, "k"), rec)

	// Others change, delete and create the record while the function computes.
	calls := 0
	rec, err = memory.Update(t.Context(), s, "k", func(rec memory.Record) (json.RawMessage, error) {
		calls++
		switch calls {
		case 1:
			rec.Value, rec.Metadata = raw("10"), raw(`{"m":1}`)
			set(t, s, rec)
		case 2:
			wantEqual(t, "value after a change", string(rec.Value), "10")
			if err := s.Delete(t.Context(), "k"); err != nil {
				t.Error(err)
			}
		case 3:
			wantEqual(t, "record after a deletion", rec, memory.Record{Key: "k"})
			set(t, s, memory.Record{Key: "k", Value: raw("20"), Metadata: raw(`{"m":2}`)})
		}
		return Increment(rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "calls of the function", calls, 4)
	wantEqual(t, "value", string(rec.Value), "21")
	wantEqual(t, "metadata", string(rec.Metadata), `{"m":2}`)

	failure := errors.New("the function's own")
	_, err = memory.Update(t.Context(), s, "k", func(memory.Record) (json.RawMessage, error) { return nil, failure })
	wantErr(t, "Update", err, failure)
	_, err = memory.Update(t.Context(), s, "k", func(memory.Record) (json.RawMessage, error) { return raw("nan"), nil })
	wantErrAs[*memory.ValueError](t, "Update", err)
	wantEqual(t, "record", get(t, s, "k"), rec)
}

func commit(t *testing.T, s memory.Store) {
	one := set(t, s, memory.Record{Key: "k", Value: raw("1"), Metadata: raw(`{"m":1}`)})
	try := func(key, revision string, value string) (memory.Record, error) {
		return memory.Commit(t.Context(), s, key, revision, 0, raw(value))
	}
	_, err := try("k", "", "0")
	wantErr(t, "second creation", err, memory.ErrConflict)
	two, err := try("k", one.Revision, "2")
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "metadata", string(two.Metadata), `{"m":1}`)
	wantEqual(t, "time of creation", two.Created, one.Created)
	_, err = try("k", one.Revision, "0")
	wantErr(t, "commit of an old revision", err, memory.ErrConflict)
	_, err = try("other", one.Revision, "0")
	wantErr(t, "commit of an absent record's revision", err, memory.ErrConflict)
	if _, err := try("new", "", "1"); err != nil {
		t.Error(err)
	}

	again, err := memory.Attempt(t.Context(), s, "k", 1)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "record", again, two)
	none, err := memory.Attempt(t.Context(), s, "other", 1)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, "absent record", none, memory.Record{Key: "other"})
	_, err = memory.Attempt(t.Context(), s, "k", memory.MaxConflicts)
	if e := wantErrAs[*memory.ContentionError](t, "last conflict", err); e.Conflicts != memory.MaxConflicts {
		t.Errorf("error %+v", e)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = memory.Attempt(ctx, s, "k", memory.MaxConflicts-1)
	wantErr(t, "Attempt", err, context.Canceled)
}
