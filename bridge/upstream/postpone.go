package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// maxPostponed is how often in a row a request is made again that the server
	// has no time for.
	maxPostponed = 3
	// postponedDelay is how long the first such request waits where the server
	// doesn't say; each further one twice as long.
	postponedDelay = 300 * time.Millisecond
)

// post posts a message. If the server answers that it has no time for it, and
// so hasn't acted on it, it is posted again when the server wants it
// (https://www.rfc-editor.org/rfc/rfc9110#field.retry-after), as long as that is
// before ctx ends.
func (r *remote) post(ctx context.Context, to *url.URL, body []byte, set map[string]string) (*http.Response, error) {
	for postponed := 0; ; postponed++ {
		resp, err := r.request(ctx, http.MethodPost, to, body, set)
		if err != nil || !isBusy(resp.StatusCode) || postponed == maxPostponed {
			return resp, err
		}
		delay, ok := retryAfter(resp.Header, time.Now())
		if !ok {
			delay = postponedDelay << postponed
		}
		if deadline, ok := ctx.Deadline(); delay > maxRetryDelay || ok && time.Until(deadline) <= delay {
			return resp, nil
		}
		r.conn.log.Debug("the server is busy", "status", resp.StatusCode, "again_in", delay)
		io.Copy(io.Discard, io.LimitReader(resp.Body, maxErrorBody))
		resp.Body.Close()
		if !pause(ctx, delay) {
			return nil, context.Cause(ctx)
		}
	}
}

// isBusy reports whether an HTTP status says that the server has no time.
func isBusy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// retryAfter returns how long a server wants to be left alone. It reports false
// if the server doesn't say.
func retryAfter(header http.Header, now time.Time) (time.Duration, bool) {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(now), 0), true
	}
	return 0, false
}

// busyHint says when to try again.
func busyHint(resp *http.Response) string {
	delay, ok := retryAfter(resp.Header, time.Now())
	if !ok || !isBusy(resp.StatusCode) {
		return ""
	}
	return fmt.Sprintf("try again in %v", delay.Round(time.Second))
}
