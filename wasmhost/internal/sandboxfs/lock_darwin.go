package sandboxfs

// Package unix has none of these.
//
// See https://github.com/apple-oss-distributions/xnu/blob/main/bsd/sys/fcntl.h
const (
	ofdSetLock = 90
	ofdGetLock = 92
)
