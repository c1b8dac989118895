// Package sandboxfs is the file system of one sandbox session, as a WASI guest
// sees it through its single preopened directory "/":
//
//	/            read-only: an immutable Base that all sessions share
//	/dev         null, zero, random, urandom
//	/tmp         in memory, private to the session
//	/workspace   another directory of the same memory file system
//	/projects    a directory of the host, if Options.Projects names one
//
// An FS is mounted with
//
//	wazero.NewFSConfig().(sysfs.FSConfig).WithSysFSMount(fs, "/")
//
// and behaves as Linux does, including the errors, as far as wazero lets it;
// see [WithErrnos] for the errors that wazero alone would swallow. The package
// knows wazero's file interface and nothing of Python, sessions or MCP; package
// wasmhost is its only caller.
//
// # Limits
//
// Memory: Options.Quota bounds the bytes that the host holds for file data,
// symlink targets and the tables that find the data; Options.Entries bounds the
// names. A write that doesn't fit is short, and the next one fails with ENOSPC.
// What an unlinked file holds is given back at the last close.
//
// Holes cost nothing: truncating upwards and seeking past the end reserve no
// memory, and a hole is charged only where something is written into it. No
// file may be longer than 1 TiB (EFBIG), and the table of a file with data far
// out is itself charged, so sparse files are no way around the quota.
//
// /projects: Options.ProjectsQuota bounds what a session adds to the host's
// disk. Charged are the bytes by which a write or truncate makes a file longer
// than it was, and 4,096 bytes for each new name (file, directory, link).
// Only shortening a file gives bytes back. Removing one doesn't, because another
// process may hold it open, and then nothing was freed. The count therefore
// grows as a session works; [FS.RenewProjectsQuota] starts a new one.
//
// Handles: at most Options.OpenFiles at once (EMFILE), whatever they are open on.
//
// # Why not wazero's own DirFS for /projects
//
// It joins path strings, so a symlink leads out of the directory. [os.Root]
// resolves every step below an open directory. Where Root is stricter than Linux
// (it refuses to rename a directory over an empty one) or can't tell two
// operations apart (unlink and rmdir), Linux and macOS use the *at system calls
// on a parent directory that Root opened: those never follow the last name.
//
// # Why symlinks in /projects are checked when they are made
//
// The sandbox itself can't be led outside, whatever a link says. But host
// programs follow links too, and a guest must not leave a trap for them. So a
// target must lie inside /projects: an absolute one is stored as a relative one,
// which means the same to the host, and readlink gives it back as it was; a
// relative one may start with "..", as far as the directory of the link is deep. A directory with links in it may
// still be moved later, and a link then lead outside; it dangles in the sandbox.
//
// # Why permissions travel in device numbers
//
// WASI's stat has no permissions. Without them a script's archives hold files that
// nobody may read, and programs that ask before they act take the wrong turn. The
// numbers of devices need half of their 64 bits, so the other half carries them,
// and the sandbox's libc takes them out; a host function would be one more call
// for every stat. What else WASI lacks does have functions, see [HostModule].
//
// # Why locks are those of open files
//
// SQLite keeps writers apart by POSIX locks. Those of the host belong to a process,
// which here has many sessions, and one that closes a file would drop the locks of
// all. So a session has, for each file that it locks, an open file whose locks are
// its own (OFD locks; on Windows all are). They end with the session, whatever ends
// it, and programs of the host respect them.
//
// # Why directories are listed by sequence numbers
//
// Every name gets a number when it is made, and a listing goes on after the last
// number it returned, up to those that existed when it began. So a name that
// exists throughout is returned exactly once, whatever is created, removed or
// renamed meanwhile, a loop that creates files while it lists ends, and nobody
// has to copy a directory of 16,384 names for each of 1,024 handles.
//
// # Why some flags and permissions mean something odd
//
// wazero's WASI layer asks for a few things by their side effects:
//   - It opens "." with permission 0 for the preopen itself, and panics if that
//     fails; this one open is outside the limit of handles.
//   - For utimensat(AT_SYMLINK_NOFOLLOW) it opens the path with O_WRONLY and
//     permission 0, and calls Utimens on the result. OpenFile recognises this
//     (every open of a guest has permission 0600) and returns a handle on the
//     link or directory itself that can do only that.
//   - It passes a symlink's target as a string over guest memory. It is copied.
//   - It keeps a descriptor if Close fails, so Close never does.
//   - It joins the name under which a directory was opened with the path given
//     to openat. That is out of reach here: a renamed directory's handle no longer
//     finds its files by name.
//   - It resolves "." and ".." in paths textually, though a name before ".." may
//     be a symlink or not be there, and refuses names that aren't UTF-8. So a guest
//     may write U+10FFFF before a dot that is to reach us, before the two hex
//     digits of a byte, and twice for itself. The sandbox's libc does.
//   - It has no permissions, and no locks. See [HostModule].
package sandboxfs
