// Package install writes codeexec into the configuration of MCP clients, and
// takes it out again.
//
// Its one job is to change a file that belongs to somebody else as little as can
// be. It plans a change, which can be shown, and applies it. It runs nothing and
// knows no protocol. cmd/codeexec calls it; where clients keep their files is
// bridge/config's knowledge.
//
// # Why text is edited, and not values
//
// Decoding a file and encoding it again loses comments, order, and the ways in
// which people write things. So a change is a [splice]: one piece of text takes
// the place of another, and all bytes around it stay. The positions come from a
// parser. Afterwards the new text is parsed too, and must differ from the old in
// our entry only; else nothing is written.
//
// # Why there is a record of what was done
//
// A file that had no place for servers, and one that had an empty place, are the
// same once our entry is in them; so are a file without a final newline and one
// with it. Uninstalling should leave what was there before. The splice is
// remembered in the state directory, and undone as long as what it put into the
// file is still there, however much has changed around it. Otherwise, or without
// a record, the entry is cut out by itself.
//
// So uninstalling undoes an installation: an entry of the user's own that was
// there before comes back. Uninstalling once more removes that too.
//
// # Why there is no record in the client's file
//
// Clients refuse keys that they don't know, or drop them.
//
// # Adding a client
//
// A client is a [form] in client.go, and its files are listed in bridge/config.
package install
