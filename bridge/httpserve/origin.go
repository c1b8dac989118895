package httpserve

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"codeexec/bridge/config"
)

// A guard refuses requests that a page in a browser may have been talked into.
type guard struct {
	hosts   []string // names that Host may have besides those of the loopback interface, lower case
	origins []string // origins of pages besides those on the loopback interface, lower case
	next    http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if !g.hostAllowed(req) {
		http.Error(w, fmt.Sprintf("the header Host names %q, which is not this server; if it is, start it with --allow-host", clip(req.Host)), http.StatusForbidden)
		return
	}
	if origin := req.Header.Get("Origin"); origin != "" {
		listed := slices.Contains(g.origins, strings.ToLower(origin))
		if !listed && !loopbackOrigin(origin) {
			http.Error(w, fmt.Sprintf("pages of %q may not use this server; if they should, start it with --allow-origin", clip(origin)), http.StatusForbidden)
			return
		}
		if listed && allowPage(w, req, origin) {
			return
		}
	}
	g.next.ServeHTTP(w, req)
}

// hostAllowed reports whether a request was meant for us: by a name of the loopback interface, by one that we
// were told, or by the address that it has come to. An address can't be rebound as a name can.
func (g *guard) hostAllowed(req *http.Request) bool {
	host := hostOnly(req.Host)
	if config.IsLoopback(host) || slices.Contains(g.hosts, host) {
		return true
	}
	local, ok := req.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	to, err := netip.ParseAddrPort(local.String())
	named, nameErr := netip.ParseAddr(host)
	return err == nil && nameErr == nil && to.Addr().Unmap() == named.Unmap()
}

// hostOnly returns the host of "host:port", lower case, without the brackets of an IPv6 address.
func hostOnly(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]")
	}
	return strings.ToLower(host)
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && config.IsLoopback(u.Hostname())
}

// allowPage lets a page read our answers (https://fetch.spec.whatwg.org/#http-cors-protocol). It reports whether
// that was all that the request asked for.
func allowPage(w http.ResponseWriter, req *http.Request, origin string) (answered bool) {
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	if req.Method != http.MethodOptions || req.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name")
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

func clip(s string) string { return s[:min(len(s), 100)] }
