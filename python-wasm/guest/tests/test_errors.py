"""Uncaught exceptions, and the ways a run can exit."""

import unittest

from tests.sandbox import Left, Session, run_in_fork


class Tracebacks(unittest.TestCase):
    def traceback(self, code: str) -> str:
        return Session().run(code).error["traceback"]

    def test_shows_the_users_frames_only(self):
        self.assertEqual(
            "Traceback (most recent call last):\n"
            '  File "<cell 1>", line 3, in <module>\n'
            "    f(0)\n"
            "    ~^^^\n"
            '  File "<cell 1>", line 2, in f\n'
            "    return 1 / x\n"
            "           ~~^~~\n"
            "ZeroDivisionError: division by zero\n",
            self.traceback("def f(x):\n    return 1 / x\nf(0)"),
        )

    def test_hides_the_loop(self):
        code = "import asyncio\nasync def main():\n    raise ValueError('x')\n"
        for call in (
            "asyncio.run(main())",
            "await main()",
            "await asyncio.gather(main())",
            "asyncio.get_event_loop().run_until_complete(main())",
            "with asyncio.Runner() as r: r.run(main())",
        ):
            with self.subTest(call):
                text = self.traceback(code + call)
                self.assertEqual(2, text.count('File "<cell 1>"'), text)
                for noise in ("codeexec", "base_events", "runners", "events.py"):
                    self.assertNotIn(noise, text)

    def test_syntax_error_has_line_and_caret(self):
        result = Session().run("x = 1\ny = (1 +\n")
        self.assertEqual("SyntaxError", result.error["type"])
        self.assertEqual(2, result.error["line"])
        self.assertEqual(
            '  File "<cell 1>", line 2\n    y = (1 +\n        ^\n'
            "SyntaxError: '(' was never closed\n",
            result.error["traceback"],
        )

    def test_syntax_error_of_code_made_at_run_time(self):
        result = Session().run("x = 1\neval('1 +')")
        self.assertEqual(2, result.error["line"])
        self.assertIn('File "<string>", line 1', result.error["traceback"])

    def test_sources_that_cannot_be_compiled(self):
        for code in ("\0", "x = '\ud800'", "(" * 10_000, "return 1", "yield 1", "x = 1\n  y = 2"):
            with self.subTest(code[:10]):
                result = Session().run(code)
                self.assertEqual("exception", result.outcome)
                self.assertTrue(result.error["traceback"])

    def test_suggestions(self):
        tests = [
            ("pritn(1)", "Did you mean: 'print'?"),
            ("json.dumps(1)", "forget to import 'json'"),
            ("import json\njson.loadss", "Did you mean: 'loads'?"),
        ]
        for code, hint in tests:
            with self.subTest(code):
                error = Session().run(code).error
                self.assertIn(hint, error["message"])
                self.assertIn(hint, error["traceback"])

    def test_chains(self):
        text = self.traceback(
            "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError('k') from e"
        )
        self.assertIn("direct cause", text)
        self.assertIn("ZeroDivisionError", text)
        text = self.traceback("try:\n    1 / 0\nexcept ZeroDivisionError:\n    {}['k']")
        self.assertIn("During handling", text)
        text = self.traceback(
            "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('k') from None"
        )
        self.assertNotIn("ZeroDivisionError", text)

    def test_groups_and_notes(self):
        code = (
            "import asyncio\nasync def f(n): raise ValueError(n)\n"
            "async with asyncio.TaskGroup() as g:\n    g.create_task(f(1)); g.create_task(f(2))"
        )
        result = Session().run(code)
        self.assertEqual("ExceptionGroup", result.error["type"])
        self.assertIn("Exception Group Traceback", result.error["traceback"])
        self.assertEqual(2, result.error["traceback"].count("| ValueError: "))
        self.assertIn("note!", self.traceback("e = ValueError(1)\ne.add_note('note!')\nraise e"))

    def test_line_and_cell_of_the_innermost_user_frame(self):
        session = Session()
        session.run("\n\ndef f():\n    import json\n    json.loads('{')")
        error = session.run("f()").error
        self.assertEqual((5, 1), (error["line"], error["cell"]))
        self.assertEqual("JSONDecodeError", error["type"])
        error = session.run("x = 1\nint('x')").error
        self.assertEqual((2, None), (error["line"], error.get("cell")))

    def test_stop_iteration_is_shown_as_it_is(self):
        self.assertEqual("StopIteration", Session().run("next(iter([]))").error["type"])

    def test_deep_recursion(self):
        result = Session().run("def f(): f()\nf()")
        self.assertEqual("RecursionError", result.error["type"])
        self.assertIn("more times", result.error["traceback"])
        result = Session().run("def f():\n    g()\ndef g():\n    f()\nf()")
        self.assertIn("frames left out", result.error["traceback"])
        self.assertTrue(
            result.error["traceback"].endswith("RecursionError: maximum recursion depth exceeded\n")
        )

    def test_hostile_exceptions(self):
        tests = [
            "class E(Exception):\n    def __str__(self): raise KeyError\nraise E",
            "class E(Exception):\n    __cause__ = 5\nraise E",
            "class M(type):\n    def __getattribute__(c, n): raise KeyError\n"
            "class E(Exception, metaclass=M): pass\nraise E",
            "class E(Exception):\n    def __getattribute__(s, n): raise KeyError\nraise E",
            "class E(BaseException):\n    def __str__(self): raise SystemExit(3)\nraise E",
            "raise ValueError('x' * 10_000_000)",
            "raise type('É\\n', (Exception,), {})(5)",
        ]
        for code in tests:
            with self.subTest(code):
                result = Session().run(code)
                self.assertEqual("exception", result.outcome)
                self.assertLess(
                    len(result.error["traceback"]) + len(result.error["message"]), 100_000
                )

    def test_name_of_a_server_is_explained(self):
        result = Session().run(
            "await mcp_githb.x()",
            servers=[{"name": "github", "alias": "github", "description": ""}],
        )
        self.assertEqual("NameError", result.error["type"])
        self.assertIn("github", result.error["traceback"].partition("NameError")[2])

    def test_no_guess_beside_an_explanation(self):
        tests = [
            ("call_tool('x')", "name 'call_tool' is not defined", "Write runtime.call_tool."),
            (
                "githob = 1\ngithub.x()",
                "name 'github' is not defined",
                "The MCP server 'github' is mcp_github.",
            ),
            ("save_tol(1)", "name 'save_tol' is not defined. Did you mean: 'save_tool'?", None),
        ]
        for code, message, note in tests:
            with self.subTest(code):
                result = Session().run(
                    code, servers=[{"name": "github", "alias": "github", "description": ""}]
                )
                self.assertEqual(message, result.error["message"])
                lines = [f"NameError: {message}", *([note] if note else [])]
                self.assertEqual(lines, result.error["traceback"].splitlines()[-len(lines) :])


class Exits(unittest.TestCase):
    def test_exit_codes(self):
        tests = [
            ("import sys\nsys.exit()", 0, ""),
            ("exit()", 0, ""),
            ("quit(4)", 4, ""),
            ("raise SystemExit", 0, ""),
            ("raise SystemExit(None)", 0, ""),
            ("raise SystemExit(3)", 3, ""),
            ("raise SystemExit(True)", 1, ""),
            ("raise SystemExit(256)", 0, ""),
            ("raise SystemExit(-1)", 255, ""),
            ("raise SystemExit(10**30)", 255, ""),
            ("raise SystemExit('bye')", 1, "bye\n"),
            ("raise SystemExit(1, 2)", 1, "(1, 2)\n"),
            ("class E(SystemExit): pass\nraise E(7)", 7, ""),
            ("def f():\n    def g(): exit(5)\n    g()\nf()", 5, ""),
            ("import asyncio\nasync def f(): exit(6)\nasyncio.run(f())", 6, ""),
            ("import asyncio\nasync def f(): exit(6)\nawait f()", 6, ""),
            (
                "import asyncio\nasync def f(): exit(8)\nt = asyncio.create_task(f())\n"
                "await asyncio.sleep(5)",
                8,
                "",
            ),
            (
                "import asyncio\nasync def f(): exit(9)\n"
                "await asyncio.gather(f(), asyncio.sleep(5))",
                9,
                "",
            ),
            (
                "import asyncio\nasync def f(): exit(2)\n"
                "async with asyncio.TaskGroup() as g: g.create_task(f())",
                2,
                "",
            ),
            ("import asyncio\nawait asyncio.to_thread(exit, 3)", 3, ""),
        ]
        for code, status, stderr in tests:
            with self.subTest(code):
                session = Session()
                session.run("kept = 1")
                result = session.run(code)
                self.assertEqual(
                    ("exit", status, stderr), (result.outcome, result.exit_code, result.stderr)
                )
                self.assertEqual("SystemExit" if status else None, result.error.get("type"))
                self.assertEqual("1", session.run("kept").value)

    def test_output_before_an_exit_is_kept(self):
        result = Session().run("import sys\nsys.stdout.write('half')\nsys.exit(1)")
        self.assertEqual("half", result.stdout)
        self.assertEqual(3, result.error["line"])

    def test_exit_can_be_caught(self):
        self.assertEqual("ok", Session().run("try:\n    exit(1)\nexcept SystemExit: pass").outcome)

    def test_leaving_the_process_leaves_the_instance(self):
        for code, status in [
            ("os._exit(3)", 3),
            ("os.abort()", 134),
            ("__import__('posix')._exit(5)", 5),
        ]:
            with self.subTest(code):
                with self.assertRaises(Left) as left:
                    run_in_fork(f"import os\n{code}")
                self.assertEqual(status, left.exception.status)


if __name__ == "__main__":
    unittest.main()
