/* What POSIX has for files and wasi-libc lacks: permissions, the umask, record
 * locks, paths with dots or any bytes in them, and no terminal.
 *
 * The linker puts the __wrap_ functions in the place of libc's (-Wl,--wrap, see
 * build.sh), for CPython and SQLite alike. The imports are those of Go package
 * sandboxfs, which documents them.
 */

#include "Python.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wasi/libc-find-relpath.h>

#include "files.h"

#define IMPORT(name) __attribute__((import_module("codeexec_files"), import_name(#name)))

IMPORT(create_mode) void host_create_mode(int32_t mode);
IMPORT(chmod) int32_t host_chmod(const void *path, int32_t len, int32_t mode);
IMPORT(lock) int32_t host_lock(int64_t dev, int64_t ino, int32_t kind, int64_t start, int64_t len);
IMPORT(locked) int32_t host_locked(int64_t dev, int64_t ino, int64_t start, int64_t len);

/* fail sets errno to a number of the host's, which are libc's own. */
static int
fail(int code)
{
    errno = code;
    return -1;
}

/* --- Permissions ----------------------------------------------------------- */

static mode_t mask = 022;

/* unpack completes the result of a stat. The host puts permissions above the 32
 * bits of a device number. Taking them from there twice, as where one libc
 * function calls another, does no harm. */
static int
unpack(int result, struct stat *st)
{
    if (result == 0) {
        st->st_blksize = 8192; /* Python takes it for the size of a buffer, and this by default */
        st->st_blocks = (st->st_size + 511) / 512;
        st->st_mode |= (st->st_dev >> 32) & 07777;
        st->st_dev &= UINT32_MAX;
    }
    return result;
}

int __real_stat(const char *path, struct stat *st);
int
__wrap_stat(const char *path, struct stat *st)
{
    return unpack(__real_stat(path, st), st);
}

int __real_lstat(const char *path, struct stat *st);
int
__wrap_lstat(const char *path, struct stat *st)
{
    return unpack(__real_lstat(path, st), st);
}

int __real_fstat(int fd, struct stat *st);
int
__wrap_fstat(int fd, struct stat *st)
{
    return unpack(__real_fstat(fd, st), st);
}

int __real_fstatat(int dir, const char *path, struct stat *st, int flags);
int
__wrap_fstatat(int dir, const char *path, struct stat *st, int flags)
{
    return unpack(__real_fstatat(dir, path, st, flags), st);
}

/* with_access makes an open without an access mode one to read: O_RDONLY is 0
 * elsewhere, and in libc's headers for WASI it is not. */
static int
with_access(int flags)
{
    return flags & O_ACCMODE ? flags : flags | O_RDONLY;
}

/* CREATE_MODE tells the host the mode argument of an open that may create. */
#define CREATE_MODE(flags)                                      \
    do {                                                        \
        if ((flags) & O_CREAT) {                                \
            va_list args;                                       \
            va_start(args, flags);                              \
            host_create_mode(va_arg(args, mode_t) & ~mask);     \
            va_end(args);                                       \
        }                                                       \
    } while (0)

int __real_open(const char *path, int flags, ...);
int
__wrap_open(const char *path, int flags, ...)
{
    CREATE_MODE(flags);
    return __real_open(path, with_access(flags));
}

int __real_openat(int dir, const char *path, int flags, ...);
int
__wrap_openat(int dir, const char *path, int flags, ...)
{
    CREATE_MODE(flags);
    return __real_openat(dir, path, with_access(flags));
}

int __real_mkdir(const char *path, mode_t mode);
int
__wrap_mkdir(const char *path, mode_t mode)
{
    host_create_mode(mode & ~mask);
    return __real_mkdir(path, mode);
}

int __real_mkdirat(int dir, const char *path, mode_t mode);
int
__wrap_mkdirat(int dir, const char *path, mode_t mode)
{
    host_create_mode(mode & ~mask);
    return __real_mkdirat(dir, path, mode);
}

/* executable corrects libc's answer, which doesn't look at permissions: not even
 * root may execute what nobody may. */
static int
executable(int result, const struct stat *st)
{
    if (result == 0 && S_ISREG(st->st_mode) && !(st->st_mode & 0111))
        return fail(EACCES);
    return result;
}

int __real_access(const char *path, int how);
int
__wrap_access(const char *path, int how)
{
    struct stat st;
    int result = __real_access(path, how);
    return result == 0 && how & X_OK ? executable(__wrap_stat(path, &st), &st) : result;
}

int __real_faccessat(int dir, const char *path, int how, int flags);
int
__wrap_faccessat(int dir, const char *path, int how, int flags)
{
    struct stat st;
    int result = __real_faccessat(dir, path, how, flags);
    return result == 0 && how & X_OK ? executable(__wrap_fstatat(dir, path, &st, 0), &st) : result;
}

int __real___wasilibc_find_relpath_alloc(const char *path, const char **prefix, char **relative, size_t *len, int can_realloc);
int __wrap___wasilibc_find_relpath_alloc(const char *path, const char **prefix, char **relative, size_t *len, int can_realloc);

/* set_mode is chmod. */
static int
set_mode(const char *path, mode_t mode)
{
    static char *relative; /* libc keeps its own such buffer */
    static size_t len;
    const char *prefix;
    if (__wrap___wasilibc_find_relpath_alloc(path, &prefix, &relative, &len, 1) < 0)
        return -1;
    int32_t code = host_chmod(relative, (int32_t)strlen(relative), (int32_t)mode);
    return code == 0 ? 0 : fail(code);
}

PyObject *
files_chmod(PyObject *Py_UNUSED(module), PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path", "mode", "dir_fd", "follow_symlinks", NULL};
    PyObject *given, *path, *dir_fd = Py_None;
    int mode, follow = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Oi|$Op:chmod", names, &given, &mode, &dir_fd, &follow))
        return NULL;
    if (dir_fd != Py_None || !follow) {
        PyErr_Format(PyExc_NotImplementedError, "chmod: %s unavailable on this platform",
                     follow ? "dir_fd" : "follow_symlinks");
        return NULL;
    }
    if (PySys_Audit("os.chmod", "Oii", given, mode, -1) < 0 || !PyUnicode_FSConverter(given, &path))
        return NULL;
    int result = set_mode(PyBytes_AS_STRING(path), (mode_t)mode & 07777);
    Py_DECREF(path);
    return result < 0 ? PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, given) : Py_NewRef(Py_None);
}

PyObject *
files_umask(PyObject *Py_UNUSED(module), PyObject *arg)
{
    int wanted = PyLong_AsInt(arg);
    if (wanted == -1 && PyErr_Occurred())
        return NULL;
    mode_t before = mask;
    mask = (mode_t)wanted & 0777;
    return PyLong_FromLong((long)before);
}

/* --- Locks ----------------------------------------------------------------- */

/* The commands as SQLite defines them for WASI: libc has none of them. */
enum { GET_LOCK = 12, SET_LOCK = 13, SET_LOCK_WAIT = 14 };
enum { READ_LOCK = 0, WRITE_LOCK = 1, UNLOCK = 2 };

/* record_lock is fcntl(F_GETLK) and fcntl(F_SETLK). Waiting for a lock is not
 * waited: nobody in this process could give it up. */
static int
record_lock(int fd, int command, struct flock *lock)
{
    struct stat st;
    if (lock->l_whence != SEEK_SET)
        return fail(EINVAL);
    if (__wrap_fstat(fd, &st) < 0)
        return -1;
    if (command == GET_LOCK) {
        int32_t held = host_locked((int64_t)st.st_dev, (int64_t)st.st_ino, lock->l_start, lock->l_len);
        lock->l_type = held ? WRITE_LOCK : UNLOCK;
        return 0;
    }
    int32_t code = host_lock((int64_t)st.st_dev, (int64_t)st.st_ino, lock->l_type, lock->l_start, lock->l_len);
    return code == 0 ? 0 : fail(code);
}

int __real_fcntl(int fd, int command, ...);
int
__wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    va_start(args, command);
    int result;
    if (command >= GET_LOCK && command <= SET_LOCK_WAIT)
        result = record_lock(fd, command, va_arg(args, struct flock *));
    else if (command == F_SETFD || command == F_SETFL)
        result = __real_fcntl(fd, command, va_arg(args, int));
    else
        result = __real_fcntl(fd, command);
    va_end(args);
    return result;
}

int sqlite3_vfs_register(void *vfs, int make_default);
void *sqlite3_vfs_find(const char *name);

/* files_prepare makes SQLite use those locks. By itself it takes lock files on
 * WASI, which let one connection in at a time, and stay when a session ends. */
int
files_prepare(void)
{
    return sqlite3_vfs_register(sqlite3_vfs_find("unix"), 1);
}

/* --- Paths ----------------------------------------------------------------- */

/* wazero resolves dots textually and refuses what isn't UTF-8. So they go to the
 * host behind an escape, as package sandboxfs describes it. */
#define ESCAPE "\xF4\x8F\xBF\xBF"
enum { ESCAPE_LEN = sizeof ESCAPE - 1 };

/* utf8_len returns the length of the character at p, or 0 if it isn't one. */
static size_t
utf8_len(const unsigned char *p)
{
    if (p[0] < 0x80)
        return 1;
    size_t len = p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] >= 0xA0) || /* overlong, a surrogate */
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] >= 0x90))   /* overlong, too large */
        return 0;
    return len;
}

/* dots tells whether an element of a path, which begins at p, is "." or "..". */
static int
dots(const unsigned char *p)
{
    size_t len = p[0] != '.' ? 0 : p[1] != '.' ? 1 : 2;
    return len > 0 && (p[len] == '/' || p[len] == '\0');
}

/* escaped writes the escaped form of a path to out, unless that is NULL, and
 * returns its length. */
static size_t
escaped(const unsigned char *path, char *out)
{
    static const char hex[] = "0123456789abcdef";
    size_t n = 0;
    for (const unsigned char *p = path; *p;) {
        char piece[ESCAPE_LEN + 4] = ESCAPE;
        size_t used = utf8_len(p), len = ESCAPE_LEN;
        if (used == 0) {
            piece[len++] = hex[*p >> 4];
            piece[len++] = hex[*p & 15];
            used = 1;
        }
        else if (dots(p) && (p == path || p[-1] == '/')) {
            piece[len++] = '.';
        }
        else {
            if (memcmp(p, ESCAPE, used) != 0 || used != ESCAPE_LEN)
                len = 0;
            memcpy(piece + len, p, used);
            len += used;
        }
        if (out)
            memcpy(out + n, piece, len);
        n += len;
        p += used;
    }
    if (out)
        out[n] = '\0';
    return n;
}

/* All functions of libc that take a path, but chdir, come through here, with a buffer that
 * they own. To libc, the empty path is the working directory. */
int
__wrap___wasilibc_find_relpath_alloc(const char *path, const char **prefix, char **relative, size_t *len, int can_realloc)
{
    if (*path == '\0')
        return fail(ENOENT);
    int fd = __real___wasilibc_find_relpath_alloc(path, prefix, relative, len, can_realloc);
    if (fd < 0 || strcmp(*relative, ".") == 0)
        return fd;
    size_t needed = escaped((const unsigned char *)*relative, NULL) + 1;
    if (needed == strlen(*relative) + 1)
        return fd;
    char *plain = strdup(*relative);
    if (plain != NULL && needed > *len) {
        char *bigger = can_realloc ? realloc(*relative, needed) : NULL;
        if (bigger == NULL) {
            free(plain);
            plain = NULL;
        }
        else {
            *relative = bigger;
            *len = needed;
        }
    }
    if (plain == NULL)
        return fail(can_realloc ? ENOMEM : ERANGE);
    escaped((const unsigned char *)plain, *relative);
    free(plain);
    return fd;
}

/* The working directory of libc, as a path without links, as on Linux. libc's own
 * chdir would keep the escapes in it. */
extern char *__wasilibc_cwd;
int
__wrap_chdir(const char *path)
{
    static char *ours;
    struct stat st;
    if (__wrap_stat(path, &st) < 0)
        return -1;
    if (!S_ISDIR(st.st_mode))
        return fail(ENOTDIR);
    char *full = realpath(path, NULL);
    if (full == NULL && errno == ENOSYS && *path == '/')
        full = strdup(path); /* where the snapshot is made, there are no links */
    if (full == NULL)
        return -1;
    free(ours);
    __wasilibc_cwd = ours = full;
    return 0;
}

/* To libc, every character device that can't seek is a terminal. */
int
__wrap_isatty(int fd)
{
    struct stat st;
    if (__wrap_fstat(fd, &st) == 0)
        errno = ENOTTY;
    return 0;
}
