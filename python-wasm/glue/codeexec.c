/* The entry points of the sandbox, and the built-in module `_codeexec`.
 *
 * The module built from this file is a WASI reactor: the host calls the
 * exports below instead of a main(). The life of an instance is
 *
 *     _initialize, codeexec_prepare        once, when the snapshot is made
 *     codeexec_after_fork                  once in each fork of the snapshot
 *     codeexec_alloc, codeexec_run         for each run
 *
 * The imports are those of Go package hostfuncs, which documents the protocol.
 */

#define Py_BUILD_CORE 1
#include "Python.h"
#include "pycore_ceval.h"
#include "pycore_gc.h"
#include "pycore_interp.h"
#include "pycore_pystate.h"
#include "pycore_runtime.h"
#include "pycore_signal.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "files.h"

#define IMPORT(name) __attribute__((import_module("codeexec"), import_name(#name)))
#define EXPORT(name) __attribute__((export_name(#name)))

IMPORT(submit) int32_t host_submit(const void *frame, int32_t len);
IMPORT(wait) int32_t host_wait(int32_t id, int64_t timeout_ns);
IMPORT(size) int32_t host_size(int32_t id);
IMPORT(read) int32_t host_read(int32_t id, void *buf, int32_t len);
IMPORT(cancel) int32_t host_cancel(int32_t id);
IMPORT(write) int32_t host_write(int32_t kind, const void *chunk, int32_t len);

/* close of the standard streams and of "/", the one preopened directory, does
 * nothing: the host can't open them again, and later runs need them. */
enum { LAST_PERMANENT_FD = 3 };
int __real_close(int fd);
int
__wrap_close(int fd)
{
    return fd >= 0 && fd <= LAST_PERMANENT_FD ? 0 : __real_close(fd);
}

/* The negative results of the imports. */
enum {
    TOO_BIG = -1,
    FAULT = -2,
    INVALID = -3,
    LIMIT = -4,
    NO_RUN = -5,
    IDLE = -6,
    INTERRUPTED = -7,
};

/* raise_code sets the exception that stands for a negative result. */
static PyObject *
raise_code(const char *call, int32_t code)
{
    switch (code) {
    case TOO_BIG:
        PyErr_Format(PyExc_OverflowError, "%s: larger than the host accepts", call);
        break;
    case LIMIT:
        PyErr_Format(PyExc_RuntimeError, "%s: too many host calls in flight", call);
        break;
    case NO_RUN:
        PyErr_Format(PyExc_RuntimeError, "%s: no run is going on", call);
        break;
    case INTERRUPTED:
        if (PyErr_CheckSignals() == 0)
            PyErr_Format(PyExc_RuntimeError, "%s: the run is over", call);
        break;
    case INVALID:
        PyErr_Format(PyExc_ValueError, "%s: the host does not know this call, or its frame is malformed", call);
        break;
    default:
        PyErr_Format(PyExc_SystemError, "%s: host error %d", call, (int)code);
    }
    return NULL;
}

static PyObject *
codeexec_py_submit(PyObject *Py_UNUSED(module), PyObject *arg)
{
    Py_buffer frame;
    if (PyObject_GetBuffer(arg, &frame, PyBUF_SIMPLE) < 0)
        return NULL;
    int32_t id = host_submit(frame.buf, (int32_t)frame.len);
    PyBuffer_Release(&frame);
    return id > 0 ? PyLong_FromLong(id) : raise_code("submit", id);
}

/* nanoseconds converts a timeout: None is -1, for ever. Anything longer than
 * the clock can count is for ever too. Returns 0 with an exception set, or 1. */
static int
nanoseconds(PyObject *timeout, int64_t *ns)
{
    *ns = -1;
    if (timeout == Py_None)
        return 1;
    double seconds = PyFloat_AsDouble(timeout);
    if (seconds == -1.0 && PyErr_Occurred())
        return 0;
    if (!(seconds > 0))
        *ns = 0;
    else if (seconds < 9.2e9)
        *ns = (int64_t)(seconds * 1e9) + 1;
    return 1;
}

static PyObject *
codeexec_py_wait(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "wait() takes an id and a timeout");
        return NULL;
    }
    long id = PyLong_AsLong(args[0]);
    if (id == -1 && PyErr_Occurred())
        return NULL;
    int64_t ns;
    if (!nanoseconds(args[1], &ns))
        return NULL;
    int32_t done = host_wait((int32_t)id, ns);
    if (done == INTERRUPTED) {
        if (PyErr_CheckSignals() < 0)
            return NULL;
        done = 0;
    }
    return done >= 0 || done == IDLE ? PyLong_FromLong(done) : raise_code("wait", done);
}

static PyObject *
codeexec_py_read(PyObject *Py_UNUSED(module), PyObject *arg)
{
    long id = PyLong_AsLong(arg);
    if (id == -1 && PyErr_Occurred())
        return NULL;
    int32_t size = host_size((int32_t)id);
    if (size < 0)
        return raise_code("read", size);
    PyObject *frame = PyBytes_FromStringAndSize(NULL, size);
    if (frame == NULL)
        return NULL;
    int32_t n = host_read((int32_t)id, PyBytes_AS_STRING(frame), size);
    if (n != size) {
        Py_DECREF(frame);
        return raise_code("read", n < 0 ? n : INVALID);
    }
    return frame;
}

static PyObject *
codeexec_py_cancel(PyObject *Py_UNUSED(module), PyObject *arg)
{
    long id = PyLong_AsLong(arg);
    if (id == -1 && PyErr_Occurred())
        return NULL;
    host_cancel((int32_t)id); /* a call that is already gone is cancelled enough */
    Py_RETURN_NONE;
}

static PyObject *
codeexec_py_write(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t nargs)
{
    if (nargs != 2) {
        PyErr_SetString(PyExc_TypeError, "write() takes a kind and a chunk");
        return NULL;
    }
    long kind = PyLong_AsLong(args[0]);
    if (kind == -1 && PyErr_Occurred())
        return NULL;
    Py_buffer chunk;
    if (PyObject_GetBuffer(args[1], &chunk, PyBUF_SIMPLE) < 0)
        return NULL;
    int32_t code = host_write((int32_t)kind, chunk.buf, (int32_t)chunk.len);
    PyBuffer_Release(&chunk);
    if (code < 0)
        return raise_code("write", code);
    Py_RETURN_NONE;
}

static PyObject *
codeexec_py_exit(PyObject *Py_UNUSED(module), PyObject *arg)
{
    long code = PyLong_AsLong(arg);
    if (code == -1 && PyErr_Occurred())
        return NULL;
    _Exit((int)(code & 0xff));
}

static PyMethodDef codeexec_methods[] = {
    {"submit", codeexec_py_submit, METH_O,
     "submit(frame) -> int\n\nHands a request frame to the host; returns the id of the call."},
    {"wait", _PyCFunction_CAST(codeexec_py_wait), METH_FASTCALL,
     "wait(id, timeout) -> int\n\nWaits for call id, or with 0 for any, at most timeout seconds (None: for ever).\n"
     "Returns the id of a finished call, 0 at the timeout or after an interrupt,\n"
     "-6 where nothing is in flight that could end the wait."},
    {"read", codeexec_py_read, METH_O, "read(id) -> bytes\n\nTakes the response frame of a finished call."},
    {"cancel", codeexec_py_cancel, METH_O, "cancel(id)\n\nCancels a call and drops its result."},
    {"write", _PyCFunction_CAST(codeexec_py_write), METH_FASTCALL,
     "write(kind, chunk)\n\nHands a chunk of output to the host: kind 1 is the run's result, 2 something to show."},
    {"exit", codeexec_py_exit, METH_O, "exit(code)\n\nEnds this instance of the interpreter, and with it the session."},
    {"chmod", _PyCFunction_CAST(files_chmod), METH_VARARGS | METH_KEYWORDS,
     "chmod(path, mode, *, dir_fd=None, follow_symlinks=True)\n\nos.chmod, for the files of the sandbox."},
    {"umask", files_umask, METH_O, "umask(mask)\n\nSets the current numeric umask and returns the previous umask."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot codeexec_slots[] = {
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
    {0, NULL},
};

static struct PyModuleDef codeexec_module = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "_codeexec",
    .m_doc = "The host's functions, as codeexec.host uses them.",
    .m_methods = codeexec_methods,
    .m_slots = codeexec_slots,
};

static PyObject *
init_codeexec(void)
{
    return PyModuleDef_Init(&codeexec_module);
}

/* The standard library and the packages of the sandbox, made by freeze.py:
 * one run of marshalled code, and where each module lies in it. */
static const unsigned char frozen_code[] = {
#embed "frozen.bin"
};
struct frozen_entry {
    const char *name;
    uint32_t offset;
    int32_t size;
    int is_package;
};
static const struct frozen_entry frozen_entries[] = {
#include "frozen.inc"
};
enum { FROZEN = sizeof frozen_entries / sizeof *frozen_entries };
static struct _frozen frozen_modules[FROZEN + 1];

static void
fatal(PyStatus status)
{
    fprintf(stderr, "codeexec: %s: %s\n", status.func ? status.func : "initialisation",
            status.err_msg ? status.err_msg : "failed");
    abort();
}

static void
start_interpreter(void)
{
    for (int i = 0; i < FROZEN; i++) {
        frozen_modules[i] = (struct _frozen){
            .name = frozen_entries[i].name,
            .code = frozen_code + frozen_entries[i].offset,
            .size = frozen_entries[i].size,
            .is_package = frozen_entries[i].is_package,
        };
    }
    PyImport_FrozenModules = frozen_modules;
    if (PyImport_AppendInittab("_codeexec", init_codeexec) < 0)
        abort();

    PyPreConfig preconfig;
    PyPreConfig_InitIsolatedConfig(&preconfig);
    preconfig.utf8_mode = 1;
    PyStatus status = Py_PreInitialize(&preconfig);
    if (PyStatus_Exception(status))
        fatal(status);

    PyConfig config;
    PyConfig_InitIsolatedConfig(&config);
    config.install_signal_handlers = 1; /* the time limit is a SIGINT */
    config.site_import = 0;
    config.write_bytecode = 0;
    config.module_search_paths_set = 1;
    config.buffered_stdio = 1;
    wchar_t *argv[] = {L""};
    PyConfig_SetArgv(&config, 1, argv);
    PyConfig_SetString(&config, &config.program_name, L"python3");
    PyConfig_SetString(&config, &config.executable, L"");
    PyConfig_SetString(&config, &config.prefix, L"/usr");
    PyConfig_SetString(&config, &config.exec_prefix, L"/usr");
    PyConfig_SetString(&config, &config.base_prefix, L"/usr");
    PyConfig_SetString(&config, &config.base_exec_prefix, L"/usr");
    PyConfig_SetString(&config, &config.stdio_encoding, L"utf-8");
    PyConfig_SetString(&config, &config.stdio_errors, L"backslashreplace");
    status = Py_InitializeFromConfig(&config);
    if (PyStatus_Exception(status))
        fatal(status);
    PyConfig_Clear(&config);
}

/* The function that codeexec_run calls, kept so that no script can replace it. */
static PyObject *run_main;

/* call_run calls codeexec.run.<name>() and reports what it raises: that is a
 * fault of ours, never of a script. */
static int32_t
call_run(const char *name)
{
    PyObject *module = PyImport_ImportModule("codeexec.run");
    PyObject *result = module ? PyObject_CallMethod(module, name, NULL) : NULL;
    Py_XDECREF(module);
    if (result == NULL) {
        PyErr_Print();
        return -1;
    }
    Py_DECREF(result);
    return 0;
}

/* immortalize makes an object's reference count stand still, and those of what
 * it refers to. Tracked objects are only marked: settle_objects visits each. */
static int
immortalize(PyObject *op, void *Py_UNUSED(arg))
{
    if (op == NULL || _Py_IsImmortal(op))
        return 0;
    op->ob_refcnt = _Py_IMMORTAL_REFCNT;
    if (PyCode_Check(op)) { /* which the collector doesn't know */
        PyCodeObject *code = (PyCodeObject *)op;
        PyObject *parts[] = {
            code->co_consts, code->co_names, code->co_exceptiontable, code->co_localsplusnames,
            code->co_localspluskinds, code->co_filename, code->co_name, code->co_qualname, code->co_linetable,
        };
        for (size_t i = 0; i < Py_ARRAY_LENGTH(parts); i++)
            immortalize(parts[i], NULL);
    }
    else if (Py_TYPE(op)->tp_traverse != NULL && !(PyObject_IS_GC(op) && PyObject_GC_IsTracked(op))) {
        return Py_TYPE(op)->tp_traverse(op, immortalize, NULL);
    }
    return 0;
}

/* settle_objects makes the snapshot's objects permanent, so that a fork that
 * only uses them doesn't write to their pages: frozen, since a collection writes
 * to what it looks at, and immortal, since each use writes to a reference count.
 * None of them is ever freed, which is what a fork of the snapshot wants. */
static int32_t
settle_objects(void)
{
    PyGC_Collect();
    PyObject *gc = PyImport_ImportModule("gc");
    PyObject *frozen = gc ? PyObject_CallMethod(gc, "freeze", NULL) : NULL;
    Py_XDECREF(gc);
    if (frozen == NULL) {
        PyErr_Print();
        return -1;
    }
    Py_DECREF(frozen);
    PyGC_Head *head = &PyInterpreterState_Get()->gc.permanent_generation.head;
    for (PyGC_Head *each = _PyGCHead_NEXT(head); each != head; each = _PyGCHead_NEXT(each)) {
        PyObject *op = _Py_FROM_GC(each);
        immortalize(op, NULL);
        Py_TYPE(op)->tp_traverse(op, immortalize, NULL);
    }
    return 0;
}

/* codeexec_prepare starts the interpreter and warms it. Nonzero: it failed,
 * and stderr says why. */
EXPORT(codeexec_prepare)
int32_t
codeexec_prepare(void)
{
    if (chdir("/workspace") != 0) {
        perror("codeexec: /workspace");
        return -1;
    }
    start_interpreter();
    if (files_prepare() != 0) {
        fprintf(stderr, "codeexec: SQLite has no file system\n");
        return -1;
    }
    if (call_run("prepare") < 0)
        return -1;
    PyObject *module = PyImport_ImportModule("codeexec.run");
    run_main = module ? PyObject_GetAttrString(module, "main") : NULL;
    Py_XDECREF(module);
    if (run_main == NULL) {
        PyErr_Print();
        return -1;
    }
    return settle_objects();
}

/* codeexec_after_fork makes a fork differ from its snapshot: randomness. */
EXPORT(codeexec_after_fork)
int32_t
codeexec_after_fork(void)
{
    return call_run("after_fork");
}

/* codeexec_alloc gives the host room for a request: len bytes that the next
 * codeexec_run frees. 0 where memory is exhausted. */
EXPORT(codeexec_alloc)
void *
codeexec_alloc(int32_t len)
{
    return len < 0 ? NULL : malloc(len > 0 ? (size_t)len : 1);
}

/* codeexec_run runs one request frame and frees it. 0: codeexec.run.main
 * returned, having written its result; -1: an interrupt hit it outside the
 * user's code; -2: it could not even be called, for want of memory. */
EXPORT(codeexec_run)
int32_t
codeexec_run(void *frame, int32_t len)
{
    PyObject *request = PyBytes_FromStringAndSize(frame, len);
    free(frame);
    if (request == NULL) {
        PyErr_Clear();
        return -2;
    }
    PyObject *result = PyObject_CallOneArg(run_main, request);
    Py_DECREF(request);
    if (result == NULL) {
        int32_t code = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) ? -1 : -2;
        if (code == -2)
            PyErr_Print();
        PyErr_Clear();
        return code;
    }
    Py_DECREF(result);
    return 0;
}

/* codeexec_words gives the addresses that the host writes to interrupt a run
 * (DESIGN: the words are written in this order, from another thread), and the
 * bit to set in the last of them. */
EXPORT(codeexec_words)
const uint32_t *
codeexec_words(void)
{
    static uint32_t words[4];
    words[0] = (uint32_t)(uintptr_t)&_PyRuntime.signals.handlers[SIGINT].tripped;
    words[1] = (uint32_t)(uintptr_t)&_PyRuntime.signals.is_tripped;
    words[2] = (uint32_t)(uintptr_t)&PyThreadState_Get()->eval_breaker;
    words[3] = _PY_SIGNALS_PENDING_BIT;
    return words;
}
