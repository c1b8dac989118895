// Package bridge is the MCP side of codeexec, in both directions: the server that clients see, with its
// tool run_python, and the upstream servers that scripts call.
//
// A [Bridge] ties three parts together. It takes Python code ([Bridge.Run]), gives it to a sandbox of
// package wasmhost, answers what the code asks of its host (with the servers of package upstream), and
// makes of the outcome what a client can read. [NewServer] puts an MCP server in front of it.
//
// It may import wasmhost, hostfuncs and its own sub-packages; it knows nothing of WebAssembly. The
// commands call it.
//
// # Why a session is an argument and not the connection
//
// Since version 2026-07-28 the protocol is stateless: a client may open a connection for each request, or
// share one between several conversations. So the state of a conversation belongs to a name that the
// caller chooses, the argument session of run_python.
//
// # Why runs of one session queue, and in the order of their requests
//
// They share one interpreter. A client that sends "x = 1" and "print(x)" without waiting for the first
// answer means them in this order. [Server.ServeStdio] therefore reads the next message only when the
// last call has its place in the queue.
//
// # Why progress counts seconds
//
// The protocol wants it to grow with each notification. What the calls of a script say of theirs begins anew
// with each of them; the time only grows.
//
// # Why the signatures of a server come from a sandbox
//
// A script that prints runtime.stubs(server) and a client that reads the resource must see the same text. The
// code that makes it is Python's, and a sandbox costs a millisecond.
//
// # Why the list of resources has no notifications of changes
//
// Each run changes it. Clients that answer each notification with a request would pay for every run twice.
//
// # Why an unknown argument is refused
//
// A misspelt "server" for "servers" would otherwise give the script every server instead of the one that
// was meant.
package bridge
