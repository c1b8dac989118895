// Package catalog keeps what is known of the tools of MCP servers, also of
// those that aren't running.
//
// Its one job is to remember, between processes, what a server listed when it
// last ran, so that finding a tool among fifty servers starts none of them. It
// knows files and the shape of a tool; it starts nothing and knows no
// transport. bridge/upstream saves what servers list, and answers from it.
//
// # What a record is
//
// One file a server, in a folder of the cache directory: a line of JSON with
// what describes the listing, and a line with the list of tools. Its name is a
// hash of the server's configuration. So a server that is configured otherwise
// is another server, and two projects whose servers share a name don't share
// tools. A process that wants to know only how many tools there are reads one
// line.
//
// # Why the hash covers secrets
//
// Another token may be another account, with other tools. The hash can't be
// turned back, and it is in the name of a file in a folder that only the owner
// may enter; nothing else of the configuration but the server's name is
// written anywhere.
//
// # Why nothing expires
//
// A record may be older than its server. What it is used for can stand that:
// documentation and search. Whoever calls a tool starts the server, whose own
// list then counts, and whose record is written anew. Only space is reclaimed:
// records that nobody has read for long go, see [Open].
package catalog
