"""The module `subprocess` of a sandbox that has no processes.

Everything that would start one raises `OSError`.
"""

from typing import Any, NoReturn

from codeexec.refusals import NO_PROCESSES as _NO_PROCESSES

__all__ = [
    "CalledProcessError",
    "CompletedProcess",
    "DEVNULL",
    "PIPE",
    "Popen",
    "STDOUT",
    "SubprocessError",
    "TimeoutExpired",
    "call",
    "check_call",
    "check_output",
    "getoutput",
    "getstatusoutput",
    "list2cmdline",
    "run",
]

PIPE = -1
STDOUT = -2
DEVNULL = -3


class SubprocessError(Exception):
    """Base of this module's exceptions."""


class CalledProcessError(SubprocessError):
    """A process has ended with an exit status other than zero."""

    def __init__(self, returncode: int, cmd: Any, output: Any = None, stderr: Any = None) -> None:
        self.returncode = returncode
        self.cmd = cmd
        self.output = output
        self.stderr = stderr

    def __str__(self) -> str:
        if self.returncode and self.returncode < 0:
            return f"Command {self.cmd!r} died with signal {-self.returncode}."
        return f"Command {self.cmd!r} returned non-zero exit status {self.returncode}."

    @property
    def stdout(self) -> Any:
        """The same as `output`."""
        return self.output

    @stdout.setter
    def stdout(self, value: Any) -> None:
        self.output = value


class TimeoutExpired(SubprocessError):
    """A process has not ended in time."""

    def __init__(self, cmd: Any, timeout: float, output: Any = None, stderr: Any = None) -> None:
        self.cmd = cmd
        self.timeout = timeout
        self.output = output
        self.stderr = stderr

    def __str__(self) -> str:
        return f"Command {self.cmd!r} timed out after {self.timeout} seconds"

    @property
    def stdout(self) -> Any:
        """The same as `output`."""
        return self.output

    @stdout.setter
    def stdout(self, value: Any) -> None:
        self.output = value


class CompletedProcess:
    """A process that has ended."""

    def __init__(self, args: Any, returncode: int, stdout: Any = None, stderr: Any = None) -> None:
        self.args = args
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr

    def __repr__(self) -> str:
        parts = [f"args={self.args!r}", f"returncode={self.returncode!r}"]
        if self.stdout is not None:
            parts.append(f"stdout={self.stdout!r}")
        if self.stderr is not None:
            parts.append(f"stderr={self.stderr!r}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def check_returncode(self) -> None:
        """Raises `CalledProcessError` if the exit status is not zero."""
        if self.returncode:
            raise CalledProcessError(self.returncode, self.args, self.stdout, self.stderr)


class Popen:
    """A process, which cannot be started: raises `OSError`."""

    def __init__(self, args: Any, *rest: Any, **kwargs: Any) -> None:
        raise OSError(_NO_PROCESSES)

    def __class_getitem__(cls, item: Any) -> type:
        return cls


def run(*popenargs: Any, **kwargs: Any) -> NoReturn:
    """Would run a command; raises `OSError`."""
    raise OSError(_NO_PROCESSES)


def call(*popenargs: Any, **kwargs: Any) -> NoReturn:
    """Would run a command; raises `OSError`."""
    raise OSError(_NO_PROCESSES)


def check_call(*popenargs: Any, **kwargs: Any) -> NoReturn:
    """Would run a command; raises `OSError`."""
    raise OSError(_NO_PROCESSES)


def check_output(*popenargs: Any, **kwargs: Any) -> NoReturn:
    """Would run a command; raises `OSError`."""
    raise OSError(_NO_PROCESSES)


def getoutput(cmd: str, **kwargs: Any) -> NoReturn:
    """Would run a command in a shell; raises `OSError`."""
    raise OSError(_NO_PROCESSES)


def getstatusoutput(cmd: str, **kwargs: Any) -> NoReturn:
    """Would run a command in a shell; raises `OSError`."""
    raise OSError(_NO_PROCESSES)


def list2cmdline(seq: Any) -> str:
    """Quotes arguments by the rules of Windows."""
    return " ".join(map(_quote, seq))


def _quote(arg: str) -> str:
    if arg and not any(c in arg for c in ' \t"'):
        return arg
    quoted = []
    backslashes = 0
    for char in arg:
        if char == "\\":
            backslashes += 1
            continue
        # Backslashes are only special in front of a quote.
        quoted.append("\\" * (2 * backslashes + 1 if char == '"' else backslashes) + char)
        backslashes = 0
    text = "".join(quoted)
    tail = "\\" * backslashes
    if arg and " " not in arg and "\t" not in arg:
        return text + tail
    return f'"{text}{tail * 2}"'


def _args_from_interpreter_flags() -> list[str]:
    # `multiprocessing` imports it.
    return []
