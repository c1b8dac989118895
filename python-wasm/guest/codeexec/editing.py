"""What a line editor asks about code that is being typed.

Nothing here executes the code.  Completion looks at the objects that the
session has; that can run code of theirs, as `dir` and `getattr` do.
"""

import ast
import builtins
import codeop
import inspect
import io
import keyword
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from typing import Any

__all__ = ["complete", "is_complete", "spans"]

_MAX_NAMES = 500  # What a completion offers at most.

_path = re.compile(r"(?<![\w.])(?!\d)[\w.]*$")
_import = re.compile(r"^\s*(?:import\s+(?:[\w.]+\s*,\s*)*|from\s+)([\w.]*)$")
_from_import = re.compile(r"^\s*from\s+([\w.]+)\s+import\s+\(?\s*(?:\w+\s*,\s*)*(\w*)$")
_call = re.compile(r"([^\W\d][\w.]*)\($")

_KINDS = {
    tokenize.NUMBER: "number",
    tokenize.COMMENT: "comment",
    tokenize.STRING: "string",
    tokenize.FSTRING_START: "string",
    tokenize.FSTRING_MIDDLE: "string",
    tokenize.FSTRING_END: "string",
}
_DEFINING = frozenset({"class", "def"})
_BUILTINS = frozenset(name for name in vars(builtins) if not name.startswith("_"))


def is_complete(text: str) -> bool:
    """Whether a whole input has been typed, which may be a wrong one.

    A block ends with an empty line, as at Python's own prompt.
    """
    compiler = codeop.Compile()
    compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        if codeop._maybe_compile(compiler, text, "<input>", "exec") is None:  # type: ignore[attr-defined]
            return False
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return True  # Running it says what is wrong.
    _, newline, last = text.rpartition("\n")
    return not newline or not last.strip() or not last[0].isspace()


def spans(text: str) -> list[tuple[int, int, str]]:
    """The parts of `text` that have a colour: start, end and kind.

    Kinds are keyword, builtin, definition, string, number and comment.  What
    can't be read any further, such as an unfinished string, has none.
    """
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    previous = ""
    for token in _tokens(text):
        kind = _KINDS.get(token.type)
        if token.type == tokenize.NAME:
            if keyword.iskeyword(token.string):
                kind = "keyword"
            elif previous in _DEFINING:
                kind = "definition"
            elif previous != "." and token.string in _BUILTINS:
                kind = "builtin"
        if kind is not None:
            start, end = (starts[line - 1] + column for line, column in (token.start, token.end))
            found.append((start, end, kind))
        previous = token.string
    return found


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        return  # Unfinished, or not Python.


def complete(text: str, namespace: dict[str, Any]) -> tuple[int, list[str]]:
    """What can follow `text`: the start of the last word, and words for its place.

    Offers attributes after a dot, keywords of a call after its parenthesis,
    modules in imports, and else the names that are defined.
    """
    line = text.rpartition("\n")[2]
    if match := _import.search(line):
        return len(text) - len(match[1]), _matching(match[1], _modules(match[1]))
    if match := _from_import.search(line):
        return len(text) - len(match[2]), _matching(match[2], _names_of_module(match[1]))
    path = _path.search(line)
    if path is None:
        return len(text), []  # A number.
    owner, dot, last = path[0].rpartition(".")
    start = len(text) - len(last)
    if dot:
        found = _look_up(owner, namespace)
        return start, [] if found is None else _matching(last, _attributes(found[0]))
    before = text[:start]
    offered = list(_parameters(before, namespace))
    if last or not offered:
        offered += [*namespace, *keyword.kwlist, *_BUILTINS]
    return start, _matching(last, offered)


def _matching(start: str, names: Iterable[str]) -> list[str]:
    """The names that begin so, sorted; private ones only where they are asked for."""
    matching = {
        name
        for name in names
        if name.startswith(start) and (start.startswith("_") or not name.startswith("_"))
    }
    return sorted(matching)[:_MAX_NAMES]


def _modules(start: str) -> Iterable[str]:
    package, dot, _ = start.rpartition(".")
    if not dot:
        return {*sys.stdlib_module_names, *(name for name in sys.modules if "." not in name)}
    prefix = package + "."
    return (name for name in sys.modules if name.startswith(prefix))


def _names_of_module(name: str) -> Iterable[str]:
    module = sys.modules.get(name)
    if module is None:
        return ()
    inner = (key.rpartition(".")[2] for key in sys.modules if key.rpartition(".")[0] == name)
    return {*dir(module), *inner}


def _look_up(path: str, namespace: dict[str, Any]) -> tuple[Any] | None:
    """The object that a dotted name stands for, if it can be had."""
    first, *rest = path.split(".")
    for names in (namespace, vars(builtins)):
        if first in names:
            found = names[first]
            break
    else:
        return None
    for name in rest:
        if isinstance(getattr(type(found), name, None), property):
            return None  # Its value may cost anything.
        try:
            found = getattr(found, name)
        except Exception:
            return None
    return (found,)


def _attributes(owner: Any) -> list[str]:
    try:
        return [name for name in dir(owner) if isinstance(name, str)]
    except Exception:
        return []  # A `__dir__` of the user's.


def _parameters(before: str, namespace: dict[str, Any]) -> Iterator[str]:
    """The keywords of the call whose parenthesis is the last one open."""
    depth = 0
    for index in range(len(before) - 1, -1, -1):
        depth += (before[index] in ")]}") - (before[index] in "([{")
        if depth < 0:
            break
    else:
        return
    callee = _call.search(before[: index + 1])
    found = _look_up(callee[1], namespace) if callee else None
    if found is None:
        return
    try:
        parameters = inspect.signature(found[0]).parameters.values()
    except Exception:
        return
    for parameter in parameters:
        if parameter.kind in (parameter.KEYWORD_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            yield parameter.name + "="
