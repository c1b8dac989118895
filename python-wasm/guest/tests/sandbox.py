"""A stand-in for the sandbox: the guest's modules in an ordinary CPython.

Importing this module installs a fake `_codeexec`, lets the modules of the
folder `overlay` take the place of the standard library's, names the code of
the guest's modules as if they were frozen, and calls `prepare`.
"""

import heapq
import importlib.abc
import importlib.util
import json
import os
import signal
import sys
import tempfile
import time
import types
import warnings
from _thread import start_new_thread
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Bound here, for the tests in which the code of a run patches `json`.
_encode = json.JSONEncoder().encode
_decode = json.JSONDecoder().decode

# As an interpreter without options has them.
_filters = [
    ("default", None, DeprecationWarning, "__main__", 0),
    *(
        ("ignore", None, kind, None, 0)
        for kind in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
    ),
]

GUEST = Path(__file__).resolve().parent.parent
STDLIB = Path(os.__file__).parent


class _GuestFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the guest's modules first, with the file names of frozen ones."""

    def find_spec(self, name, path=None, target=None):
        roots = [GUEST / "overlay"]
        if name.partition(".")[0] in ("codeexec", "mcp"):
            roots.append(GUEST)
        elif name.partition(".")[0] == "asyncio":
            roots.append(STDLIB)  # For tracebacks as they are in the sandbox.
        for root in roots:
            base = root.joinpath(*name.split("."))
            for file in (base / "__init__.py", base.with_suffix(".py")):
                if file.is_file():
                    package = file.name == "__init__.py"
                    spec = importlib.util.spec_from_loader(name, self, is_package=package)
                    spec.loader_state = file
                    return spec
        return None

    def exec_module(self, module):
        spec = module.__spec__
        source = spec.loader_state.read_text()
        exec(compile(source, f"<frozen {spec.name}>", "exec", dont_inherit=True), vars(module))


class Left(Exception):
    """A process ended by `_codeexec.exit`, with `status`."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the process ended with status {status}")
        self.status = status


class Host:
    """The host's side: answers calls, after a delay if a handler asks for one."""

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[dict], Any]] = {}
        self.calls: list[tuple[str, dict]] = []
        self.cancelled: list[int] = []
        self.result: bytes | None = None
        self.ended = False
        self._answers: dict[int, bytes] = {}
        self._due: list[tuple[float, int]] = []
        self._number = 0

    def submit(self, frame: bytes) -> int:
        header, attachments = unpack(frame)
        op, params = header["op"], header["params"]
        self.calls.append((op, params))
        self._number += 1
        delay = 0.0
        try:
            if op not in self.handlers:
                raise Failure("Unsupported", f"unknown operation {op}")
            value = self.handlers[op](params)
            if isinstance(value, Delayed):
                delay, value = value.seconds, value.value
            answer = {"value": value}
        except Failure as failure:
            answer = {
                "error": {"kind": failure.kind, "message": str(failure), "data": failure.data}
            }
        self._answers[self._number] = pack(answer, attachments)
        heapq.heappush(self._due, (time.monotonic() + delay, self._number))
        return self._number

    def wait(self, number: int, timeout: float | None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        if number == 0 and not self._due and timeout is None:
            return -6
        while True:
            now = time.monotonic()
            for due, candidate in sorted(self._due):
                if due <= now and number in (0, candidate):
                    self._due.remove((due, candidate))
                    return candidate
            if self.ended or (deadline is not None and now >= deadline):
                return 0
            time.sleep(0.001)

    def read(self, number: int) -> bytes:
        return self._answers.pop(number)

    def cancel(self, number: int) -> None:
        self.cancelled.append(number)
        self._answers.pop(number, None)
        self._due = [entry for entry in self._due if entry[1] != number]

    def write(self, kind: int, data: bytes) -> None:
        self.result = data

    def exit(self, code: int) -> None:
        native_exit(code)


@dataclass
class Delayed:
    """An answer that takes `seconds`."""

    seconds: float
    value: Any


class Failure(Exception):
    """An error that a handler answers with."""

    def __init__(self, kind: str, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.data = data


@dataclass
class Result:
    """What a run gave."""

    outcome: str = ""
    exit_code: int = 0
    value: str | None = None
    error: dict[str, Any] = field(default_factory=dict)
    reset: str | None = None
    stdout: str = ""
    stderr: str = ""


def run_in_fork(*codes: str) -> list[Result]:
    """Runs code in a session of a process of its own, which it may ruin."""
    with tempfile.TemporaryFile() as results:
        child = os.fork()
        if child == 0:
            session = Session()
            status = 1
            try:
                data = [vars(session.run(code)) for code in codes]
                results.write(_encode(data).encode())
                results.flush()
                status = 0
            finally:
                native_exit(status)
        _, status = os.waitpid(child, 0)
        if status:
            raise Left(os.waitstatus_to_exitcode(status))
        results.seek(0)
        return [Result(**data) for data in json.load(results)]


def pack(header: Any, attachments: list[bytes] = ()) -> bytes:
    data = _encode(header).encode()
    frame = len(data).to_bytes(4, "little") + data
    for attachment in attachments:
        frame += len(attachment).to_bytes(4, "little") + attachment
    return frame


def unpack(frame: bytes) -> tuple[Any, list[bytes]]:
    size = int.from_bytes(frame[:4], "little")
    header = _decode(frame[4 : 4 + size].decode())
    attachments, rest = [], frame[4 + size :]
    while rest:
        size = int.from_bytes(rest[:4], "little")
        attachments.append(rest[4 : 4 + size])
        rest = rest[4 + size :]
    return header, attachments


host = Host()


class Session:
    """Runs code in one session, and counts its cells."""

    def __init__(self) -> None:
        self.cell = 0
        warnings.filters[:] = _filters  # unittest has set its own.
        warnings._filters_mutated()
        guest._session = guest._Session()

    def run(self, code: str, *, interrupt_after: float | None = None, **env: Any) -> Result:
        self.cell += 1
        request = pack({"code": code, "cell": self.cell, "env": env})
        host.result = None
        host.ended = False
        with _captured() as output, _interrupts(interrupt_after):
            guest.main(request)
        result = Result(**_decode(host.result.decode()))
        result.stdout, result.stderr = output
        return result


@contextmanager
def _captured() -> Iterator[list[str]]:
    """Redirects descriptors 0 to 2; the list gets what was written to 1 and 2."""
    output: list[str] = []
    saved = [os.dup(fd) for fd in range(3)]
    files = [open(os.devnull, "rb"), tempfile.TemporaryFile(), tempfile.TemporaryFile()]
    try:
        for fd, file in enumerate(files):
            os.dup2(file.fileno(), fd)
        yield output
    finally:
        for fd, copy in enumerate(saved):
            os.dup2(copy, fd)
            native_close(copy)
        for file in files[1:]:
            file.seek(0)
            output.append(file.read().decode())
        for file in files:
            file.close()


@contextmanager
def _interrupts(after: float | None) -> Iterator[None]:
    """Makes SIGINT pending after some seconds, and every 8 ms from then on."""
    if after is None:
        yield
        return
    done = []
    main_thread = threading.get_ident()

    def interrupt() -> None:
        time.sleep(after)
        host.ended = True
        while not done:
            signal.pthread_kill(main_thread, signal.SIGINT)
            time.sleep(0.008)

    native_start(interrupt, ())
    try:
        yield
    finally:
        done.append(True)


def _install() -> types.ModuleType:
    fake = types.ModuleType("_codeexec")
    for name in ("submit", "wait", "read", "cancel", "write", "exit"):
        setattr(fake, name, getattr(host, name))
    fake.chmod, fake.umask = os.chmod, os.umask
    sys.modules["_codeexec"] = fake
    for name in [*sys.modules]:
        top = name.split(".")[0]
        if top in (
            "asyncio",
            "socket",
            "select",
            "selectors",
            "ssl",
            "subprocess",
            "multiprocessing",
            "concurrent",
        ):
            del sys.modules[name]
    sys.meta_path.insert(0, _GuestFinder())
    import codeexec.run

    wakeup = signal.set_wakeup_fd
    path = [*sys.path]
    argv = [*sys.argv]
    streams = sys.stdin, sys.stdout, sys.stderr
    codeexec.run.prepare()
    signal.set_wakeup_fd = wakeup  # asyncio calls it after a fork, which the sandbox has not.
    sys.path[:] = path + sys.path[-2:]
    sys.argv = argv
    sys.stdin, sys.stdout, sys.stderr = streams
    return codeexec.run


native_start = start_new_thread
native_close = os.close
native_exit = os._exit
guest = _install()
import threading  # noqa: E402  (after the guest has patched it)
