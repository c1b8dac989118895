"""Interrupts: runs that are stopped from outside."""

import time
import unittest

from tests.sandbox import Delayed, Session, host


class Interrupts(unittest.TestCase):
    def setUp(self):
        host.handlers["slow"] = lambda params: Delayed(60, None)

    def test_code_is_interrupted_and_the_session_lives(self):
        tests = [
            ("while True: pass", 2),
            ("import time\ntime.sleep(60)", 3),
            ("import asyncio\nawait asyncio.sleep(60)", 3),
            ("import asyncio\nasyncio.run(asyncio.sleep(60))", 3),
            (
                "import asyncio\nasync def f():\n    while True: await asyncio.sleep(0)\n"
                "await asyncio.gather(f(), f())",
                None,
            ),
            (
                "import asyncio\nasync def f():\n    while True: pass\n"
                "t = asyncio.create_task(f())\nawait asyncio.sleep(5)",
                4,
            ),
            ("import asyncio\nawait asyncio.gather(asyncio.sleep(60), asyncio.sleep(60))", 3),
            (
                "import asyncio\n"
                "async with asyncio.TaskGroup() as g: g.create_task(asyncio.sleep(60))",
                3,
            ),
            (
                "import asyncio\nasyncio.get_running_loop().call_later(60, print)\n"
                "await asyncio.Event().wait()",
                4,
            ),
            ("from codeexec.host import call\ncall('slow', {})", 3),
            ("from codeexec.host import call_async\nawait call_async('slow', {})", 3),
            (
                "from codeexec.host import call_async\nimport asyncio\n"
                "asyncio.run(call_async('slow', {}))",
                4,
            ),
            ("import asyncio, time\nawait asyncio.to_thread(time.sleep, 60)", 3),
            (
                "from concurrent.futures import ThreadPoolExecutor\nimport time\n"
                "ThreadPoolExecutor().submit(time.sleep, 60)",
                4,
            ),
            ("try:\n    while True: pass\nexcept Exception:\n    pass", 3),
            ("class C:\n    def __repr__(self):\n        while True: pass\nC()", 4),
            (
                "class C(Exception):\n    def __str__(self):\n        while True: pass\nraise C",
                None,
            ),
            (
                "class C:\n    def __del__(self):\n        while True: pass\nc = C(); del c\n"
                "while True: pass",
                None,
            ),
            (
                "import sys\nclass S:\n    def write(self, s): pass\n    def flush(self):\n"
                "        while True: pass\nsys.stdout = S()",
                None,
            ),
            (
                "import asyncio\nasync def f():\n    while True: pass\n"
                "t = asyncio.create_task(f())",
                None,
            ),
            ("import threading\nthreading.Event().wait(60)", 3),
        ]
        for code, line in tests:
            with self.subTest(code):
                session = Session()
                session.run("kept = [1, 2]")
                start = time.monotonic()
                result = session.run("x = 0\n" + code, interrupt_after=0.1)
                self.assertLess(time.monotonic() - start, 5)
                self.assertEqual("interrupted", result.outcome, result)
                if line is not None:
                    self.assertEqual(line, result.error["line"], result)
                    self.assertEqual("Interrupted", result.error["type"])
                    self.assertIn('File "<cell 2>"', result.error["traceback"])
                    self.assertNotIn("frozen codeexec", result.error["traceback"])
                result = session.run(
                    "import asyncio\nawait asyncio.sleep(0.001)\nprint('fine')\nkept"
                )
                self.assertEqual(
                    ("ok", "[1, 2]", "fine\n", ""),
                    (result.outcome, result.value, result.stdout, result.stderr),
                )

    def test_output_before_the_interrupt_is_kept(self):
        result = Session().run("print('before')\nwhile True: pass", interrupt_after=0.05)
        self.assertEqual("before\n", result.stdout)

    def test_cleanup_runs_where_the_code_waits(self):
        result = Session().run(
            "import asyncio\ntry:\n    await asyncio.sleep(60)\nfinally:\n    print('cleanup')",
            interrupt_after=0.05,
        )
        self.assertEqual(("interrupted", "cleanup\n"), (result.outcome, result.stdout))

    def test_code_that_catches_it_is_still_interrupted(self):
        result = Session().run(
            "try:\n    while True: pass\nexcept KeyboardInterrupt as e:\n    print('caught')\n5",
            interrupt_after=0.05,
        )
        self.assertEqual(("interrupted", "caught\n"), (result.outcome, result.stdout))

    def test_it_is_raised_again_if_swallowed(self):
        result = Session().run(
            "n = 0\nwhile n < 3:\n    try:\n        while True: pass\n"
            "    except BaseException: n += 1\nprint(n)",
            interrupt_after=0.05,
        )
        self.assertEqual(("interrupted", "3\n"), (result.outcome, result.stdout))

    def test_nothing_is_raised_between_runs(self):
        session = Session()
        for _ in range(20):
            result = session.run("x = sum(range(1000))", interrupt_after=0.0)
            self.assertIn(result.outcome, ("ok", "interrupted"))
        self.assertEqual("499500", session.run("sum(range(1000))").value)


if __name__ == "__main__":
    unittest.main()
