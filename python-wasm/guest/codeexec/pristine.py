"""What user code may have broken, and every run finds whole again.

Only what this package and the standard library cannot do without.  Whatever
else a run changes is the session's own.
"""

import builtins
import sys
from types import ModuleType
from typing import Any

__all__ = ["remember", "restore_builtins", "restore_modules"]

_MIN_RECURSION_LIMIT = 1000

# Without these, nothing of the standard library can be counted on.
_VITAL = frozenset({"asyncio", "builtins", "codeexec", "codeexec.run", "io", "os", "sys"})

_builtins = vars(builtins)
_modules = sys.modules
_importers = sys.path_importer_cache
_update_builtins = _builtins.update
_gettrace, _settrace = sys.gettrace, sys.settrace
_getprofile, _setprofile = sys.getprofile, sys.setprofile
_getrecursionlimit, _setrecursionlimit = sys.getrecursionlimit, sys.setrecursionlimit

_saved_builtins: dict[str, Any] = {}
_saved_modules: dict[str, ModuleType] = {}


def remember() -> None:
    """Notes what the builtins and the modules are."""
    _saved_builtins.update(_builtins)
    _saved_modules.update(_modules)


def restore_builtins() -> None:
    """Makes Python code work again: builtins, recursion, and no tracing of ours.

    Is called as soon as user code has ended, so it uses no builtin itself.
    """
    _update_builtins(_saved_builtins)
    if _gettrace() is not None:
        _settrace(None)
    if _getprofile() is not None:
        _setprofile(None)
    if _getrecursionlimit() < _MIN_RECURSION_LIMIT:
        _setrecursionlimit(_MIN_RECURSION_LIMIT)


def restore_modules(main: ModuleType) -> None:
    """Puts the session's `__main__` in place, and vital modules that are gone.

    Folders on `sys.path` that did not exist are looked for anew.
    """
    if not (_VITAL <= _modules.keys()):
        for name, module in _saved_modules.items():
            _modules.setdefault(name, module)
    _modules["__main__"] = main
    main.__dict__.update(__name__="__main__", __builtins__=builtins)
    for folder in [folder for folder, importer in _importers.items() if importer is None]:
        del _importers[folder]
