"""Uncaught exceptions, the way a run reports them."""

from collections.abc import Callable, Iterator
from itertools import groupby, islice
from traceback import FrameSummary, StackSummary, TracebackException, _safe_string
from types import TracebackType
from typing import Any

from codeexec import source

__all__ = [
    "describe",
    "describe_briefly",
    "describe_exit",
    "exit_status",
    "is_hidden",
    "shorten",
    "visible",
]

# Frames between the user's and the interpreter's that say nothing to the user.
_HIDDEN = (
    "<frozen codeexec",
    "<frozen mcp.",
    "<frozen mcp>",
    "<frozen importlib",
    "<frozen asyncio.base_events>",
    "<frozen asyncio.events>",
    "<frozen asyncio.runners>",
)

# How many frames of a traceback are looked at, the innermost; and how many are
# shown, from either end.
_MAX_FRAMES = 1000
_MAX_OUTER = 30
_MAX_INNER = 70
_MAX_REPEATED = 3

# Characters of text.
_MAX_TRACEBACK = 64_000
_MAX_MESSAGE = 16_000

# A class of the user's may define how its attributes are looked up, even so
# that this raises.  These look them up in the way of the built-in types.
_name_of = type.__dict__["__name__"].__get__
_traceback_of = BaseException.__dict__["__traceback__"].__get__

_cell_number = source.cell_number


def describe(
    exc: BaseException, cell: int, explain_name: Callable[[str], str | None] | None = None
) -> dict[str, Any]:
    """Describes an uncaught exception of the run number `cell`.

    `explain_name` may know why a global name is not defined; the interpreter's
    guess at another name is then left out.  Calls methods of the exception,
    which are the user's code and may raise anything.
    """
    explained = explain_name is not None and is_a(exc, NameError) and _add_reason(exc, explain_name)
    traceback = _traceback_of(exc)
    limit = -_MAX_FRAMES if _is_deep(traceback) else None
    summary = TracebackException(type(exc), exc, traceback, limit=limit, compact=True)
    if explained:
        summary._str = _safe_string(exc, "exception")
    for part in _parts(summary):
        part.stack = _Stack(f for f in part.stack if not f.filename.startswith(_HIDDEN))
    error = {
        "type": _name_of(type(exc)),
        "message": shorten(summary._str, _MAX_MESSAGE),
        "traceback": shorten("".join(summary.format()), _MAX_TRACEBACK),
    }
    return error | location(exc, cell)


def describe_briefly(exc: BaseException, cell: int) -> dict[str, Any]:
    """Describes an exception that cannot be described in full.

    Calls nothing of the user's and needs hardly any memory.
    """
    name = _name_of(type(exc))
    return {"type": name, "message": "", "traceback": f"{name}\n"} | location(exc, cell)


def describe_exit(exc: SystemExit, cell: int) -> dict[str, Any]:
    """Describes the end of a run by `sys.exit()`, which has no traceback."""
    return {"type": "SystemExit", "message": _text(exc.code), "traceback": ""} | location(exc, cell)


def location(exc: BaseException, cell: int) -> dict[str, int]:
    """The innermost line in user code: "line", and "cell" if it is another run's."""
    place = None
    traceback = _traceback_of(exc)
    while traceback is not None:
        number = _cell_number(traceback.tb_frame.f_code.co_filename)
        if number is not None:
            place = number, traceback.tb_lineno
        traceback = traceback.tb_next
    if place is None and type(exc) in (SyntaxError, IndentationError, TabError):
        number = _cell_number(exc.filename or "")
        if number is not None and exc.lineno is not None:
            place = number, exc.lineno
    if place is None:
        return {}
    number, line = place
    return {"line": line} if number == cell else {"line": line, "cell": number}


def exit_status(exc: SystemExit) -> tuple[int, str]:
    """The exit code that a `SystemExit` asks for, and the text for stderr.

    As in Python: None is 0, a number is taken modulo 256 (as the system does),
    anything else is printed and means 1.
    """
    code = exc.code
    if code is None:
        return 0, ""
    if isinstance(code, int):
        return (code & 0xFF if -(2**63) <= code < 2**63 else 0xFF), ""
    return 1, _text(code)


def _text(value: object) -> str:
    try:
        return shorten(str(value), _MAX_MESSAGE)
    except Exception:
        return ""


def shorten(text: str, limit: int) -> str:
    """Leaves out the middle of a text that is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n... [{len(text) - 2 * half} characters left out] ...\n{text[-half:]}"


def is_a(exc: BaseException, kind: type[BaseException]) -> bool:
    """`isinstance`, which does not ask the exception for its `__class__`."""
    return issubclass(type(exc), kind)


def visible(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that say nothing to the user."""
    shown = []
    while traceback is not None:
        if not traceback.tb_frame.f_code.co_filename.startswith(_HIDDEN):
            shown.append(traceback)
        traceback = traceback.tb_next
    result = None
    for part in reversed(shown):
        result = TracebackType(result, part.tb_frame, part.tb_lasti, part.tb_lineno)
    return result


def is_hidden(coro: object) -> bool:
    """Whether a coroutine is not of the user's code."""
    code = getattr(coro, "cr_code", None)
    return code is not None and code.co_filename.startswith(_HIDDEN)


def _add_reason(exc: NameError, explain_name: Callable[[str], str | None]) -> bool:
    """Adds a note that says why a name is not defined, and whether that is known."""
    try:
        reason = explain_name(exc.name) if exc.name else None
    except Exception:
        return False
    if reason and reason not in getattr(exc, "__notes__", ()):
        exc.add_note(reason)
    return bool(reason)


class _Stack(StackSummary):
    """A stack of which only what is shown gets formatted.

    That is the costly part: it parses each line again to find what to underline.
    """

    def format(self, **kwargs: Any) -> list[str]:
        """Formats the frames as the interpreter does, without a too long middle."""
        shown: list[FrameSummary | str] = []
        for _, same in groupby(self, _place):
            shown += islice(same, _MAX_REPEATED)
            repeated = sum(1 for _ in same)
            if repeated:
                times = "time" if repeated == 1 else "times"
                shown.append(f"  [Previous line repeated {repeated} more {times}]\n")
        left_out = len(shown) - _MAX_OUTER - _MAX_INNER
        if left_out > 1:
            shown[_MAX_OUTER:-_MAX_INNER] = [f"  [{left_out} frames left out]\n"]
        lines = []
        for item in shown:
            lines += [item] if isinstance(item, str) else StackSummary([item]).format(**kwargs)
        return lines


def _place(frame: FrameSummary) -> tuple[str, int | None, str]:
    return frame.filename, frame.lineno, frame.name


def _is_deep(traceback: TracebackType | None) -> bool:
    depth = 0
    while traceback is not None and depth <= _MAX_FRAMES:
        traceback = traceback.tb_next
        depth += 1
    return traceback is not None


def _parts(summary: TracebackException) -> Iterator[TracebackException]:
    """The summary, those of its causes and contexts, and of a group's members."""
    todo = [summary]
    while todo:
        part = todo.pop()
        yield part
        todo += filter(None, (part.__cause__, part.__context__))
        todo += part.exceptions or ()
