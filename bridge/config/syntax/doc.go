// Package syntax parses configuration files of any origin.
//
// What people, and programs, have put into such a file may be anything, secrets
// among it. So the errors say where something is wrong and quote nothing, and
// no file makes the parsers recurse without end. bridge/config decodes what is
// parsed here, and bridge/install edits it.
package syntax

// MaxDepth is far more than a configuration needs, and far less than what the
// parser, which calls itself for each level, has stack for.
const MaxDepth = 100
