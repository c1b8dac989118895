"""What a run gives, and what it leaves to the next one."""

import unittest

from tests.sandbox import Session, run_in_fork


class Value(unittest.TestCase):
    def test_value_of_the_last_expression(self):
        tests = [
            ("1 + 1", "2"),
            ("x = 3\nx", "3"),
            ("x = 3; x", "3"),
            ("x = 3", None),
            ("None", None),
            ("print", "<built-in function print>"),
            ("'a\\'b'", '"a\'b"'),
            ("import asyncio\nawait asyncio.sleep(0, 'slept')", "'slept'"),
            ("async def f():\n    return 7\nawait f()", "7"),
            ("[\n  1,\n  2,\n]", "[1, 2]"),
            ('"""doc"""', "'doc'"),
            ("if True:\n    5", None),
            ("", None),
            ("# nothing", None),
            ("\ufeff1", "1"),
            ("1\r\n2\r\n", "2"),
        ]
        for code, value in tests:
            with self.subTest(code):
                result = Session().run(code)
                self.assertEqual(("ok", value), (result.outcome, result.value))

    def test_value_of_a_long_source(self):
        long = "".join(f"name_{i} = {i}\n" for i in range(300))
        tests = [
            ("name_7", "7"),
            ("name_7  # comment", "7"),
            ("name_1; name_2", "2"),
            ("x = 1", None),
            ("max(\n    1,\n    2,\n)", "2"),
            ("(1 +\n1)", "2"),
            ("1 + \\\nname_2", "3"),
            ('"""\nx = 1\n"""', "'\\nx = 1\\n'"),
            ('s = """\nname_1\n"""', None),
            ("def f():\n    return 1\n\nf()", "1"),
            ("if name_1:\n    name_2\nelse:\n    name_3", None),
            ("@print\ndef f(): pass", None),
            ("import asyncio\nawait asyncio.sleep(0, 4)", "4"),
            ("name_5\n\n# the end\n    # indented\n", "5"),
        ]
        for code, value in tests:
            with self.subTest(code):
                result = Session().run(long + code)
                self.assertEqual(("ok", value), (result.outcome, result.value))

    def test_lines_of_a_long_source(self):
        long = "".join(f"name_{i} = {i}\n" for i in range(300))
        for code, line in [
            ("1 / 0", 301),
            ("x = 1\n1 / 0", 302),
            ("1 / 0\nx = 1", 301),
            ("1 +", 301),
        ]:
            with self.subTest(code):
                self.assertEqual(line, Session().run(long + code).error["line"])

    def test_underscore_holds_the_value(self):
        session = Session()
        session.run("40 + 2")
        self.assertEqual("43", session.run("_ + 1").value)

    def test_repr_that_raises_is_the_users_error(self):
        result = Session().run("class C:\n    def __repr__(self):\n        return 1 / 0\nC()")
        self.assertEqual("exception", result.outcome)
        self.assertEqual("ZeroDivisionError", result.error["type"])
        self.assertEqual(3, result.error["line"])

    def test_huge_repr_keeps_head_and_tail(self):
        value = Session().run("'x' * 3_000_000").value
        self.assertLess(len(value), 1_100_000)
        self.assertIn("characters left out", value)

    def test_lone_surrogates(self):
        result = Session().run(r"print('\ud800'); '\udfff'")
        self.assertEqual("\\ud800\n", result.stdout)
        self.assertEqual(r"'\udfff'", result.value)


class Namespace(unittest.TestCase):
    def test_main_is_a_module(self):
        result = Session().run(
            "import sys, pickle\n"
            "class C: pass\n"
            "print(__name__, sys.modules['__main__'].C is C, type(pickle.loads(pickle.dumps(C()))))"
        )
        self.assertEqual("__main__ True <class '__main__.C'>\n", result.stdout)

    def test_session_keeps_what_runs_define(self):
        session = Session()
        session.run("import json as j\nx = [1]\ndef f(): return x\nclass C: y = 5")
        self.assertEqual("([1], 5, '[1]')", session.run("f(), C().y, j.dumps(x)").value)

    def test_context_variables_and_decimal_precision_are_kept(self):
        session = Session()
        session.run(
            "import contextvars, decimal\nv = contextvars.ContextVar('v')\nv.set(3)\n"
            "decimal.getcontext().prec = 5"
        )
        self.assertEqual(
            "(3, Decimal('0.33333'))", session.run("v.get(), decimal.Decimal(1) / 3").value
        )

    def test_dataclasses_and_type_hints(self):
        code = (
            "from __future__ import annotations\nfrom dataclasses import dataclass\nimport typing\n"
            "@dataclass\nclass P:\n    x: int\n    y: list[P] | None = None\n"
            "typing.get_type_hints(P)['x'], P(1)"
        )
        self.assertEqual("(<class 'int'>, P(x=1, y=None))", Session().run(code).value)

    def test_every_statement_of_the_language(self):
        code = """
import asyncio, contextlib
@contextlib.asynccontextmanager
async def cm():
    yield 1
async def gen():
    for i in range(3):
        yield i
async with cm() as a, cm() as b:
    pass
async for i in gen():
    pass
squares = [j * j async for j in gen()]
match (n := len(squares)):
    case 3 if n:
        matched = True
type Alias[T] = list[T]
def g[T](x: T) -> T:
    global made
    made = x
    return x
del a
try:
    raise ExceptionGroup("g", [ValueError(1)])
except* ValueError as group:
    caught = group.exceptions
lambda: (yield)
(i, squares, matched, g(5), made, len(caught))
"""
        self.assertEqual("(2, [0, 1, 4], True, 5, 5, 1)", Session().run(code).value)


class Source(unittest.TestCase):
    def test_inspect_finds_functions_and_classes(self):
        session = Session()
        session.run("import inspect\ndef f():\n    return 1\nclass A:\n    x = 1\n")
        session.run(
            "class A2:\n    pass\n\nimport dataclasses\n@dataclasses.dataclass\nclass D:\n"
            "    x: int\n"
        )
        self.assertEqual(
            "def f():\n    return 1\n", eval(session.run("inspect.getsource(f)").value)
        )
        self.assertEqual("class A:\n    x = 1\n", eval(session.run("inspect.getsource(A)").value))
        self.assertEqual(
            "@dataclasses.dataclass\nclass D:\n    x: int\n",
            eval(session.run("inspect.getsource(D)").value),
        )

    def test_newest_definition_of_a_class_wins(self):
        session = Session()
        session.run("import inspect\nclass A:\n    x = 1\n")
        session.run("import inspect\nclass A:\n    x = 2\n")
        self.assertIn("x = 2", session.run("inspect.getsource(A)").value)

    def test_classes_of_libraries_are_still_found(self):
        self.assertIn(
            "json", Session().run("import inspect, json\ninspect.getfile(json.JSONDecoder)").value
        )

    def test_memory_of_sources_is_bounded(self):
        import linecache

        session = Session()
        for _ in range(6):
            session.run("x = 1  # " + "y" * 1_000_000)
        kept = [name for name in linecache.cache if name.startswith("<cell ")]
        self.assertLessEqual(len(kept), 5)
        self.assertIn("<cell 6>", kept)


class Streams(unittest.TestCase):
    def test_output_of_both_streams(self):
        result = Session().run(
            "import sys\nprint('a'); sys.stdout.write('b'); print('c', file=sys.stderr)"
        )
        self.assertEqual(("a\nb", "c\n"), (result.stdout, result.stderr))

    def test_standard_input_is_empty(self):
        self.assertEqual("''", Session().run("import sys\nsys.stdin.read()").value)
        result = Session().run("input('name? ')")
        self.assertEqual("EOFError", result.error["type"])
        self.assertEqual("name? ", result.stdout)

    def test_breakpoint_is_a_clear_error(self):
        result = Session().run("breakpoint()")
        self.assertEqual("RuntimeError", result.error["type"])
        self.assertIn("no terminal", result.error["message"])

    def test_help_without_a_pager(self):
        result = Session().run("help(len)")
        self.assertIn("Return the number of items in a container.", result.stdout)
        self.assertEqual("ok", Session().run("help()").outcome)

    def test_builtins_of_the_site_module(self):
        result = Session().run("print(exit, quit); copyright; print(copyright)")
        self.assertIn("Python Software Foundation", result.stdout)

    def test_streams_are_whole_again_in_the_next_run(self):
        tests = [
            "import sys\nsys.stdout.close()",
            "import sys, io\nsys.stdout = io.StringIO()",
            "import sys\nsys.stdout = None",
            "import sys\ndel sys.stdout, sys.stderr, sys.stdin",
            "import sys\nsys.stdout.detach()",
            "import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='latin-1')",
            "import sys\n"
            "sys.stdout.reconfigure(encoding='ascii', errors='strict', line_buffering=False)",
            "import os\nos.close(1)",
            "import os, sys\n"
            "with os.fdopen(sys.stdout.fileno(), 'w', closefd=False) as f: f.write('x')",
            "import sys, contextlib, io\ncontextlib.redirect_stdout(io.StringIO()).__enter__()",
            "import sys\nclass S:\n    def write(self, s): raise ValueError\n"
            "    flush = write\nsys.stdout = S()",
            "import sys\nsys.stdin.close()",
        ]
        for code in tests:
            with self.subTest(code):
                session = Session()
                self.assertEqual("ok", session.run(code).outcome)
                result = session.run(
                    "import sys\nprint('é', file=sys.stderr)\nprint('è')\nsys.stdin.read()"
                )
                self.assertEqual(("è\n", "é\n"), (result.stdout, result.stderr))
                self.assertEqual("''", result.value)

    def test_output_in_a_left_replacement_is_flushed(self):
        result = Session().run(
            "import sys, os\nsys.stdout = os.fdopen(1, 'w', closefd=False)\nprint('late')"
        )
        self.assertEqual("late\n", result.stdout)

    def test_logging_handler_of_an_earlier_run_still_writes(self):
        session = Session()
        session.run(
            "import logging\nlogging.basicConfig(format='%(message)s', force=True)\n"
            "logging.warning('one')"
        )
        self.assertEqual("two\n", session.run("logging.warning('two')").stderr)
        session.run("logging.root.handlers.clear()")


class Warnings(unittest.TestCase):
    def test_warning_shows_the_users_line_in_every_run(self):
        session = Session()
        code = "import warnings\nfor _ in range(2):\n    warnings.warn('careful')"
        for cell in (1, 2):
            stderr = session.run(code).stderr
            self.assertEqual(
                f"<cell {cell}>:3: UserWarning: careful\n  warnings.warn('careful')\n", stderr
            )

    def test_deprecation_in_the_users_code_is_shown(self):
        result = Session().run("import datetime\ndatetime.datetime.utcnow() and None")
        self.assertIn("<cell 1>:2: DeprecationWarning", result.stderr)

    def test_syntax_warning_is_shown_once(self):
        for code in (r"x = '\d'", r"'\d'", "x = 1 is 1", "x = 1\n" * 500 + r"x = '\d'"):
            with self.subTest(code[-20:]):
                self.assertEqual(1, Session().run(code).stderr.count("SyntaxWarning"))


class Sabotage(unittest.TestCase):
    """A run may break anything; it and the next one still end with an answer."""

    def test_next_run_works(self):
        tests = [
            "import builtins\ndel builtins.len, builtins.repr, builtins.isinstance, builtins.print",
            "import builtins\nbuiltins.__dict__.clear()",
            "import builtins\nbuiltins.isinstance = builtins.getattr = builtins.type = None",
            "import sys\nsys.modules.clear()",
            "import sys\ndel sys.modules['__main__'], sys.modules['codeexec']",
            "globals().clear()",
            "__name__ = 'x'; __builtins__ = {}",
            "import json\njson.dumps = json.JSONEncoder = json.encoder.c_make_encoder = None",
            "import asyncio\nasyncio.run = asyncio.Task = asyncio.new_event_loop = None",
            "import linecache, traceback\nlinecache.clearcache()\ntraceback.print_exc = None",
            "import sys\nsys.setrecursionlimit(40)",
            "import sys\nsys.settrace(lambda *a: 1 / 0)",
            "import sys\nsys.setprofile(lambda *a: None)",
            "import gc\ngc.disable()",
            "import sys\nsys.path_importer_cache = None\nsys.path.clear()",
            "import sys\nsys.meta_path.insert(0, None) or sys.meta_path.pop(0)",
            "import os\nos.environ.clear()",
            "import asyncio\nasyncio.get_running_loop().close()\nasyncio.get_running_loop().stop()",
            "import asyncio\nasyncio.set_event_loop_policy(None)\nasyncio._set_running_loop(None)",
            "import warnings\nwarnings.simplefilter('error')\nwarnings.warn('x')",
            "import logging\nlogging.disable()",
        ]
        check = "import sys\nasync def f(): return 6\nprint(len([1]), __name__)\nawait f()"
        for code in tests:
            with self.subTest(code):
                first, second = run_in_fork(code, check)
                self.assertIn(first.outcome, ("ok", "exception"))
                self.assertEqual(
                    ("ok", "1 __main__\n", "6"),
                    (second.outcome, second.stdout, second.value),
                    second,
                )


if __name__ == "__main__":
    unittest.main()
