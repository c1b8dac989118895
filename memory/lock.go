package memory

import "codeexec/memory/filelock"

// A commitLock lets one commit at a time run, of all processes that name the same file.
type commitLock struct{ *filelock.Lock }

func newCommitLock(path string) *commitLock { return &commitLock{filelock.New(path)} }
