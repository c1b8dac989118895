"""The guest's half of codeexec: how a run behaves, and how it reaches the host.

`run` is what the interpreter's glue calls: it executes the code of one run in
the session's `__main__` and answers with the outcome.  `host` makes calls to
the host, `loop` is the asyncio event loop that waits for them, and `sandbox`
turns what a sandbox cannot do into errors that say what to do instead.

Every module here keeps private references to whatever it needs at run time:
user code may delete builtins or patch any module, and the run must still end
with an answer.
"""

__all__ = ["Interrupted"]


class Interrupted(KeyboardInterrupt):
    """The run was stopped from outside: its time was over, or it was cancelled.

    It derives from `KeyboardInterrupt`, so ``except Exception`` lets it pass.
    """

    __module__ = "codeexec"
