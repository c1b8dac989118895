/* What files.c has for codeexec.c. */

#include "Python.h"

/* files_prepare is to be called once, before any database is opened. Nonzero: it failed. */
int files_prepare(void);

/* os.chmod and os.umask, as methods of the module `_codeexec`. */
PyObject *files_chmod(PyObject *module, PyObject *args, PyObject *kwargs);
PyObject *files_umask(PyObject *module, PyObject *mask);
