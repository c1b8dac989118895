package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"codeexec/bridge"
)

func TestMetrics(t *testing.T) {
	m := New("1.2.3")
	m.RunEnded(bridge.StatusSuccess, false, 20*time.Millisecond)
	m.RunEnded(bridge.StatusError, true, time.Millisecond)
	m.RunEnded(bridge.StatusTimeout, false, time.Second)
	m.RunEnded(bridge.StatusCancelled, true, time.Second)
	m.CallEnded("files", bridge.CallOK, time.Millisecond)
	m.CallEnded("", bridge.CallRefused, 0)
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text := answer.Body.String()
	for _, want := range []string{
		`codeexec_runs_total{status="success"} 1`,
		`codeexec_runs_total{status="timeout"} 1`,
		`codeexec_run_duration_seconds_bucket{le="0.05"} 2`,
		`codeexec_run_duration_seconds_count 4`,
		`codeexec_runs_interrupted_total{by="interrupt"} 1`,
		`codeexec_runs_interrupted_total{by="kill"} 1`,
		`codeexec_session_resets_total 2`,
		`codeexec_tool_calls_total{outcome="ok",server="files"} 1`,
		`codeexec_tool_calls_total{outcome="refused",server=""} 1`,
		`codeexec_tool_call_duration_seconds_count{server="files"} 1`,
		`codeexec_build_info{version="1.2.3"} 1`,
		"go_goroutines ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
