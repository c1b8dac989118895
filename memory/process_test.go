package memory_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"codeexec/memory"
	"codeexec/memory/storetest"
)

// The test program runs itself with this variable set to what it should do on a store, see child.
const taskVariable = "CODEEXEC_MEMORY_TEST"

// A task is what one process does.
type task struct {
	Name             string
	Path, Lock       string
	Goroutines, Each int // of increment
}

func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(taskVariable); ok {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// child does a task, after a line on standard input.
func child(text string) error {
	var task task
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	dir, err := memory.OpenDir(task.Path, task.Lock, memory.Limits{})
	if err != nil {
		return err
	}
	var line [1]byte
	os.Stdin.Read(line[:])
	switch task.Name {
	case "increment":
		return increment(dir, task)
	case "save":
		return saveForever(dir)
	case "faults":
		return faults(dir, task)
	}
	return fmt.Errorf("unknown task %q", task.Name)
}

// spawn starts a process for a task, which waits for a line on the returned pipe.
func spawn(t testing.TB, task task) (*exec.Cmd, *os.File, *output) {
	t.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	in, start, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	output := &output{written: make(chan struct{})}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, output, output
	configure(cmd, task)
	if err := cmd.Start(); err != nil {
		start.Close()
		t.Skipf("can't start a process for %s: %v", task.Name, err)
	}
	t.Cleanup(func() {
		start.Close()
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd, start, output
}

// increment updates one key from several goroutines.
func increment(dir *memory.Dir, task task) error {
	var group sync.WaitGroup
	errs := make(chan error, task.Goroutines)
	for range task.Goroutines {
		group.Go(func() {
			for range task.Each {
				if _, err := memory.Update(context.Background(), dir, "counter", storetest.Increment); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(errs)
	return <-errs
}

// incrementFrom lets processes with goroutines increment one key, and checks the sum.
func incrementFrom(t testing.TB, processes, goroutines, each int) time.Duration {
	state := t.TempDir()
	task := task{
		Name: "increment", Path: filepath.Join(state, "user_tools", "memory"), Lock: filepath.Join(state, "lock"),
		Goroutines: goroutines, Each: each,
	}
	var cmds []*exec.Cmd
	var starts []*os.File
	var outputs []*output
	for range processes {
		cmd, start, output := spawn(t, task)
		cmds, starts, outputs = append(cmds, cmd), append(starts, start), append(outputs, output)
	}
	begin := time.Now()
	for _, start := range starts {
		start.WriteString("\n")
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, outputs[i])
		}
	}
	took := time.Since(begin)

	dir, err := memory.OpenDir(task.Path, task.Lock, memory.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	rec, err := dir.Get(t.Context(), "counter")
	if want := strconv.Itoa(processes * goroutines * each); err != nil || string(rec.Value) != want {
		t.Errorf("the number is %s, %v; want %s", rec.Value, err, want)
	}
	return took
}

func TestUpdatesOfSeveralProcessesAreAllApplied(t *testing.T) { incrementFrom(t, 3, 4, 8) }

// BenchmarkContendedUpdates measures how many updates of one key several processes get done together.
func BenchmarkContendedUpdates(b *testing.B) {
	for b.Loop() {
		const processes, goroutines, each = 8, 8, 500
		took := incrementFrom(b, processes, goroutines, each)
		b.ReportMetric(processes*goroutines*each/took.Seconds(), "updates/s")
	}
}

// A value of the killed process is this many copies of the number of the save.
const copies = 5000

// saveForever saves values that are recognisably whole, and says so.
func saveForever(dir *memory.Dir) error {
	for n := 0; ; n++ {
		value, err := json.Marshal(strings.Repeat(fmt.Sprintf("%08d", n), copies))
		if err != nil {
			return err
		}
		if _, err := memory.Save(context.Background(), dir, "k/1", value, nil); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

func TestAKilledSaveLeavesTheOldOrTheNewRecord(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	t.Logf("killed during %d saves", killSaves(t, rounds))
}

// BenchmarkKilledSaves is that test on 2,000 saves.
func BenchmarkKilledSaves(b *testing.B) {
	for b.Loop() {
		for saves := 0; saves < 2000; {
			saves += killSaves(b, 20)
		}
	}
}

// killSaves kills processes that save, a number of times, checks what they leave, and returns how
// many saves there were.
func killSaves(t testing.TB, rounds int) (saves int) {
	state := t.TempDir()
	task := task{Name: "save", Path: filepath.Join(state, "user_tools", "memory"), Lock: filepath.Join(state, "lock")}
	dir, err := memory.OpenDir(task.Path, task.Lock, memory.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for range rounds {
		cmd, start, output := spawn(t, task)
		start.WriteString("\n")
		<-output.written
		time.Sleep(rand.N(50 * time.Millisecond)) // it is the moment that is tested
		cmd.Process.Kill()
		cmd.Wait()
		lines := strings.Split(output.String(), "\n")
		if len(lines) < 2 {
			t.Fatalf("the process says %s", output)
		}
		reported, err := strconv.Atoi(lines[len(lines)-2]) // the last save that has returned
		if err != nil {
			t.Fatalf("the process says %s", output)
		}
		saves += reported + 1

		rec, err := dir.Get(t.Context(), "k/1")
		if err != nil {
			t.Fatalf("after save %d: %v", reported, err)
		}
		var value string
		if err := json.Unmarshal(rec.Value, &value); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(value[:8])
		if err != nil || value != strings.Repeat(value[:8], copies) || n != reported && n != reported+1 {
			t.Errorf("after save %d the record is %.24q…, neither old nor new", reported, value)
		}
		// And the next process isn't kept from saving.
		if _, err := memory.Save(t.Context(), dir, "k/2", json.RawMessage("1"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if names, err := filepath.Glob(filepath.Join(task.Path, ".*")); err != nil || len(names) > 0 {
		t.Errorf("killed processes leave %v, %v", names, err)
	}
	return saves
}

// output is what a process writes.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	written chan struct{} // closed after the first write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.text.Len() == 0 {
		close(o.written)
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
