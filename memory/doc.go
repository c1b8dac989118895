// Package memory keeps records by key, safely for many goroutines and many processes at once: JSON
// values that scripts save in one run and load in another.
//
// A [Store] is the small interface of an engine: get, compare-and-set, delete, list. [Dir] is the
// default one, a directory with a JSON file for each record. What callers need beyond that, [Save],
// [Update] and [Commit], is built on the interface, so it is the same over every engine. Package
// memory/storetest is the test that an engine must pass, memory/filelock the lock that commits share.
// The package knows neither WebAssembly nor MCP.
//
// # How a guest reaches it
//
// A guest can't be called back in the middle of a host call, and its function of an update may take
// any time. So an update is a loop in the guest, over two operations of the host:
//
//	memory.get      {key}                              Store.Get
//	memory.exists   {key}                              Store.Get, without the value
//	memory.attempt  {key, conflicts}                   Attempt
//	memory.commit   {key, revision, conflicts, value}  Commit
//	memory.save     {key, value, metadata?}            Save
//	memory.list     {prefix}                           Store.List
//	memory.delete   {key}                              Store.Delete
//
// An update is attempt with 0 conflicts, the function, and commit with the revision that attempt
// returned, "" where there was no record. On [ErrConflict] it begins again with one conflict more. The
// count is its only state, and a guest that lies about it merely waits longer or shorter. Values and
// metadata are JSON texts and must be passed on as such, never through Go's any: a number keeps the
// digits that it was written with.
//
// A key is a string of bytes in UTF-8. Python can hold one that UTF-8 can't, with a lone surrogate:
// the guest refuses it, because a JSON decoder on the way would turn it into another key.
//
// Errors are told apart by errors.Is and errors.As: [ErrNotFound], [ErrConflict], [*DamagedError]
// (MemoryCorrupted in the guest), [*KeyError] and [*ValueError] (a ValueError), [*LimitError],
// [*ContentionError], [*LockError]; what remains is the operating system's.
//
// # Files of a Dir
//
//	{
//	  "key": "a/b",
//	  "value": …,
//	  "metadata": {},
//	  "created_at": 1767225600.5,
//	  "updated_at": 1767225600.5
//	}
//
// in UTF-8, times in seconds since 1970. metadata and the times may be missing in a file that was
// written by hand; the times are then those of the file. The file's name is the key with everything
// but A-Z, a-z, 0-9, "_" and "-" replaced by "_" and cut at 100 characters, then "~" and 16
// hexadecimal digits of the SHA-256 of the key, then ".json". The hash is left out where the key has
// up to 100 characters of a-z, 0-9, "_" and "-", and isn't the name of a device of Windows.
//
// A record is also found under the name without the hash, where an earlier system put it, and under
// the name with it. It stays in the file where it was found. A file is the record of a key only if
// it holds that key, so of two keys that share a name without the hash one gets the other name, and
// no file that holds another key is written.
//
// A file that is no record, because it isn't JSON, has no key, is too large, or is a pipe or
// directory or leads out of the directory, is damaged. It is the record of the key whose file it
// would be, and of the key that is its name without ".json", under which it is listed. Get reports
// it, Delete removes it, and the next save of that key renames it, with ".damaged" after its name.
//
// Whoever may write in the directory may also write records by hand. They are read like the others,
// but such a writer takes no lock, and a commit at the same moment may replace what it wrote.
//
// # Why not a library for the replacement of files
//
// The known ones don't sync the directory, don't build on Windows, or give the temporary file a
// random name. Under the lock there is only one such file, so it has a fixed name, and what a killed
// process left behind is overwritten by the next commit.
//
// # Why the lock is not in the directory
//
// Guests may write in the directory. One that replaced the lock's file would let two commits run at
// once, and one that made it a pipe would stop them all. [OpenDir] therefore takes its path, and
// refuses one in reach.
//
// # Why the directory is opened anew for each operation
//
// A guest may rename or remove it, and put a symlink or a pipe in its place. Each operation opens the
// directory above, which the owner named, and goes down from there by [os.Root]: wherever that
// leads, it isn't outside, and what it finds isn't the remains of a deleted directory. It also leaves
// nothing to close.
//
// # Why updates take turns after some conflicts
//
// Of k updaters that read the same revision one commits, and k-1 have computed in vain. If these
// merely tried again, after whatever random time, the one that has just won would tend to win again,
// because it alone doesn't wait: of 64 updaters with a function that takes 40 ms, some lost a hundred
// times in a row. So one that has lost three times makes a claim, and others don't read the record
// before it has committed or a time is over that is set in advance. They then lose four or five times
// at most, as long as the function takes less than that time. A lock that is held while a function
// runs would do the same, but a guest that hangs would stop everybody else.
//
// After a conflict an attempt reads under the lock. A commit takes milliseconds, nearly all of them
// for syncing, and who read during one would be sure to lose to it.
//
// # Why a revision is a hash
//
// A counter would have to be stored, and people and scripts who write a file by hand don't count. The
// hash of the file's contents sees their changes, too.
package memory
