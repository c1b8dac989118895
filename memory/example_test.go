package memory_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"codeexec/memory"
)

func Example() {
	state, err := os.MkdirTemp("", "state")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(state)

	dir, err := memory.OpenDir(filepath.Join(state, "user_tools", "memory"), filepath.Join(state, "memory.lock"), memory.Limits{})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, err := memory.Save(ctx, dir, "tasks", json.RawMessage(`["write"]`), nil); err != nil {
		panic(err)
	}
	// Another process may update the same record at the same time.
	rec, err := memory.Update(ctx, dir, "tasks", func(rec memory.Record) (json.RawMessage, error) {
		var tasks []string
		if err := json.Unmarshal(rec.Value, &tasks); err != nil {
			return nil, err
		}
		return json.Marshal(append(tasks, "test"))
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(string(rec.Value))
	// Output: ["write","test"]
}
