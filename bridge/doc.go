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
// # Why sessions have owners
//
// One process may serve many clients over HTTP, and most of them call their session "default". A client with a
// token is who the token's name says, on whichever connection: it finds its sessions again. One without a token
// is known by its connection (the header Mcp-Session-Id), and its sessions go with that. Where the protocol has no
// connections either, from version 2026-07-28 on, there is nothing to tell clients without tokens apart by: they
// are all one owner, and keep out of each other's way by the argument session. Owners share what the user of this
// machine has only once: the servers, /projects and memory.
//
// # Why an owner's sessions make room for those of others
//
// With a limit on all sessions and nothing else, a client that makes a new one for each request would take them
// from those that come back to theirs. So whoever has most makes room, and a running script is never touched.
//
// # Why a run outlives its stream in some versions of the protocol
//
// Up to 2025-11-25 a broken stream says nothing about the request: clients come back for the answer (with
// Last-Event-ID), and cancel by a notification. From 2026-07-28 on, to close the stream is to cancel.
//
// # Why progress counts seconds
//
// The protocol wants it to grow with each notification. What the calls of a script say of theirs begins anew
// with each of them; the time only grows.
//
// # Why pictures follow the text
//
// Clients differ in how they join several blocks of text, and some show only the first. So an answer has one, then
// its images in the order in which the script showed them. Where one belongs, the output has a line such as
// "[image 1: image/png, 640×480]"; it is written by the host, when the picture is shown, since only the host knows
// what becomes of it.
//
// # Why SVG is not drawn
//
// Clients take PNG, JPEG, GIF and WebP as images. There is no well-kept Go library that draws all of SVG, and one
// that draws most of it would show the model a picture that isn't what the script made. So an SVG is saved, and the
// answer has a link to it.
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
