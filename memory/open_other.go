//go:build !unix

package memory

// nonblock is added to every open for reading.
const nonblock = 0
