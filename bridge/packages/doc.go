// Package packages keeps pure-Python packages in a folder from which Python imports them: it unpacks
// wheels and source trees, lists and removes them. The folder has the form of a site-packages directory:
// beside its modules, each distribution has a directory NAME-VERSION.dist-info with METADATA, RECORD and
// INSTALLER, so importlib.metadata, and this package itself, know what belongs to what.
//
//	folder := packages.Open("/state/user_tools/packages", "/state/packages.lock")
//	wheel, err := packages.ReadWheel("attrs-25.3.0-py3-none-any.whl", "")
//	…
//	added, err := folder.Add(ctx, wheel)
//
// It knows neither WebAssembly nor MCP; its caller is cmd/codeexec.
//
// # What is checked of a wheel
//
// The format is that of PEP 427: https://packaging.python.org/specifications/binary-distribution-format/.
// The name of the file must have the tags of pure Python. Each file must have the hash, at least SHA-256,
// that RECORD gives it, and RECORD must have no others. Names that lead outside, links, two names that one
// file could have on a disk that ignores case, and machine code are refused, and more than [MaxFiles] files
// or [MaxBytes] bytes. Requires-Python must allow [Python]. Scripts, headers and data files for other places
// than site-packages are left out, for there are no such places.
//
// # Why untrusted code may write in the folder
//
// Scripts see it as /projects/packages, and may put modules there by themselves. So nothing in it is
// believed: every access goes through [os.Root], names in a RECORD that lead outside are passed over, and
// links are removed and not followed. What a script can reach by a forged RECORD is what it could remove
// anyway.
//
// # How a distribution is replaced
//
// All files are unpacked and checked in a directory aside, without the lock. Under the lock they are moved
// to their places, and what was there before is moved aside; if anything fails, all moves are undone. The
// modules of several distributions may share a directory, as those of namespace packages do, so files are
// moved and not directories.
//
// Many moves aren't one, so a journal of them is there until the last is done. Where the process is killed
// before that, the next [Folder.Add], [Folder.Remove] or [Folder.List] of any process undoes them. Until then
// scripts may find some modules of each version, or none.
//
// # Why all files are synced before the first is moved
//
// After a power failure a file that was renamed but not synced may be there and be empty, and the version that
// it replaced be gone. The journal is synced after the files, and the moves come after it: file systems keep
// the order of such changes. The moves themselves aren't waited for, for either version may be there after a
// failure. Files are synced side by side, which takes 0.3 ms each on a disk where one alone takes 2 ms.
package packages
