//go:build !linux && !darwin

package main

// addressSpace is the limit on the process's address space in bytes; 0 means none that is known.
func addressSpace() uint64 { return 0 }
