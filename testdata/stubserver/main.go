// Stubserver is an MCP server for tests. It speaks MCP on stdin and stdout, and
// misbehaves on demand: its tools return every kind of result there is, and its
// flags make it start, talk and end badly.
//
//	echo, say, add       arguments come back; text; structured content
//	sleep, block         take their time; honour cancellation, or don't
//	fail, crash, protocol-error     the three ways to go wrong
//	image, audio, resource, blob, link, several, two-texts, nothing, empty-text   content
//	json-object, json-array, json-text       text that may be JSON
//	structured           {"kind": …}: null, zero, false, empty, list, big, bare, …
//	wrapped              a number in an object with the only property "result"
//	list-items, get.value, class, camelCase, list_tools      odd tool names
//	keywords             parameters from, class, cik-A and required ones after optional
//	large                {"bytes": n}: a text of that length
//	malformed            {"kind": …}: answers that aren't valid, or too long
//	env, process, client, log, cancelled     what the server sees and says
//	add-tool             adds a tool and says that the list has changed
//	spawn                starts a process that outlives its parent
//
// With the flag -odd it has other tools, whose schemas are strange or wrong.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type options struct {
	name          string
	banner        int
	stderr        int
	silent        bool
	mute          string
	exitOn        string
	unknown       string
	slow          time.Duration
	version       string
	tools         int
	page          int
	circle        bool
	ignoreEOF     bool
	ignoreTerm    bool
	flood         int
	spawn         string
	pidFile       string
	exit          int
	rude          bool
	child         bool
	closeStdout   bool
	stopReading   bool
	failFirstTime string
	instructions  string
	odd           bool
	remote        string
	deep          int
}

func main() {
	log.SetFlags(0)
	var o options
	flag.StringVar(&o.name, "name", "stub", "name of the server")
	flag.IntVar(&o.banner, "banner", 0, "print this many lines on stdout that are no messages")
	flag.IntVar(&o.stderr, "stderr", 0, "print this many lines on stderr")
	flag.BoolVar(&o.silent, "silent", false, "read requests, never answer any")
	flag.StringVar(&o.mute, "mute", "", "never answer this method")
	flag.StringVar(&o.exitOn, "exit-on", "", "exit with status 3 when this method is requested")
	flag.StringVar(&o.unknown, "unknown", "", "answer this method with error -32601")
	flag.DurationVar(&o.slow, "slow", 0, "wait this long before reading anything")
	flag.StringVar(&o.version, "version", "", "speak only this protocol version")
	flag.IntVar(&o.tools, "tools", 0, "have this many tools more")
	flag.IntVar(&o.page, "page", 0, "list this many tools a page")
	flag.BoolVar(&o.circle, "circle", false, "give the same cursor with every page")
	flag.BoolVar(&o.ignoreEOF, "ignore-eof", false, "live on when stdin is closed")
	flag.BoolVar(&o.ignoreTerm, "ignore-term", false, "live on after SIGTERM")
	flag.IntVar(&o.flood, "flood", 0, "write this many MiB without a newline to stdout first, then a newline")
	flag.StringVar(&o.spawn, "spawn", "", `start a process that outlives this one: "group" (in our process group) or "session" (in its own)`)
	flag.StringVar(&o.pidFile, "pid-file", "", "append the ids of this process and those it spawns to this file")
	flag.IntVar(&o.exit, "exit", -1, "exit at once with this status")
	flag.BoolVar(&o.rude, "rude", false, "send malformed and unexpected messages before everything else")
	flag.BoolVar(&o.closeStdout, "close-stdout", false, "close stdout after the greeting, but live on")
	flag.BoolVar(&o.stopReading, "stop-reading", false, "stop reading stdin after the greeting")
	flag.StringVar(&o.failFirstTime, "fail-first", "", "exit with status 4, unless this file exists; create it")
	flag.StringVar(&o.instructions, "instructions", "", "tell clients this about the server")
	flag.BoolVar(&o.odd, "odd", false, "have nothing but tools with odd schemas")
	flag.StringVar(&o.remote, "remote", "http://schemas.invalid", "the address that an odd schema refers to")
	flag.IntVar(&o.deep, "deep", 0, "have a tool whose schema is so many objects deep")
	flag.BoolVar(&o.child, "child", false, "be the process that -spawn starts")
	flag.Parse()
	if o.child {
		ignoreSignals()
		for {
			time.Sleep(time.Hour)
		}
	}
	if err := run(context.Background(), o); err != nil && !errors.Is(err, io.EOF) {
		log.Fatal(err)
	}
}

func ignoreSignals() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
}

func run(ctx context.Context, o options) error {
	note(o, os.Getpid())
	if o.ignoreTerm {
		ignoreSignals()
	}
	for i := range o.stderr {
		fmt.Fprintf(os.Stderr, "stderr line %d\n", i+1)
	}
	if o.exit >= 0 {
		os.Exit(o.exit)
	}
	if o.failFirstTime != "" {
		if f, err := os.OpenFile(o.failFirstTime, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			f.Close()
			os.Exit(4)
		}
	}
	if o.spawn != "" {
		if err := spawn(o, o.spawn); err != nil {
			return err
		}
	}
	for i := range o.banner {
		fmt.Printf("Stub server, banner line %d\n\n", i+1)
	}
	for range o.flood {
		os.Stdout.Write(bytes.Repeat([]byte("x"), 1<<20))
	}
	if o.flood > 0 {
		fmt.Println()
	}
	if o.rude {
		rude(os.Stdout)
	}
	time.Sleep(o.slow)

	stdin, stdout := filter(o)
	server := newServer(o)
	session, err := server.Connect(ctx, &mcp.IOTransport{Reader: stdin, Writer: stdout}, nil)
	if err != nil {
		return err
	}
	return session.Wait()
}

// note writes a process id to the file that the test reads.
func note(o options, pid int) {
	if o.pidFile == "" {
		return
	}
	f, err := os.OpenFile(o.pidFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, pid)
}

// spawn starts a process that ends by itself never.
func spawn(o options, how string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.Command(self, "-child")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // it holds our pipes, as such processes do
	if how == "session" {
		detach(cmd)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	note(o, cmd.Process.Pid)
	return nil
}

// rude writes what a client must survive.
func rude(w io.Writer) {
	for _, text := range []string{
		"",
		"[INFO] server starting",
		`"just a string"`,
		`[{"jsonrpc":"2.0","method":"notifications/message","params":{}}]`,
		`{"not":"json-rpc"}`,
		`{"jsonrpc":"1.0","id":998,"result":{}}`,
		`{"jsonrpc":"2.0","id":999,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
		`{"jsonrpc":"2.0","id":{"a":1},"result":{}}`,
		`{"jsonrpc":"2.0","method":"notifications/elicitation/complete"}`,
		`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":null}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":null}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}`,
		`{"jsonrpc":"2.0","method":"notifications/nonsense","params":[1]}`,
		`{"jsonrpc":"2.0","method":7}`,
		`{"jsonrpc":"2.0","id":"s1","method":"sampling/createMessage","params":{"messages":null}}`,
		`{"jsonrpc":"2.0","id":"s2","method":"elicitation/create"}`,
		`{"jsonrpc":"2.0","id":"s3","method":"roots/list"}`,
		`{"jsonrpc":"2.0","id":"s4","method":"no/such/method","params":{}}`,
		`{"jsonrpc":"2.0","id":"s5","method":"ping"}` + "\r",
		"\x00\x01\x02\xff\xfe",
		strings.Repeat("[", 100_000),
		`{"a":` + strings.Repeat("[", 100_000),
		"\x1b[32m✔ ready\x1b[0m",
	} {
		fmt.Fprintln(w, text)
	}
}

// filter puts itself between the streams and the SDK to do what the SDK
// doesn't.
func filter(o options) (io.ReadCloser, io.WriteCloser) {
	r, w := io.Pipe()
	out := new(stdout)
	go func() {
		in := bufio.NewReader(os.Stdin)
		for {
			text, err := in.ReadBytes('\n')
			if err != nil {
				break
			}
			var msg struct {
				ID     json.RawMessage
				Method string
				Params json.RawMessage
			}
			json.Unmarshal(text, &msg)
			if msg.Method == "initialize" {
				greeting.Store(&msg.Params)
			}
			if msg.Method == "tools/call" {
				id, _ := strconv.ParseInt(string(msg.ID), 10, 64)
				lastCall.Store(id)
			}
			switch msg.Method {
			case "":
			case o.mute:
				continue
			case o.exitOn:
				fmt.Fprintf(os.Stderr, "unexpected %s\n", msg.Method)
				os.Exit(3)
			case o.unknown:
				fmt.Fprintf(out, `{"error":{"code":-32601,"message":"Method not found"},"jsonrpc":"2.0","id":%s}`+"\n", msg.ID)
				continue
			}
			if o.silent {
				continue
			}
			w.Write(text)
			if msg.Method == "notifications/initialized" {
				if o.closeStdout {
					os.Stdout.Close()
				}
				if o.stopReading {
					select {}
				}
			}
		}
		if o.ignoreEOF {
			select {}
		}
		w.Close()
	}()
	return r, out
}

// stdout is the process's own, which lines are written to whole.
type stdout struct{ mu sync.Mutex }

func (s *stdout) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return os.Stdout.Write(p)
}

func (s *stdout) Close() error { return nil }

// seen counts the calls that the server has seen cancelled.
type seen struct {
	cancelled atomic.Int64
	running   atomic.Int64
	most      atomic.Int64
}

func newServer(o options) *mcp.Server {
	opts := &mcp.ServerOptions{
		PageSize:     o.page,
		Instructions: o.instructions,
		Capabilities: &mcp.ServerCapabilities{
			//lint:ignore SA1019 real servers have it for years to come
			Logging: &mcp.LoggingCapabilities{},
			Tools:   &mcp.ToolCapabilities{ListChanged: true},
		},
	}
	if o.version != "" {
		opts.SupportedProtocolVersions = []string{o.version}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: o.name, Version: "1.0.0"}, opts)
	addTools(server, o, new(seen))
	if o.odd {
		addOdd(server, o)
	}
	if o.circle {
		server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				if params, ok := req.GetParams().(*mcp.ListToolsParams); ok && params != nil {
					params.Cursor = ""
				}
				result, err := next(ctx, method, req)
				if list, ok := result.(*mcp.ListToolsResult); ok {
					list.NextCursor = "again"
				}
				return result, err
			}
		})
	}
	return server
}

// greeting has the parameters of initialize, as they came.
var greeting atomic.Pointer[json.RawMessage]

// lastCall is the id of the last request to call a tool.
var lastCall atomic.Int64

var errProtocol = &jsonrpc.Error{Code: -32050, Message: "the stub refuses", Data: json.RawMessage(`{"why":"because"}`)}
