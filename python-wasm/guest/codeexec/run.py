"""Runs: the code of one request, executed in the session's `__main__`.

The interpreter's glue calls `prepare` once, before its memory becomes the
snapshot that sessions start from, `after_fork` once in each session, and
`main` for each run.
"""

import builtins
import contextvars
import gc
import importlib
import io
import json
import logging
import os
import random
import sys
import tempfile
import time
import types
import uuid
from typing import Any

from codeexec import (
    errors,
    host,
    interrupts,
    loop,
    missing,
    pristine,
    sandbox,
    source,
    streams,
    unawaited,
)

__all__ = ["after_fork", "main", "prepare"]

# What scripts use most: part of the snapshot, so that its import costs nothing.
_PREIMPORTS = (
    "abc argparse array ast asyncio base64 bisect calendar collections concurrent.futures "
    "contextlib copy csv dataclasses datetime decimal difflib enum fnmatch fractions functools "
    "glob gzip hashlib heapq hmac html html.parser inspect io itertools json logging math "
    "mimetypes numbers operator os os.path pathlib pickle platform pprint queue random re secrets "
    "shlex shutil sqlite3 statistics string struct tempfile textwrap threading time traceback "
    "types typing unicodedata urllib.parse urllib.request uuid warnings weakref "
    "xml.etree.ElementTree zipfile zlib zoneinfo"
).split()

_HOME = "/workspace"

# Exit codes, as a shell has them.
_FAILED = 1
_INTERRUPTED = 130

_MAX_VALUE = 1_000_000  # characters of a value's repr
_RESERVE = 1 << 20  # bytes that are freed to report a MemoryError
_MAX_SHOWN = 10  # names of calls in a note

# What every session will run once, so that it is specialised and cached.
_WARM_UP = (
    "x = 1",
    "import asyncio\nawait asyncio.gather(asyncio.sleep(0), asyncio.sleep(0))",
    "async def f(): return 1\nasyncio.run(f())",
    "1 / 0",
    "undefined",
    "1 +",
    "[1, 2]",
)

# Private references, for user code may patch every module.
_builtins = vars(builtins)
_dumps = json.dumps
_eval, _repr = eval, repr
_gc_is_enabled, _collect = gc.isenabled, gc.collect
_BufferedReader, _BytesIO = io.BufferedReader, io.BytesIO
_set_running_loop = loop.events._set_running_loop
_compile_cell = source.compile_cell
_is_coroutine = source.is_coroutine


class _End:
    """How a run has ended, so far."""

    __slots__ = ("cell", "failure", "value")

    def __init__(self, cell: int) -> None:
        self.cell = cell
        self.value: str | None = None
        self.failure: BaseException | None = None


class _Session:
    """The state that one run leaves to the next."""

    def __init__(self) -> None:
        self.main = types.ModuleType("__main__")
        self.namespace = vars(self.main)
        self.context = contextvars.copy_context()
        self.loop = loop.SessionLoop()
        self.unawaited = unawaited.Unawaited()
        self.reserve: io.BufferedReader | None = None

    def run(self, code: str, cell: int, env: dict[str, Any]) -> dict[str, Any]:
        """Executes the code of the run number `cell` and returns the outcome."""
        end = _End(cell)
        try:
            self._begin(code, end, env)
            interrupts.arm()
            self._drive(code, end)
            result = self._conclude(end)
        except BaseException as exc:
            # Interrupted between two steps, or out of memory.
            interrupts.disarm()
            self._fail(end, exc)
            result = self._conclude_briefly(end)
        finally:
            interrupts.disarm()
        end.failure = None  # Frees the frames, and with them the user's objects.
        self._end()
        return result

    def edit(self, question: dict[str, Any], env: dict[str, Any]) -> dict[str, Any]:
        """Answers what a line editor asks of the text `question["text"]`.

        The answer to `question["about"]` is the value, as JSON: `complete`, `names`
        or `spans`.  It is not a run: variables and numbers of runs stay as they are.
        """
        from codeexec import editing

        answer: Any = None
        text = question["text"]
        try:
            interrupts.install()
            _mcp_hooks.begin_run(env, self.namespace)
            interrupts.arm()
            match question["about"]:
                case "complete":
                    answer = editing.is_complete(text)
                case "spans":
                    answer = editing.spans(text)
                case "names":
                    answer = editing.complete(text, self.namespace)
        except BaseException:
            pass  # Interrupted, or something of the user's: there is no answer.
        finally:
            interrupts.disarm()
        self._end()
        return {"outcome": "ok", "exit_code": 0, "value": _dumps(answer)} | _interruption()

    def _begin(self, code: str, end: _End, env: dict[str, Any]) -> None:
        """Puts everything in place that user code relies on."""
        loop.EventLoop.generation += 1
        streams.restore()
        interrupts.install()
        pristine.restore_modules(self.main)
        # Warnings are shown once in a run, not once in a session.
        self.namespace.pop("__warningregistry__", None)
        if self.loop.is_closed():
            self._renew_loop()
        self._keep_reserve()
        source.remember(code, source.cell_name(end.cell))
        _mcp_hooks.begin_run(env, self.namespace)

    def _fail(self, end: _End, exc: BaseException) -> None:
        """Notes an exception of the run; the first one counts."""
        if end.failure is None:
            end.failure = exc
        if errors.is_a(exc, MemoryError):
            self.reserve = None  # From here on, memory is needed for the report.

    def _keep_reserve(self) -> None:
        """Sets memory aside, so that running out of it can be reported.

        The buffer of a file is memory that nothing writes to, so that it costs
        the session no page.  It must not be part of the snapshot, whose objects
        are immortal.
        """
        if self.reserve is None:
            try:
                _BufferedReader(_BytesIO(), 4 * _RESERVE)  # Is there more than that?
                self.reserve = _BufferedReader(_BytesIO(), _RESERVE)
            except MemoryError:
                pass  # This run needs what there is; it may free some.

    def _drive(self, code: str, end: _End) -> None:
        """Executes user code, and ends what it left behind."""
        turn = False
        try:
            self.loop.run_main(self._execute(code, end), self.context)
            turn = True
        except BaseException as exc:
            self._fail(end, exc)  # An exit of another task, or an interrupt in the loop itself.
        try:
            if not self.loop.is_settled():
                self._settle(turn)
            self.loop.report_unretrieved()
            self.unawaited.report(self.namespace)
        except BaseException as exc:
            self._fail(end, exc)
        if not self.loop.is_settled():
            self._renew_loop()

    async def _execute(self, code: str, end: _End) -> None:
        """Executes user code.  Does not raise: `end` has what came of it.

        A coroutine could not raise a StopIteration of the user's as it is.
        """
        try:
            value = None
            _mcp_hooks.enter_run(self.namespace)
            for program in _compile_cell(code, source.cell_name(end.cell)):
                value = _eval(program, self.namespace)
                if _is_coroutine(program):
                    value = await value
            if value is not None:
                _builtins["_"] = value
                self.unawaited.expect(value)
                end.value = _repr(value)
                _mcp_hooks.show_value(value)
        except BaseException as exc:
            self._fail(end, exc)
        finally:
            pristine.restore_builtins()

    def _settle(self, turn: bool) -> None:
        pristine.restore_builtins()
        try:
            cut_off = self.loop.settle(turn=turn)
            if cut_off and not interrupts.seen():
                _note_cut_off(cut_off)
        finally:
            pristine.restore_builtins()

    def _conclude(self, end: _End) -> dict[str, Any]:
        result = self._outcome(end)
        # Finalizers may print, and what they print belongs to this run.  The
        # objects that a run leaves in cycles are mostly young.
        end.failure = None
        if _gc_is_enabled():
            _collect(1)
        streams.flush()
        return result | _interruption()

    def _outcome(self, end: _End) -> dict[str, Any]:
        failure = end.failure
        if failure is None:
            result: dict[str, Any] = {"outcome": "ok", "exit_code": 0}
            if end.value is not None:
                result["value"] = errors.shorten(end.value, _MAX_VALUE)
            return result
        if errors.is_a(failure, SystemExit):
            status, text = errors.exit_status(failure)
            if text:
                streams.note(text)
            result = {"outcome": "exit", "exit_code": status}
            if status:
                result["error"] = errors.describe_exit(failure, end.cell)
            return result
        return {
            "outcome": "exception",
            "exit_code": _FAILED,
            "error": self._describe(failure, end.cell),
        }

    def _describe(self, exc: BaseException, cell: int) -> dict[str, Any]:
        try:
            return errors.describe(exc, cell, _mcp_hooks.explain_name)
        except Exception:
            return errors.describe_briefly(exc, cell)

    def _conclude_briefly(self, end: _End) -> dict[str, Any]:
        self.reserve = None
        self._renew_loop()
        return {
            "outcome": "exception",
            "exit_code": _FAILED,
            "error": errors.describe_briefly(end.failure, end.cell),
        } | _interruption()

    def _renew_loop(self) -> None:
        self.loop.retire()
        self.loop = loop.SessionLoop()

    def _end(self) -> None:
        _set_running_loop(None)
        host.abandon_all()
        try:
            _mcp_hooks.end_run()
        except Exception as exc:
            streams.note(f"codeexec: {exc}")
        streams.flush_own()


def _note_cut_off(calls: list[str]) -> None:
    shown = ", ".join(calls[:_MAX_SHOWN]) + (", ..." if len(calls) > _MAX_SHOWN else "")
    streams.note(
        f"codeexec: the code ended while {len(calls)} of its calls were in flight ({shown}); "
        "they were cancelled: await every task, for example with asyncio.gather()"
    )


def _interruption() -> dict[str, Any]:
    """What an interrupt makes of an outcome, whatever the code made of it."""
    if interrupts.seen():
        return {"outcome": "interrupted", "exit_code": _INTERRUPTED}
    return {}


class _Hooks:
    """What the package `mcp` does around a run; nothing where there is none."""

    def begin_run(self, env: dict[str, Any], namespace: dict[str, Any]) -> None:
        """Defines the names that a run finds defined."""

    def enter_run(self, namespace: dict[str, Any]) -> None:
        """Defines names of the run whose values code of users' makes."""

    def show_value(self, value: Any) -> None:
        """Shows the value of the last expression if it is a picture."""

    def end_run(self) -> None:
        """Drops what only the finished run needed."""

    def explain_name(self, name: str) -> str | None:
        """Why a global name is not defined, if that can be known."""
        return None


_mcp_hooks: Any = _Hooks()
_session: _Session


def prepare() -> None:
    """Gets the interpreter ready to be the snapshot of all sessions."""
    global _mcp_hooks, _session
    for name in _PREIMPORTS:
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # A build without that module, such as one without SQLite.
    try:
        _mcp_hooks = importlib.import_module("mcp._session")
    except ModuleNotFoundError as exc:
        if exc.name not in ("mcp", "mcp._session"):
            raise
    interrupts.install()
    loop.install()
    source.install()
    sandbox.install()
    unawaited.install()
    missing.install()
    sys.argv = [""]
    for folder in ("", missing.PACKAGES):
        if folder not in sys.path:
            sys.path.append(folder)
    streams.restore()
    pristine.remember()
    _warm_up()
    pristine.remember()
    _session = _Session()


def after_fork() -> None:
    """Makes a new session differ from the snapshot in what must differ."""
    random.seed()
    tempfile._name_sequence = tempfile.tempdir = None
    uuid._node = uuid._last_timestamp = None
    logging._startTime = time.time_ns()
    sys.path_importer_cache.clear()
    for name, value in (("HOME", _HOME), ("USER", "sandbox"), ("TMPDIR", "/tmp")):
        os.environ.setdefault(name, value)
    if os.path.isdir(_HOME):
        os.chdir(_HOME)
    streams.restore()


def main(request: bytes) -> None:
    """Executes the run that a request frame describes, and writes the outcome."""
    header = host.read_request(request)
    env = header.get("env") or {}
    if "edit" in header:
        host.write_result(_session.edit(header["edit"], env))
        return
    result = _session.run(header["code"], header["cell"], env)
    try:
        host.write_result(result)
    except (MemoryError, OverflowError):
        # There is no memory for it, or it is larger than the host accepts.
        _session.reserve = None
        host.write_result({key: result[key] for key in ("outcome", "exit_code")})


def _warm_up() -> None:
    """Runs the programs of `_WARM_UP`, in a session of their own."""
    global _session
    _session = _Session()
    for code in _WARM_UP:
        _session.run(code, 0, {})
    _session.loop.retire()
    source.forget(source.cell_name(0))
    _builtins.pop("_", None)
