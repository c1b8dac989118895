"""Functions that outlive sessions: the file `user_tools.py`, and the module of that name.

`save_tool` writes a function, with what it needs, as a section of the file:

    # >>> saved tool: word_count >>>
    import re


    def word_count(text: str) -> int:
        return len(re.findall(r"[a-z]+", text))
    # <<< saved tool: word_count <<<

Whatever else is in the file was written by hand, and stays as it is. Functions
there are tools, too, unless their names begin with an underscore.

# Why each saved tool has a section, and a namespace, of its own

A tool is kept as it was when it was saved. If helpers and constants were shared,
saving one tool with another version of `parse` or `LIMIT` would change others
that nobody has looked at, or would have to be refused. So each section holds all
that its tool needs, and runs with globals of its own. Names that every session
has (`runtime`, `mcp_github`, other tools) it doesn't hold: they are looked up
when the tool is called, as builtins are. A section that is broken is skipped
without harm to the others.

# Why tools are loaded when they are mentioned

Compiling a tool of fifteen lines takes more than a millisecond here, which is as
much as starting a session. So a session compiles a tool once its name occurs in
the source of a run, or when it is taken from the module `user_tools`.
"""

__all__ = ["delete_saved_tool", "list_saved_tools", "save_tool"]

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.machinery import ModuleSpec
import inspect
import linecache
import re
import sys
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

from mcp import _host
from mcp._errors import MCPError
from mcp._extract import Unsavable, cells, extract
from mcp._names import listing

_MODULE = "user_tools"
_PATH = "/projects/user_tools.py"

_BEGIN = re.compile(r"# >>> saved tool: (\w+) >>>\s*")
_END = re.compile(r"# <<< saved tool: (\w+) <<<\s*")
_HEADER = (
    "# Functions for all sessions. Those between markers were written by save_tool, which\n"
    "# replaces them as a whole; add others, without markers, as you like.\n"
)

_WORD = re.compile(r"[^\W\d]\w*")
_DEF = re.compile(r"^(?:async[ \t]+)?def[ \t]+([^\W\d]\w*)", re.MULTILINE)
_Def = (ast.FunctionDef, ast.AsyncFunctionDef)

# Where code mentions these, it may come to any name without mentioning that.
_ANY = frozenset({"__dict__", "__main__", "dir", "f_globals", "globals", "locals", "vars"})

# A line of the first column that can begin a statement.
_STATEMENT = re.compile(r"(?!(?:elif|else|except|finally)\b)[^\s#)\]}]")
_MAX_JOINED = 50

_MAX_CONFLICTS = 100
_ABSENT = object()


def save_tool(func: Callable[..., Any]) -> str:
    """Save a function for later sessions, where it is predefined.

    Its source is kept, with the imports, constants, helper functions and classes
    of module level that it uses; an older tool of that name is replaced. What
    can't be saved, such as a closure or a function that uses a variable computed
    at run time, is a ValueError that says why. `user_tools` has it at once.

        >>> save_tool(word_count)
        "Tool 'word_count' saved."
    """
    name, source = _extracted(func)
    if source is not None:
        _check_name(name)
        _tools.try_out(name, source)
        _change(lambda file: file.with_section(name, source))
    return f"Tool {name!r} saved."


def list_saved_tools() -> list[dict[str, Any]]:
    """Return the saved tools, sorted by name: dicts `name, signature, description`.

    `description` is the function's docstring. A tool that isn't Python has
    `name, error`.

        >>> list_saved_tools()[0]["signature"]
        'def word_count(text: str) -> int'
    """
    file = _tools.read()
    return [file.describe(name) for name in sorted(file.names)]


def delete_saved_tool(name: str) -> str:
    """Delete a saved tool, also one that was written by hand.

        >>> delete_saved_tool("word_count")
        "Tool 'word_count' deleted."
    """
    if not isinstance(name, str):
        name = getattr(name, "__name__", name)  # The function itself was given.
    if not isinstance(name, str):
        raise TypeError(f"the name of a tool must be a str, not {type(name).__name__}")
    found = _change(lambda file: file.without(name) if name in file.names else None)
    return f"Tool {name!r} {'deleted' if found else 'not found'}."


def _extracted(func: Any) -> tuple[str, str | None]:
    """Return the name and the source of a function; no source for a saved tool."""
    name = getattr(func, "__name__", None)
    if isinstance(name, str) and _tools.loaded.get(name) is func and name in _tools.read().names:
        return name, None
    try:
        main = vars(sys.modules["__main__"])
        return extract(func, main, _tools.predefined | _tools.loaded)
    except Unsavable as error:
        shown = repr(name) if isinstance(name, str) else f"an object of type {type(func).__name__}"
        text = f"{shown} can't be saved: {error}"
    raise ValueError(text)


def _check_name(name: str) -> None:
    why = None
    if name.startswith("_"):
        why = "names that begin with _ are no tools"
    elif name in _tools.predefined or name == _MODULE:
        why = "every session has something else of that name"
    elif hasattr(builtins, name):
        why = "it would hide Python's own"
    if why:
        raise ValueError(f"{name!r} can't be saved: {why}; rename it")


def _change(edit: Callable[["_File"], "_File | None"]) -> bool:
    """Replace the file by what `edit` makes of it; False if that is None.

    No change is lost, whoever else makes one: `edit` is then called again.
    """
    for _ in range(_MAX_CONFLICTS):
        old = _tools.read()
        new = edit(old)
        if new is None:
            return False
        params = {"revision": old.revision, "text": new.text}
        if _host.call("saved.write", params).value:
            _tools.use(new)
            return True
    raise MCPError(f"{_PATH} was changed by others during each of {_MAX_CONFLICTS} attempts")


class _Section(NamedTuple):
    """What `save_tool` wrote: the lines from `start` to `end`, which are markers."""

    name: str
    start: int
    end: int
    source: str


class _Unit(NamedTuple):
    """Lines of what was written by hand: statements, or an error of theirs."""

    start: int
    end: int
    body: list[ast.stmt]
    error: SyntaxError | None

    def definition(self, name: str) -> ast.stmt | None:
        """Return the definition of a function at its level, if it is here."""
        for node in self.body:
            if isinstance(node, _Def) and node.name == name:
                return node
        return None


class _File:
    """A state of the file. Lines are counted from 0."""

    def __init__(self, text: str, revision: str = "") -> None:
        self.text = text
        self.revision = revision
        self.lines = text.removeprefix("\ufeff").split("\n")
        self.sections = dict[str, _Section]()  # of several with a name the last
        self.own = list(self.lines)  # with empty lines in the place of sections
        self._find_sections()
        self.own_text = "\n".join(self.own)
        found = _DEF.findall(self.own_text)
        self.own_names = {name for name in found if not name.startswith("_")}
        self.names = self.own_names | self.sections.keys()
        self._units: list[_Unit] | None = None

    def _find_sections(self) -> None:
        begin: tuple[str, int] | None = None
        for number, line in enumerate(self.lines):
            if not line.startswith(("# >>>", "# <<<")):
                continue  # Nearly all: this is done in each session.
            if match := _BEGIN.fullmatch(line):
                begin = match[1], number
            elif (match := _END.fullmatch(line)) and begin and match[1] == begin[0]:
                name, start = begin
                source = "\n".join(self.lines[start + 1 : number])
                self.sections[name] = _Section(name, start, number, source)
                self.own[start : number + 1] = [""] * (number + 1 - start)
                begin = None

    def units(self) -> list[_Unit]:
        """Return what was written by hand, in parts that can be executed one by one."""
        if self._units is None:
            try:
                body = _parse(self.own_text).body
                last = len(self.lines)
                self._units = [
                    _Unit(_first(node), node.end_lineno or last, [node], None) for node in body
                ]
            except (SyntaxError, ValueError):
                self._units = list(_salvage(self.own))
        return self._units

    def source(self, name: str) -> str:
        """Return the source of a tool."""
        if name in self.sections:
            return self.sections[name].source
        for unit in self.units():
            if node := unit.definition(name):
                return "\n".join(self.lines[_first(node) : node.end_lineno])
        start = next(i for i, line in enumerate(self.own) if _defines(line, name))
        unit = next((unit for unit in self.units() if unit.start <= start < unit.end), None)
        return "\n".join(self.lines[unit.start : unit.end]) if unit else self.own[start]

    def describe(self, name: str) -> dict[str, Any]:
        """Return what `list_saved_tools` says of a tool."""
        try:
            tree = _parse(self.source(name))
        except (SyntaxError, ValueError) as error:
            return {"name": name, "error": _brief(error)}
        for node in reversed(tree.body):
            if isinstance(node, _Def) and node.name == name:
                return {
                    "name": name,
                    "signature": _signature(node),
                    "description": ast.get_docstring(node) or "",
                }
        return {"name": name, "error": f"no `def {name}` at module level"}

    def with_section(self, name: str, source: str) -> "_File":
        """Return the file with a tool in the place of the older one."""
        added = [f"# >>> saved tool: {name} >>>", *source.rstrip("\n").split("\n")]
        added.append(f"# <<< saved tool: {name} <<<")
        if name in self.sections:
            section = self.sections[name]
            lines = [*self.lines[: section.start], *added, *self.lines[section.end + 1 :]]
            new = _File("\n".join(lines))
            if name in new.own_names:
                new = new._without_own(name)
        else:
            base = self._without_own(name) if name in self.own_names else self
            text = base.text.rstrip() + "\n\n\n" if base.text.strip() else _HEADER + "\n\n"
            new = _File(text + "\n".join(added) + "\n")
        kept = new.sections.get(name)
        if kept is None or kept.source != "\n".join(added[1:-1]):
            raise ValueError(f"{name!r} can't be saved: its source has a line like {added[0]!r}")
        return _File(new.text, self.revision)

    def without(self, name: str) -> "_File":
        """Return the file without a tool."""
        new = self
        while name in new.sections:
            section = new.sections[name]
            new = new._without_lines(section.start, section.end + 1)
        return new._without_own(name) if name in new.own_names else new

    def _without_own(self, name: str) -> "_File":
        new = self
        while name in new.own_names:
            for unit in reversed(new.units()):
                if node := unit.definition(name):
                    new = new._without_lines(_first(node), node.end_lineno)
                    break
            else:
                # Its definition isn't Python, or inside of another statement.
                number = next(i for i, line in enumerate(new.own) if _defines(line, name))
                unit = next((u for u in new.units() if u.start <= number < u.end), None)
                start, end = (unit.start, unit.end) if unit else (number, number + 1)
                new = new._without_lines(start, end)
        return new

    def _without_lines(self, start: int, end: int) -> "_File":
        above, below = start, end
        while above > 0 and not self.lines[above - 1].strip():
            above -= 1
        while below < len(self.lines) and not self.lines[below].strip():
            below += 1
        # As many empty lines as there were on one side, and none at either end.
        before, after = self.lines[:above], self.lines[below:]
        blank = max(start - above, below - end) if before and after else 0
        lines = [*before, *[""] * blank, *(after or [""])]
        return _File("\n".join(lines), self.revision)


class _Tools:
    """The tools as this session knows them."""

    def __init__(self) -> None:
        self.module = _Module(_MODULE, "Functions that were saved by save_tool, or by hand.")
        self.base = dict(vars(self.module))
        self.predefined: Mapping[str, Any] = {}  # the other names that every run has
        self.announced = ""  # the file's state, by the host; "" where there is none
        self.state: str | None = ""  # the one that `file` is of
        self.file = _File("")
        self.loaded: dict[str, FunctionType] = {}
        self.own_loaded = False
        self.loading: set[str] = set()
        self.failed: set[str] = set()  # in this run; the next one tries again
        self.scanned = 0  # the newest cell whose words are in `mentioned`
        self.mentioned: set[str] = set()
        self.globals: dict[str, Any] | None = None  # see `builtins`
        self.given: dict[str, Any] = {}  # what the session's globals got from here

    def begin(self, announced: str, predefined: Mapping[str, Any]) -> None:
        """Note what a run begins with. Costs nothing where there are no tools."""
        self.announced = announced
        self.predefined = predefined
        self.failed.clear()
        if self.globals is not None:
            self._fill_builtins()

    def define(self, namespace: dict[str, Any]) -> None:
        """Load the tools that the session's code mentions, and define them in its globals."""
        if self.announced != self.state:
            self.use(self.read())
            self.state = self.announced
        if self.file.names:
            for number, source in cells(self.scanned):
                self.mentioned.update(_WORD.findall(source))
                self.scanned = number
            wanted = self.file.names
            if self.mentioned.isdisjoint(_ANY):
                wanted = wanted & self.mentioned
            for name in sorted(wanted):
                self.load(name)
        if self.given or self.loaded:
            self._give(namespace)

    def _give(self, namespace: dict[str, Any]) -> None:
        for name, value in [*self.given.items()]:
            if self.loaded.get(name) is not value:
                del self.given[name]
                if namespace.get(name, _ABSENT) is value:
                    del namespace[name]
        for name, value in self.loaded.items():
            if name not in namespace and name not in self.predefined:
                namespace[name] = self.given[name] = value

    def read(self) -> _File:
        """Return the file as it is now."""
        answer = _host.call("saved.read", {}).value
        if answer["revision"] != self.file.revision or answer["text"] != self.file.text:
            return _File(answer["text"], answer["revision"])
        return self.file

    def use(self, file: _File) -> None:
        """Take a new state of the file; what hasn't changed stays loaded."""
        old, self.file = self.file, file
        self.state = None
        self.failed.clear()
        linecache.cache.pop(_PATH, None)
        if old.own_text.strip() != file.own_text.strip():
            for name in [*vars(self.module)]:
                if name not in self.base:
                    del vars(self.module)[name]
            for name in old.own_names - old.sections.keys():
                self.loaded.pop(name, None)
            self.own_loaded = False
        for name in [*self.loaded]:
            before, after = old.sections.get(name), file.sections.get(name)
            if (before and before.source) != (after and after.source):
                del self.loaded[name]
        for name in vars(self.module).keys() & (old.names - self.loaded.keys()):
            if name in old.sections:
                del vars(self.module)[name]
        if self.globals is not None:
            self._fill_builtins()

    def load(self, name: str) -> FunctionType | None:
        """Return a tool, loaded with those it mentions; None if it is broken."""
        if name in self.loaded or name in self.loading or name in self.failed:
            return self.loaded.get(name)
        section = self.file.sections.get(name)
        if section is None:
            self._load_own()
            return self.loaded.get(name)
        self.loading.add(name)
        try:
            self._load_mentioned(section.source, name)
            function = self._execute(section)
        except (Exception, SystemExit) as error:
            self.failed.add(name)
            _skip(name, error, section.start)
            return None
        finally:
            self.loading.discard(name)
        self._keep(name, function)
        return function

    def try_out(self, name: str, source: str) -> None:
        """Execute a source as a new session would; a ValueError if that fails."""
        try:
            self._load_mentioned(source, name)
            self._execute(_Section(name, 0, 0, source))
        except (Exception, SystemExit) as error:
            text = f"{name!r} can't be saved: a new session could not load it: {_brief(error)}"
        else:
            return
        raise ValueError(text)

    def _load_mentioned(self, source: str, name: str) -> None:
        for word in sorted(self.file.names.intersection(_WORD.findall(source)) - {name}):
            self.load(word)

    def _execute(self, section: _Section) -> FunctionType:
        names = self._new_globals()
        code = compile(section.source, _PATH, "exec", dont_inherit=True)
        exec(_moved(code, section.start + 1), names)
        if section.name not in names:
            raise NameError(f"it defines no {section.name!r}")
        return names[section.name]

    def _new_globals(self) -> dict[str, Any]:
        if self.globals is None:
            self.globals = {}
            self._fill_builtins()
        names = {"__name__": _MODULE, "__file__": _PATH, "__doc__": None}
        return {**names, "__builtins__": self.globals}

    def _fill_builtins(self) -> None:
        """Make what tools find beside their own names: builtins, and what is predefined."""
        self.globals.clear()
        self.globals.update(vars(builtins))
        self.globals.update(self.loaded)
        self.globals[_MODULE] = self.module
        self.globals.update(self.predefined)

    def _keep(self, name: str, function: Any) -> None:
        self.loaded[name] = function
        vars(self.module)[name] = function
        if name not in self.predefined:
            self.globals[name] = function

    def _load_own(self) -> None:
        """Execute what was written by hand, statement by statement."""
        if self.own_loaded:
            return
        self.own_loaded = True
        names = vars(self.module)
        names.update(self._new_globals(), __doc__=self.base["__doc__"])
        self._load_mentioned(self.file.own_text, "")
        flags = _future_flags(self.file.units())
        for unit in self.file.units():
            try:
                if unit.error:
                    raise unit.error
                tree = ast.Module(unit.body, [])
                exec(compile(tree, _PATH, "exec", flags, True), names)
            except (Exception, SystemExit) as error:
                text = "\n".join(self.file.lines[unit.start : unit.end])
                _skip(next(iter(_DEF.findall(text)), ""), error, unit.start)
        for name in self.file.own_names - self.file.sections.keys():
            if name in names:
                self._keep(name, names[name])


class _Module(ModuleType):
    """The module `user_tools`, whose functions are loaded when they are looked up."""

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(_tools.file.names)
        if name.startswith("__"):
            raise AttributeError(f"module {_MODULE!r} has no attribute {name!r}")
        if name in _tools.file.names:
            function = _tools.load(name)
            if function is not None:
                return function
            raise AttributeError(f"the saved tool {name!r} is broken, see standard error")
        _tools._load_own()
        if name in vars(self):
            return vars(self)[name]
        known = listing(sorted(_tools.file.names)) or "none"
        raise AttributeError(f"there is no saved tool {name!r}; saved tools: {known}")

    def __dir__(self) -> list[str]:
        return sorted({*vars(self), *_tools.file.names})


class Finder:
    """Finds `user_tools` for `import`; it is its own loader."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of `user_tools`, which is there also without any tools."""
        return ModuleSpec(_MODULE, Finder, origin=_PATH) if fullname == _MODULE else None

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """Return the module, of which a session has one."""
        return _tools.module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Look what is in the file now."""
        if _tools.announced or _tools.file.names:
            _tools.use(_tools.read())


def install() -> None:
    """Make `import` find `user_tools`."""
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)


def begin(announced: str, predefined: Mapping[str, Any]) -> None:
    """Begin a run: `announced` is the state of the file, `predefined` are the run's other names."""
    _tools.begin(announced, predefined)


def define(namespace: dict[str, Any]) -> None:
    """Define the tools that the run mentions. Executes their code, so it may take time."""
    if _tools.announced or _tools.file.names or _tools.given:
        _tools.define(namespace)


def names() -> dict[str, Any]:
    """Return the names that every run has because of saved tools, without the tools."""
    own = {name: globals()[name] for name in __all__}
    return {**own, _MODULE: _tools.module}


def is_tool(name: str) -> bool:
    """Whether there is a saved tool of that name."""
    return name in _tools.file.names


def source(name: str) -> str:
    """Return the source of a saved tool."""
    file = _tools.read()
    if name not in file.names:
        raise ValueError(f"there is no saved tool {name!r}")
    return file.source(name)


def _skip(name: str, error: BaseException, line: int) -> None:
    what = f"the saved tool {name!r}" if name else "a statement"
    print(f"{what} is skipped: {_brief(error)} ({_PATH}, line {line + 1})", file=sys.stderr)


def _brief(error: BaseException) -> str:
    """Return an exception as one line."""
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {' '.join(str(text).split())[:300]}".removesuffix(": ")


def _moved(code: CodeType, lines: int) -> CodeType:
    """Return code with the line numbers that it has so many lines further down."""
    consts = tuple(_moved(c, lines) if isinstance(c, CodeType) else c for c in code.co_consts)
    return code.replace(co_firstlineno=code.co_firstlineno + lines, co_consts=consts)


def _parse(text: str) -> ast.Module:
    return compile(text, _PATH, "exec", ast.PyCF_ONLY_AST, True)


def _first(node: Any) -> int:
    """Return the line where a statement begins, from 0."""
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1


def _defines(line: str, name: str) -> bool:
    match = _DEF.match(line)
    return match is not None and match[1] == name


def _signature(node: Any) -> str:
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{kind} {node.name}({ast.unparse(node.args)}){returns}"


def _future_flags(units: Iterable[_Unit]) -> int:
    import __future__

    flags = 0
    for unit in units:
        for node in unit.body:
            if isinstance(node, ast.ImportFrom) and node.module == "__future__":
                for alias in node.names:
                    feature = getattr(__future__, alias.name, None)
                    flags |= getattr(feature, "compiler_flag", 0)
    return flags


def _salvage(lines: list[str]) -> Iterator[_Unit]:
    """Yield the statements of lines that aren't Python as a whole, and what isn't."""
    starts = [number for number, line in enumerate(lines) if _STATEMENT.match(line)]
    starts.append(len(lines))
    i = 0
    while i < len(starts) - 1:
        unit, following = _shortest(lines, starts, i)
        yield unit
        i = following


def _shortest(lines: list[str], starts: list[int], i: int) -> tuple[_Unit, int]:
    """Return the fewest parts from `i` on that are Python together, or the part `i` alone."""
    error: SyntaxError | None = None
    for j in range(i + 1, min(i + _MAX_JOINED, len(starts))):
        text = "\n".join(lines[starts[i] : starts[j]])
        try:
            tree = _parse(text)
        except (SyntaxError, ValueError) as failure:
            own = failure if isinstance(failure, SyntaxError) else SyntaxError(str(failure))
            error = error or own
            continue
        ast.increment_lineno(tree, starts[i])
        return _Unit(starts[i], starts[j], tree.body, None), j
    return _Unit(starts[i], starts[i + 1], [], error), i + 1


_tools = _Tools()
