package memory_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"codeexec/memory"
	"codeexec/memory/storetest"
)

// FuzzStore compares a store with a map, over a sequence of operations: a byte for the operation, and
// one for the length of each text that follows.
func FuzzStore(f *testing.F) {
	for _, key := range storetest.OddKeys {
		if len(key) < 128 {
			k := string(rune(len(key))) + key
			f.Add([]byte("\x00" + k + "\x01x" + "\x01" + k + "\x05[1,2]" + "\x02" + k + "\x03" + k))
		}
	}
	f.Add([]byte("\x00\x03a/b\x01x\x00\x03a_b\x01y\x00\x03a b\x01z\x03\x03a/b\x02\x03a_b\x04"))
	f.Fuzz(func(t *testing.T, script []byte) {
		dir, path := openDir(t, memory.Limits{Keys: 20, Value: 50})
		model := map[string]string{}
		next := func() string {
			if len(script) == 0 {
				return ""
			}
			n := min(int(script[0]), len(script)-1)
			text := string(script[1 : 1+n])
			script = script[1+n:]
			return text
		}
		for steps := 0; len(script) > 0 && steps < 50; steps++ {
			op := script[0] % 5
			script = script[1:]
			key := next()
			validKey := key != "" && len(key) <= memory.MaxKey && utf8.ValidString(key)
			old, exists := model[key]
			switch op {
			case 0, 1: // save a string, or whatever the text is
				value := next()
				if op == 0 {
					text, err := json.Marshal(value)
					if err != nil {
						t.Fatal(err)
					}
					value = string(text)
				}
				rec, err := memory.Save(context.Background(), dir, key, raw(value), nil)
				compact := compacted(value)
				allowed := validKey && utf8.ValidString(value) && compact != "" && len(compact) <= 50 && (exists || len(model) < 20)
				if allowed != (err == nil) {
					t.Fatalf("save of %q, %q: %v", key, value, err)
				}
				if err == nil {
					if string(rec.Value) != compact {
						t.Fatalf("save of %q returns %s", value, rec.Value)
					}
					model[key] = compact
				}
			case 2: // load
				rec, err := dir.Get(context.Background(), key)
				if (err == nil) != exists || string(rec.Value) != old || !exists && validKey && !errors.Is(err, memory.ErrNotFound) {
					t.Fatalf("load of %q: %s, %v; want %s", key, rec.Value, err, old)
				}
			case 3: // delete
				err := dir.Delete(context.Background(), key)
				if (err == nil) != exists || !exists && validKey && !errors.Is(err, memory.ErrNotFound) {
					t.Fatalf("delete of %q: %v", key, err)
				}
				delete(model, key)
			case 4: // list
				checkList(t, dir, key, model)
			}
		}
		checkList(t, dir, "", model)
		if names := files(t, path); len(names) != len(model) {
			t.Fatalf("files %q for %q", names, model)
		}
		if names := files(t, filepath.Join(path, "../..")); len(names) > 2 {
			t.Fatalf("there are %q", names)
		}
	})
}

// compacted returns a JSON text without white space, "" if it is none.
func compacted(text string) string {
	var value json.RawMessage
	if json.Unmarshal([]byte(text), &value) != nil {
		return ""
	}
	var out strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case quoted && c == '\\':
			out.WriteByte(c)
			i++
			c = value[i]
		case c == '"':
			quoted = !quoted
		case !quoted && strings.IndexByte(" \t\r\n", c) >= 0:
			continue
		}
		out.WriteByte(c)
	}
	return out.String()
}

func checkList(t *testing.T, dir *memory.Dir, prefix string, model map[string]string) {
	infos, err := dir.List(context.Background(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, info := range infos {
		if info.Err != nil || info.Size != len(model[info.Key]) {
			t.Fatalf("list has %+v", info)
		}
		got = append(got, info.Key)
	}
	for _, key := range slices.Sorted(maps.Keys(model)) {
		if strings.HasPrefix(key, prefix) {
			want = append(want, key)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("list of %q is %q, want %q", prefix, got, want)
	}
}

// FuzzFile lets a store read any file.
func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"key":"k","value":[1,{"a":[]},"\"x"],"metadata":null,"created_at":1.5,"updated_at":1e300}`))
	f.Add([]byte(`{"key":1e5,"value":"\ud800"}`))
	f.Add([]byte("{\"key\":\"k\",\"key\":\"\\ufffd\",\"value\": [ ] }"))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir, path := openDir(t, memory.Limits{Value: 1000})
		write(t, path, "k.json", string(data))
		rec, err := dir.Get(context.Background(), "k")
		infos, lerr := dir.List(context.Background(), "")
		if lerr != nil || len(infos) != 1 || err == nil && infos[0].Key != "k" {
			t.Fatalf("list: %+v, %v; record: %+v, %v", infos, lerr, rec, err)
		}
		saved, serr := memory.Save(context.Background(), dir, "k", raw("1"), nil)
		if serr != nil {
			t.Fatal(serr)
		}
		if err == nil && (!saved.Created.Equal(rec.Created) || string(saved.Metadata) != string(rec.Metadata)) {
			t.Fatalf("%+v became %+v", rec, saved)
		}
		if err == nil {
			if rec, err = memory.Save(context.Background(), dir, "k", rec.Value, nil); err != nil {
				t.Fatal(err)
			}
			if got, err := dir.Get(context.Background(), "k"); err != nil || string(got.Value) != string(rec.Value) {
				t.Fatalf("%s became %s, %v", rec.Value, got.Value, err)
			}
		}
	})
}
