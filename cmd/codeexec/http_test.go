package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A httpServer is a "codeexec serve --http" in a process of its own.
type httpServer struct {
	url string // of the endpoint
	cmd *exec.Cmd
	log *lockedBuffer
	end chan error
}

var servingURL = regexp.MustCompile(`msg="serving MCP over HTTP" url=(\S+)`)

// startHTTP starts codeexec on a free port, waits until it can run scripts, and stops it when the test is over:
// it must go without complaint.
func startHTTP(t *testing.T, args ...string) *httpServer {
	t.Helper()
	t.Setenv("CODEEXEC_STATE_DIR", t.TempDir())
	t.Setenv("CODEEXEC_CACHE_DIR", freshCache(t))
	cmd := exec.Command("codeexec", append([]string{"serve", "--http", "127.0.0.1:0", "--sources", "none"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &httpServer{cmd: cmd, log: &lockedBuffer{}, end: make(chan error, 1)}
	urls := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadString('\n')
			s.log.Write([]byte(line))
			if m := servingURL.FindStringSubmatch(line); m != nil {
				urls <- m[1]
			}
			if err != nil {
				break
			}
		}
		s.end <- cmd.Wait()
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of the server:\n%s", s.log)
		}
	})
	t.Cleanup(func() { s.stop(t) })
	select {
	case s.url = <-urls:
	case err := <-s.end:
		s.end <- err
		t.Fatalf("the server has ended: %v\n%s", err, s.log)
	case <-time.After(patience):
		t.Fatalf("the server doesn't listen\n%s", s.log)
	}
	deadline := time.Now().Add(patience)
	for s.get(t, "/healthz") != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("the server doesn't get ready")
		}
		time.Sleep(20 * time.Millisecond)
	}
	return s
}

// get returns the status of another path of the server.
func (s *httpServer) get(t *testing.T, path string) int {
	t.Helper()
	status, _ := s.body(t, path)
	return status
}

func (s *httpServer) body(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Get(strings.TrimSuffix(s.url, "/mcp") + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// stop tells the server to stop, and checks that it does.
func (s *httpServer) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && runtime.GOOS == "windows" { // which has no such signal
		s.cmd.Process.Kill()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	select {
	case err := <-s.end:
		s.end <- err
		if err != nil {
			t.Errorf("the server ended with %v", err)
		}
	case <-ctx.Done():
		s.cmd.Process.Kill()
		t.Error("the server doesn't stop")
	}
}
