"""The source of runs: compiling it, and keeping it for tracebacks and `inspect`.

The code of the run number N is known as ``<cell N>``.
"""

import ast
import inspect
import linecache
import re
from collections.abc import Callable
from inspect import CO_COROUTINE as _CO_COROUTINE
from types import CodeType
from typing import Any

__all__ = [
    "cell_name",
    "cell_number",
    "compile_cell",
    "forget",
    "install",
    "is_coroutine",
    "remember",
]

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_ONLY_AST = ast.PyCF_ONLY_AST
_Expr = ast.Expr
_Expression = ast.Expression

# From this many characters on, only the end of the source is turned into a
# syntax tree, which costs as much again as compiling it.
_LONG = 2000

# How much source is kept, in characters and in cells; older cells lose theirs.
_KEPT_SIZE = 4 << 20
_KEPT_CELLS = 1000

_cell_pattern = re.compile(r"<cell (\d+)>")
_lines_of = linecache.cache


class _Kept:
    """The cells whose source is kept."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}  # By name, oldest first.
        self.total = 0

    def add(self, filename: str, size: int) -> None:
        self.total += size - self.sizes.pop(filename, 0)
        self.sizes[filename] = size
        while len(self.sizes) > 1 and (self.total > _KEPT_SIZE or len(self.sizes) > _KEPT_CELLS):
            self.drop(next(iter(self.sizes)))

    def drop(self, filename: str) -> None:
        self.total -= self.sizes.pop(filename, 0)
        _lines_of.pop(filename, None)


_kept = _Kept()


def cell_name(number: int) -> str:
    """The file name under which a run's code is compiled."""
    return f"<cell {number}>"


def cell_number(filename: str) -> int | None:
    """The number of the run that a file name stands for; None if for no run."""
    match = _cell_pattern.fullmatch(filename)
    return int(match[1]) if match else None


def remember(source: str, filename: str) -> None:
    """Keeps the source of a cell where tracebacks and `inspect` look for it."""
    if "\r" in source:
        source = source.replace("\r\n", "\n").replace("\r", "\n")
    lines = [line + "\n" for line in source.split("\n")]
    # No modification time means that no file has to be looked at.
    _lines_of[filename] = (len(source), None, lines, filename)
    _kept.add(filename, len(source))


def forget(filename: str) -> None:
    """Forgets the source of a cell."""
    _kept.drop(filename)


def compile_cell(source: str, filename: str) -> list[CodeType]:
    """Compiles the code of a run.

    Its statements come first; if the last one is an expression, that is a code
    object of its own, whose value is the value of the run.  A code object may
    be a coroutine's (`await` at top level), see `is_coroutine`.
    """
    source = source.removeprefix("\ufeff")
    if len(source) >= _LONG:
        codes = _compile_long(source, filename)
        if codes is not None:
            return codes
    tree = compile(source, filename, "exec", _FLAGS | _ONLY_AST, True)
    if not (tree.body and isinstance(tree.body[-1], _Expr)):
        return [compile(tree, filename, "exec", _FLAGS, True)]
    last = tree.body.pop()
    codes = [compile(tree, filename, "exec", _FLAGS, True)] if tree.body else []
    codes.append(compile(_Expression(last.value), filename, "eval", _FLAGS, True))
    return codes


def is_coroutine(code: CodeType) -> bool:
    """Whether executing `code` gives a coroutine."""
    return code.co_flags & _CO_COROUTINE != 0


def _compile_long(source: str, filename: str) -> list[CodeType] | None:
    """Compiles a long source without a syntax tree for all of it.

    Returns None where that is not certain to be right.
    """
    start = _last_statement(source)
    if start is None:
        return None
    tail = source[start:]
    if '"""' in tail or "'''" in tail:
        return None  # The line may be the inside of a string.
    if "\\" in tail:
        return None  # Parsing it twice would give warnings of it twice.
    try:
        # The line numbers are those of the whole, hence the empty lines.
        padding = "\n" * source.count("\n", 0, start)
        tree = compile(padding + tail, filename, "exec", _FLAGS | _ONLY_AST, True)
        if not isinstance(tree.body[-1], _Expr):
            return [compile(source, filename, "exec", _FLAGS, True)]
        if len(tree.body) > 1:
            return None  # Statements before it on its line, after semicolons.
        return [
            compile(source[:start], filename, "exec", _FLAGS, True),
            compile(_Expression(tree.body[0].value), filename, "eval", _FLAGS, True),
        ]
    except SyntaxError:
        return None  # Compiling the whole gives the right message.


def _last_statement(source: str) -> int | None:
    """The offset of the last line that can begin a statement."""
    if "\r" in source or "\f" in source:
        return None
    end = len(source)
    while end > 0:
        start = source.rfind("\n", 0, end) + 1
        first = source[start : start + 1]
        if first not in " \t\n#)]}" and source[max(start - 2, 0) : start] != "\\\n":
            return start
        end = start - 1
    return None


def install() -> None:
    """Lets `inspect` find the source of classes that runs define.

    `inspect` looks for a class in its module's file; `__main__` has none.
    """
    inspect.getfile = _with_classes(inspect.getfile)


def _with_classes(getfile: Callable[[Any], str]) -> Callable[[Any], str]:
    def getfile_of(object: Any) -> str:
        if isinstance(object, type) and object.__module__ == "__main__":
            filename = _cell_of_class(object)
            if filename is not None:
                return filename
        return getfile(object)

    getfile_of.__name__ = getfile_of.__qualname__ = getfile.__name__
    getfile_of.__module__ = getfile.__module__
    getfile_of.__doc__ = getfile.__doc__
    return getfile_of


def _cell_of_class(cls: type) -> str | None:
    """The newest cell that defines such a class where this one was defined."""
    line = vars(cls).get("__firstlineno__")
    for filename in reversed(_kept.sizes):
        if line is not None and _defines(filename, cls.__qualname__, line):
            return filename
    return None


def _defines(filename: str, qualname: str, line: int) -> bool:
    """Whether a cell has the class `qualname`, from `line` on."""
    lines = _lines_of.get(filename, (0, None, [], filename))[2]
    if not (0 < line <= len(lines) and lines[line - 1].lstrip().startswith(("class", "@"))):
        return False
    try:
        tree = compile("".join(lines), filename, "exec", _FLAGS | _ONLY_AST, True)
    except SyntaxError:
        return False
    return (qualname, line) in _classes(tree, "")


def _classes(node: ast.AST, prefix: str) -> set[tuple[str, int]]:
    """The qualified names of the classes below `node`, with their first lines."""
    found: set[tuple[str, int]] = set()
    for child in ast.iter_child_nodes(node):
        inner = prefix
        if isinstance(child, ast.ClassDef):
            first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
            found.add((prefix + child.name, first))
            inner = f"{prefix}{child.name}."
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            inner = f"{prefix}{child.name}.<locals>."
        found |= _classes(child, inner)
    return found
