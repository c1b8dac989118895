"""Freezes the standard library and the sandbox's own packages for linking.

    python freeze.py OUT STDLIB SYSCONFIGDATA PACKAGES...

Writes OUT/frozen.bin, the marshalled code of every module one behind the other,
and OUT/frozen.inc, the C initialisers that say where each lies. A module of a
later folder replaces one of the same name of an earlier one. It must run under
the same version of CPython as is linked: marshalled code has no stable format.
"""

import marshal
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

# What can't work in the sandbox, or isn't of use there.
LEFT_OUT = {
    "test", "idlelib", "tkinter", "turtle", "turtledemo", "ensurepip", "venv", "lib2to3",
    "curses", "__phello__", "__hello__", "pydoc_data", "antigravity", "site-packages",
    "_ios_support", "_android_support", "_apple_support", "_aix_support", "_osx_support",
    # Beside the sandbox's own packages, but not of them.
    "overlay", "tests", "mcp_tests",
}

# The core holds these itself, and needs them before any of ours can be found.
IN_THE_CORE = {"importlib._bootstrap", "importlib._bootstrap_external", "zipimport"}


def modules(root: Path) -> Iterator[tuple[str, Path, bool]]:
    """Yields name, file and whether it is a package, for all modules below root."""
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        if parts[0] in LEFT_OUT or not all(part.isidentifier() for part in parts):
            continue
        package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if package else parts)
        if name not in IN_THE_CORE:
            yield name, path, package


# Of the build-time variables, those that say what the interpreter is. The rest
# says how it was built, and differs from one build machine to the next.
SYSCONFIG = re.compile(
    r"ABIFLAGS|EXT_SUFFIX|SOABI|MULTIARCH|MACHDEP|VERSION|TZPATH|PLATLIBDIR|Py_\w+|WITH_\w+"
    r"|(HAVE|SIZEOF|ALIGNOF)_\w+|prefix|exec_prefix"
)


def sysconfig_source(path: Path) -> str:
    """The module of build-time variables, reduced to what is the same everywhere."""
    variables = runpy.run_path(str(path))["build_time_vars"]
    kept = {key: value for key, value in sorted(variables.items()) if SYSCONFIG.fullmatch(key)}
    return f"build_time_vars = {kept!r}\n"


# Functions of these modules use their __file__, which frozen modules don't have,
# only to find the frames of the standard library by the prefix of their file name.
NEED_A_FILE = {"_strptime", "zipfile"}
FROZEN_FILE = b'\n__file__ = "<frozen /"\n'


def main(out: Path, stdlib: Path, sysconfigdata: Path, *packages: Path) -> None:
    found: dict[str, tuple[bytes, bool]] = {}

    def freeze(name: str, source: bytes | str, package: bool) -> None:
        code = compile(source, f"<frozen {name}>", "exec", dont_inherit=True, optimize=0)
        found[name] = marshal.dumps(code), package

    freeze(sysconfigdata.stem, sysconfig_source(sysconfigdata), False)
    for root in (stdlib, *packages):
        for name, path, package in modules(root):
            freeze(name, path.read_bytes() + FROZEN_FILE * (name in NEED_A_FILE), package)

    offset = 0
    with (out / "frozen.bin").open("wb") as blob, (out / "frozen.inc").open("w") as table:
        for name, (code, package) in sorted(found.items()):
            blob.write(code)
            table.write(f'{{"{name}", {offset}, {len(code)}, {int(package)}}},\n')
            offset += len(code)
    print(f"{len(found)} modules, {offset} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
