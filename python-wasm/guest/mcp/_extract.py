"""The source of a function of the session, with all that it needs to work by itself.

Needed are the module-level imports, constants, functions and classes whose
names it loads, and what these need in turn. Names are found by the compiler's
own analysis (`symtable`), so decorators, default values, annotations, nested
functions, comprehensions and classes count as they do for Python.

# Why values are defined by their source, and never by what they are now

What a variable holds is in general not to be written as Python, and where it
came from a tool it would be out of date when the function is called. So a
constant is saved as the expression that it was assigned, if that is the same
wherever it is evaluated: literals, operators, other constants, and calls such
as ``re.compile(...)``. Anything else is refused, and so is a constant that has
been changed since: the function would silently compute something else. But what
the function or one that it needs assigns itself, after ``global``, is a state of
theirs, which begins anew in each session.
"""

__all__ = ["Unsavable", "cells", "extract"]

import ast
import builtins
from collections.abc import Iterator, Mapping
import inspect
import linecache
import re
import symtable
import sys
from textwrap import indent
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, NamedTuple

from mcp._names import listing

_FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
_ABSENT = object()
_CELL = re.compile(r"<cell (\d+)>")

_Def = (ast.FunctionDef, ast.AsyncFunctionDef)
_Compound = (ast.If, ast.Try)
_BUILTINS = (BuiltinFunctionType, MethodWrapperType, WrapperDescriptorType)

_COMPREHENSIONS = frozenset({"dictcomp", "genexpr", "listcomp", "setcomp"})

# Names that every module has.
_OF_MODULES = frozenset({"__builtins__", "__doc__", "__file__", "__name__"})

# What gives the same value whenever it is called with the same arguments: whole
# modules of the standard library, single functions, and what of these does not.
_PURE_MODULES = frozenset(
    "_collections _datetime _decimal _operator _struct _zoneinfo collections datetime decimal "
    "fractions ipaddress itertools math operator pathlib pathlib._local re string struct textwrap "
    "types typing zoneinfo".split()
)
_PURE = frozenset(
    "builtins." + name
    for name in "abs all any bin bool bytearray bytes chr complex dict dict.fromkeys divmod "
    "enumerate filter float frozenset hex int int.from_bytes len list map max min object oct ord "
    "pow range repr reversed round set slice sorted str str.maketrans sum tuple type zip".split()
) | {"functools.partial", "logging.getLogger", "uuid.UUID", "enum.auto"}
_IMPURE = frozenset({"cwd", "home", "now", "today", "utcnow"})
_FIXED = (str, bytes, int, float, complex, tuple, frozenset)

_ADVICE = "pass it as a parameter, or compute it in the function"

_COMPARED = (*_FIXED, list, dict, set, bytearray, type(None))


class Unsavable(Exception):
    """Why a function can't be saved."""


class _Statement(NamedTuple):
    """A statement at module level of a cell."""

    cell: int
    node: ast.stmt
    text: str

    @property
    def place(self) -> tuple[int, int, int]:
        return self.cell, self.node.lineno, self.node.col_offset

    @property
    def names(self) -> set[str]:
        return set(_bound(self.node))


class _Names(NamedTuple):
    """The module-level names that a statement uses."""

    early: set[str]  # when it is executed
    late: set[str]  # when the functions in it are called
    written: set[str]  # assigned by functions in it, after ``global``


def cells(after: int = 0) -> list[tuple[int, str]]:
    """Return number and source of the session's cells with greater numbers, oldest first."""
    found = []
    for filename, entry in linecache.cache.copy().items():
        match = _CELL.fullmatch(filename)
        if match and int(match[1]) > after and len(entry) == 4:
            found.append((int(match[1]), "".join(entry[2])))
    return sorted(found)


def extract(
    func: Any, namespace: Mapping[str, Any], predefined: Mapping[str, Any]
) -> tuple[str, str]:
    """Return the name of `func` and the source of a module that defines it; else Unsavable.

    `namespace` are the session's globals, `predefined` those of them that a new
    session has, too.
    """
    return _Extraction(namespace, predefined).run(func)


class _Extraction:
    """What has been found so far for one function."""

    def __init__(self, namespace: Mapping[str, Any], predefined: Mapping[str, Any]) -> None:
        self.namespace = namespace
        self.predefined = predefined
        self.sources = dict(cells())
        self.parsed: dict[int, list[_Statement]] = {}
        self.futures: set[str] = set()
        self.imports: dict[str, tuple[int, int, int]] = {}  # with the place of each
        self.body: list[_Statement] = []  # each after what it needs
        self.seen: set[tuple[int, int, int]] = set()
        self.root = ""
        self.written: set[str] = set()  # what the functions found assign, after ``global``
        self.doubts: dict[str, str] = {}  # why a name can't be kept, unless it is written

    def run(self, func: Any) -> tuple[str, str]:
        self.root, statement = self._definition(func)
        try:
            self._add(statement)
        except RecursionError:
            raise Unsavable("what it needs is nested too deeply") from None
        for name, why in self.doubts.items():
            if name not in self.written:
                raise Unsavable(f"it uses {name!r}, which {why}")
        return self.root, self._compose()

    # The function itself

    def _definition(self, func: Any) -> tuple[str, _Statement]:
        if isinstance(func, MethodType):
            owner = type(func.__self__).__name__
            raise Unsavable(
                f"it is a method of an object of class {owner}; "
                "save a function that makes the object and calls it"
            )
        if isinstance(func, type):
            raise Unsavable("it is a class; save a function that uses it, and it is kept with that")
        if isinstance(func, _BUILTINS):
            raise Unsavable("it is built into Python; it needs no saving")
        if isinstance(func, str):
            raise Unsavable("give the function itself, and not its name or its source")
        if isinstance(func, ModuleType) or not callable(func):
            raise Unsavable("it is no function")
        plain = _unwrapped(func)
        if plain is None:
            raise Unsavable(
                f"it is an object of class {type(func).__name__}; define a function with `def`"
            )
        for name in self._names_of(func, plain):
            found = self._latest(name)
            if found and (node := _def_named(found.node, name)):
                if node.decorator_list or _defines(found, node, func):
                    return name, found
        return plain.__name__, self._definition_by_place(plain)

    def _names_of(self, func: Any, plain: FunctionType) -> list[str]:
        """Return the global names of `func`, its own first."""
        names = [name for name, value in self.namespace.items() if value is func]
        return sorted(names, key=lambda name: name != plain.__name__)

    def _definition_by_place(self, plain: FunctionType) -> _Statement:
        """Return the statement at module level that has defined a plain function."""
        code = plain.__code__
        if plain.__name__ == "<lambda>":
            raise Unsavable("it is a lambda, which has no name; define it with `def`")
        match = _CELL.fullmatch(code.co_filename)
        if match is None:
            if code.co_filename.startswith("<") and "<frozen" not in code.co_filename:
                raise Unsavable("its source is not known: it was made by exec()")
            module = plain.__module__
            raise Unsavable(f"it is defined in the module {module!r}; import it from there")
        if code.co_freevars:
            around = plain.__qualname__.rpartition(".<locals>.")[0] or "another function"
            raise Unsavable(
                f"it is a closure: it uses {listing(map(repr, code.co_freevars))} of {around}(), "
                "in which it is defined; use parameters or constants"
            )
        if "." in plain.__qualname__:
            around = plain.__qualname__.rpartition(".")[0].removesuffix(".<locals>")
            raise Unsavable(f"it is defined inside of {around}; define it at module level")
        number = int(match[1])
        if number not in self.sources:
            raise Unsavable("its source is not kept any more; define it again")
        for statement in self._statements(number):
            node = _def_named(statement.node, plain.__name__, _first_line_of(plain))
            if node is not None:
                return statement
        raise Unsavable("its source is not known: it was made by exec()")

    # What it needs

    def _add(self, statement: _Statement) -> None:
        """Add a statement, after what it needs."""
        if statement.place in self.seen:
            return
        self.seen.add(statement.place)
        self._check(statement.node)
        futures = self._futures(statement.cell)
        names = _used(statement.text, futures)
        self.written |= names.written
        self.futures |= futures
        for name in [*sorted(names.early), *sorted(names.late - names.early)]:
            self._need(name)
        self.body.append(statement)

    def _need(self, name: str) -> None:
        value = self.namespace.get(name, _ABSENT)
        if name == self.root or name in _OF_MODULES:
            return
        if name in self.predefined and value is self.predefined[name]:
            return
        if value is _ABSENT:
            if not hasattr(builtins, name) and not _is_server(name):
                self._doubt(name, "is not defined")
        elif not self._is_imported(name, value):
            if statement := self._source_of(name, value):
                self._add(statement)

    def _doubt(self, name: str, why: str) -> None:
        """Note why a name can't be kept, unless a function turns out to write it."""
        self.doubts.setdefault(name, why)

    def _is_imported(self, name: str, value: Any) -> bool:
        """Add the imports of a name, if it has any."""
        latest = self._latest(name)
        if latest is None:
            return self._is_star_imported(name, value)
        if isinstance(latest.node, ast.ImportFrom):
            self._import(latest, name)
            return True
        # ``import a`` and ``import a.b`` bind the same name, and both are needed.
        for statement in self._bindings(name):
            if not isinstance(statement.node, ast.Import):
                break
            self._import(statement, name)
        return isinstance(latest.node, ast.Import)

    def _import(self, statement: _Statement, name: str) -> None:
        for alias in statement.node.names:
            if (alias.asname or alias.name.partition(".")[0]) == name:
                single = _copy_import(statement.node, alias)
                self.imports.setdefault(ast.unparse(single), statement.place)

    def _is_star_imported(self, name: str, value: Any) -> bool:
        for number in sorted(self.sources, reverse=True):
            for statement in reversed(self._statements(number)):
                node = statement.node
                if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                    module = sys.modules.get(node.module or "")
                    if getattr(module, name, _ABSENT) is value:
                        text = f"from {node.module} import {name}"
                        self.imports.setdefault(text, statement.place)
                        return True
        return False

    def _source_of(self, name: str, value: Any) -> _Statement | None:
        """Return the statement at module level that gives a name its value, if there is one."""
        if isinstance(value, FunctionType) and value.__name__ == name:
            match = _CELL.fullmatch(value.__code__.co_filename)
            if match and int(match[1]) in self.sources and "." not in value.__qualname__:
                return self._definition_by_place(value)
        latest = self._latest(name)
        if latest is None:
            self._doubt(name, f"no statement at module level defines; {_ADVICE}")
            return None
        node = latest.node
        why = None
        if definition := _def_named(node, name):
            if not definition.decorator_list and not _defines(latest, definition, value):
                why = "is another function now than its source says; define it again"
        elif isinstance(node, ast.ClassDef):
            if not node.decorator_list and getattr(value, "__name__", None) != name:
                why = "is no longer the class of that name"
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            why = self._why_not_constant(name, node, value)
        elif not isinstance(node, _Compound):
            why = f"is set by {_kind(node)} at module level; {_ADVICE}"
        if why:
            raise Unsavable(f"it uses {name!r}, which {why}")
        return latest

    def _check(self, node: ast.stmt) -> None:
        """Refuse a statement that does more than to define something."""
        if not isinstance(node, _Compound):
            return
        names = listing(map(repr, sorted(set(_bound(node)))))
        if isinstance(node, ast.If):
            tested = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
            if "__name__" in tested:
                raise Unsavable(f"it uses {names}, defined only where __name__ is '__main__'")
            if why := self._impurity(node.test):
                raise Unsavable(f"it uses {names}, under an `if` whose condition {why}")
        for field in ("body", "orelse", "finalbody"):
            for inner in getattr(node, field, []):
                self._check_inner(inner, names)
        for handler in getattr(node, "handlers", []):
            for inner in handler.body:
                self._check_inner(inner, names)

    def _check_inner(self, node: ast.stmt, names: str) -> None:
        simple = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Pass, *_Def)
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            if why := self._impurity(node.value):
                raise Unsavable(f"it uses {names}, which {why}; {_ADVICE}")
        elif isinstance(node, _Compound):
            self._check(node)
        elif not isinstance(node, simple):
            raise Unsavable(f"it uses {names}, defined beside {_kind(node)}")

    # Constants

    def _why_not_constant(
        self, name: str, node: ast.Assign | ast.AnnAssign, value: Any
    ) -> str | None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if not all(_is_plain_target(target) for target in targets):
            return "is assigned together with parts of other objects"
        if why := self._impurity(node.value):
            return f"{why}; {_ADVICE}"
        if len(targets) > 1 or not isinstance(targets[0], ast.Name):
            return None
        try:
            code = compile(ast.Expression(node.value), "<constant>", "eval", dont_inherit=True)
            defined = eval(code, dict(self.namespace))
        except Exception:
            self._doubt(name, f"can't be computed again from its source; {_ADVICE}")
            return None
        if isinstance(value, _COMPARED) and not _same(value, defined):
            self._doubt(
                name,
                f"has changed since it was defined: a new session would begin with "
                f"{_shown(node.value)}; if that is right, assign it again and save then; "
                "if not, keep it with save_memory, or pass it as a parameter",
            )
        return None

    def _impurity(self, node: ast.expr | None) -> str | None:
        """Return why an expression may have another value in another session; else None."""
        if node is None:
            return None
        if isinstance(node, ast.Call):
            return self._impurity_of_call(node)
        if isinstance(node, (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)):
            return f"is computed at run time: {_shown(node)}"
        if isinstance(node, ast.Lambda):
            return None  # Computed later, in the other session.
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.comprehension):
                for part in (child.iter, *child.ifs):
                    if why := self._impurity(part):
                        return why
            elif isinstance(child, ast.expr) and (why := self._impurity(child)):
                return why
        return None

    def _impurity_of_call(self, node: ast.Call) -> str | None:
        if not self._is_pure(node.func):
            return f"is computed at run time: {_shown(node)}"
        for part in (*node.args, *(keyword.value for keyword in node.keywords)):
            if why := self._impurity(part):
                return why
        return None

    def _is_pure(self, callee: ast.expr) -> bool:
        value = self._value(callee)
        if value is not _ABSENT:
            if isinstance(getattr(value, "__self__", None), _FIXED):
                return True  # A method of a constant.
            module = getattr(value, "__module__", None) or "builtins"
            name = getattr(value, "__qualname__", "")
            if module == "builtins" and isinstance(owner := getattr(value, "__self__", None), type):
                module = owner.__module__
            return f"{module}.{name}" in _PURE or (
                module in _PURE_MODULES and name.rpartition(".")[2] not in _IMPURE
            )
        if not isinstance(callee, ast.Attribute):
            return False
        receiver = callee.value
        while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
            receiver = receiver.func.value
        literal = (ast.Constant, ast.JoinedStr, ast.List, ast.Dict, ast.Set, ast.Tuple, ast.BinOp)
        return isinstance(receiver, literal) and self._impurity(callee.value) is None

    def _value(self, node: ast.expr) -> Any:
        """Return what a name, or an attribute of a module or class, is now."""
        if isinstance(node, ast.Name):
            return self.namespace.get(node.id, getattr(builtins, node.id, _ABSENT))
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if isinstance(owner, (ModuleType, type, *_FIXED)):
                return getattr(owner, node.attr, _ABSENT)
        return _ABSENT

    # Cells

    def _statements(self, number: int) -> list[_Statement]:
        if number not in self.parsed:
            text = self.sources[number].removeprefix("\ufeff")
            try:
                body = compile(text, f"<cell {number}>", "exec", _FLAGS, True).body
            except SyntaxError:
                body = []
            lines = text.split("\n")
            found = [_Statement(number, node, _text(node, text, lines)) for node in body]
            self.parsed[number] = found
        return self.parsed[number]

    def _bindings(self, name: str) -> Iterator[_Statement]:
        """Yield the statements that bind a name, the latest first."""
        for number in sorted(self.sources, reverse=True):
            if name in self.sources[number]:
                for statement in reversed(self._statements(number)):
                    if name in statement.names:
                        yield statement

    def _latest(self, name: str) -> _Statement | None:
        return next(self._bindings(name), None)

    def _futures(self, number: int) -> set[str]:
        return {
            alias.name
            for statement in self._statements(number)
            if isinstance(statement.node, ast.ImportFrom) and statement.node.module == "__future__"
            for alias in statement.node.names
        }

    def _compose(self) -> str:
        parts = [f"from __future__ import {name}" for name in sorted(self.futures)]
        parts += sorted(self.imports, key=lambda text: (self.imports[text], text))
        text = "\n".join(parts)
        last: ast.stmt | None = None
        for statement in self.body:
            large = not isinstance(statement.node, (ast.Assign, ast.AnnAssign))
            if text:
                after_large = last and not isinstance(last, (ast.Assign, ast.AnnAssign))
                text += "\n\n\n" if large or after_large else "\n" if last else "\n\n"
            text += statement.text
            last = statement.node
        return text + "\n"


def _unwrapped(func: Any) -> FunctionType | None:
    """Return the plain function in the decorated one, None if there is none."""
    try:
        plain = inspect.unwrap(func)
    except ValueError:
        return None
    return plain if isinstance(plain, FunctionType) else None


def _def_named(node: ast.stmt, name: str, line: int | None = None) -> Any:
    """Return the definition of a function in a statement, the last one; else None."""
    if isinstance(node, _Def):
        fits = node.name == name and line in (None, _first_line(node))
        return node if fits else None
    found = None
    if isinstance(node, _Compound):
        for inner in ast.iter_child_nodes(node):
            if isinstance(inner, ast.ExceptHandler):
                inner = ast.If(ast.Constant(True), inner.body, [])
            if isinstance(inner, (*_Def, *_Compound)):
                found = _def_named(inner, name, line) or found
    return found


def _first_line(node: Any) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _first_line_of(plain: FunctionType) -> int:
    return plain.__code__.co_firstlineno


def _defines(statement: _Statement, node: Any, value: Any) -> bool:
    """Whether a function is the one that an undecorated definition has made."""
    if not isinstance(value, FunctionType):
        return False
    filename = f"<cell {statement.cell}>"
    return value.__code__.co_filename == filename and _first_line_of(value) == _first_line(node)


def _bound(node: ast.AST) -> Iterator[str]:
    """Yield the names that a statement binds in its own scope."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
            return
        case ast.Lambda():
            return
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
            for part in ast.walk(node):
                if isinstance(part, ast.NamedExpr):
                    yield part.target.id
            return
        case ast.Import() | ast.ImportFrom():
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
            return
        case ast.Name(ctx=ast.Store() | ast.Del()):
            yield node.id
        case ast.AnnAssign(value=None):
            return
        case ast.ExceptHandler(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
    for child in ast.iter_child_nodes(node):
        yield from _bound(child)


def _used(text: str, futures: set[str]) -> _Names:
    """Return the module-level names that a statement uses."""
    names = _Names(set(), set(), set())

    def visit(table: symtable.SymbolTable, early: bool) -> None:
        for symbol in table.get_symbols():
            if symbol.is_global():
                (names.early if early else names.late).add(symbol.get_name())
            if symbol.is_declared_global() and symbol.is_assigned():
                names.written.add(symbol.get_name())
        for child in table.get_children():
            kind = "class" if child.get_name() in _COMPREHENSIONS else child.get_type()
            visit(child, early and kind != "function")

    # Inside of a function its own names are local, and so are those of comprehensions,
    # which count as the module's where that is around them.
    imports = "".join(f"from __future__ import {name}\n" for name in sorted(futures))
    source = f"{imports}def statement():\n{indent(text, ' ')}\n"
    (table,) = symtable.symtable(source, "<saved>", "exec").get_children()
    visit(table, True)
    return names


def _text(node: ast.stmt, text: str, lines: list[str]) -> str:
    """Return the source of a statement at module level."""
    if isinstance(node, (*_Def, ast.ClassDef)):
        return "\n".join(lines[_first_line(node) - 1 : node.end_lineno])
    return ast.get_source_segment(text, node) or ""


def _copy_import(node: Any, alias: ast.alias) -> ast.stmt:
    if isinstance(node, ast.Import):
        return ast.Import([alias])
    return ast.ImportFrom(node.module, [alias], node.level)


def _is_plain_target(node: ast.expr) -> bool:
    if isinstance(node, (ast.Tuple, ast.List)):
        return all(map(_is_plain_target, node.elts))
    if isinstance(node, ast.Starred):
        return _is_plain_target(node.value)
    return isinstance(node, ast.Name)


def _is_server(name: str) -> bool:
    """Whether a name may be that of a server, which this run may not use."""
    return name.startswith("mcp_")


def _same(value: Any, defined: Any) -> bool:
    try:
        # By their texts, too, for a NaN isn't equal to itself.
        equal = bool(value == defined) or repr(value) == repr(defined)
        return type(value) is type(defined) and equal
    except Exception:
        return False


def _kind(node: ast.AST) -> str:
    kinds = {"For": "a loop", "AsyncFor": "a loop", "While": "a loop", "With": "a `with` statement"}
    kinds |= {"AsyncWith": "a `with` statement", "AugAssign": "an assignment such as `+=`"}
    kinds |= {"Delete": "a `del` statement", "Expr": "a statement that runs code"}
    return kinds.get(type(node).__name__, f"a statement of kind {type(node).__name__}")


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else text[:57] + "..."
