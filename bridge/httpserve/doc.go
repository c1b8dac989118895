// Package httpserve puts an MCP endpoint on a port: it decides who may talk to it, by which name, and how
// much, and brings health and metrics along.
//
// Its one job is what lies between a socket and a handler that trusts its requests: tokens, the headers Host and
// Origin, limits, and the order in which everything stops. It knows nothing of sessions or scripts; package
// bridge has the handler, the command ties both together.
//
// # Why loopback needs no token, and everything else does
//
// Whoever can connect to the loopback interface can run Python as this user anyway. Anybody else would get a
// sandbox, and with it every MCP server of this user.
//
// # Why Host and Origin are checked where there is a token too
//
// A page in this user's browser can send requests to the loopback interface, and by DNS rebinding under a name of
// its own. Host must be a name that we know ourselves by, Origin one of a page that may use us.
//
// # Why there is no TLS
//
// Whoever serves more than one machine has a proxy or an ingress that has certificates, renews them, and
// balances the load. A second place for them would be one more to forget.
package httpserve
