"""Saved tools: what of a function is kept, what can't be, and the file of them."""

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import linecache
import sys
import textwrap
import types
import unittest

from mcp_tests.fake_host import GuestTest
from mcp import _saved, _session, runtime


class SavedTest(GuestTest):
    """`cell` is a run of a session, of which `session` begins another."""

    def setUp(self):
        super().setUp()
        self.stderr = ""
        before = sys.modules["__main__"], _saved._tools
        self.addCleanup(self.restore, *before)
        self.session()

    def restore(self, main, tools):
        sys.modules["__main__"], _saved._tools = main, tools
        sys.modules.pop("user_tools", None)
        for name in [name for name in linecache.cache if name.startswith("<cell ")]:
            del linecache.cache[name]

    def session(self):
        self.restore(types.ModuleType("__main__"), _saved._Tools())
        _session._defined.clear()
        self.namespace = vars(sys.modules["__main__"])
        self.number = 0

    def cell(self, code):
        """Run code as the next run of the session, and return its name `result`."""
        self.number += 1
        code = textwrap.dedent(code)
        name = f"<cell {self.number}>"
        lines = [line + "\n" for line in code.split("\n")]
        linecache.cache[name] = len(code), None, lines, name
        with contextlib.redirect_stderr(io.StringIO()) as stderr:
            self.run_with()
            value = eval(
                compile(code, name, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), self.namespace
            )
            if value is not None:
                asyncio.run(value)
        self.stderr = stderr.getvalue()
        return self.namespace.get("result")

    def saved(self, code, name="tool"):
        """Save the function of that name, and return what a new session has of it."""
        self.assertEqual(
            self.cell(f"{textwrap.dedent(code)}\nresult = save_tool({name})"),
            f"Tool {name!r} saved.",
        )
        self.session()
        self.assertIs(self.cell(f"result = callable({name})"), True, self.host.tools)
        return self.namespace[name]

    def refused(self, code, name="tool"):
        """Return why a function isn't saved; nothing is written."""
        before = self.host.tools
        with self.assertRaises(ValueError) as caught:
            self.cell(f"{textwrap.dedent(code)}\nsave_tool({name})")
        self.assertEqual(self.host.tools, before)
        return str(caught.exception)


class ExtractTest(SavedTest):
    def test_what_a_function_needs(self):
        tests = [
            ("nothing", "def tool(): return 1", 1),
            ("itself", "def tool(n=3): return n and n + tool(n - 1)", 6),
            (
                "imports",
                "import os.path, re as r\nfrom math import pi as p, e\n"
                "def tool(): return os.path.join('a', r.escape('.')), int(p + e)",
                ("a/\\.", 5),
            ),
            (
                "dotted imports",
                "import xml\nimport xml.dom\nimport xml.etree.ElementTree\n"
                "def tool(): return xml.etree.ElementTree.fromstring('<a/>').tag",
                "a",
            ),
            ("star import", "from string import *\ndef tool(): return digits", "0123456789"),
            (
                "constants",
                "A = 2\nB: int = A * 3\nC, (D, *E) = 1, (2, 3, 4)\nX = Y = -1\n"
                "def tool(): return A, B, C, D, E, X, Y",
                (2, 6, 1, 2, [3, 4], -1, -1),
            ),
            (
                "pure calls",
                "import re, datetime\nfrom pathlib import Path\nW = re.compile('b+', re.I)\n"
                "N = 'x y'.upper().split()\nM = frozenset(range(2)) | {len(N)}\n"
                "P = Path('/a') / 'b'\n"
                "T = datetime.timedelta(days=len(N))\nU = ' '.join(N)\nV = U.lower()\n"
                "R = {n: n*2 for n in N}\n"
                "def tool(): return W.sub('-', 'aBb'), N, sorted(M), str(P), T.days, V, R",
                ("a-", ["X", "Y"], [0, 1, 2], "/a/b", 2, "x y", {"X": "XX", "Y": "YY"}),
            ),
            (
                "helpers of helpers",
                "import math\nF = 2\ndef a(x): return x * F\ndef b(x): return a(x) + 1\n"
                "def tool(x=1): return math.floor(b(x))",
                3,
            ),
            (
                "helpers that call each other",
                "def even(n): return n == 0 or odd(n - 1)\n"
                "def odd(n): return n != 0 and even(n - 1)\ndef tool(): return even(4)",
                True,
            ),
            (
                "a lambda as a helper",
                "K = 3\ntriple = lambda x: x * K\ndef tool(): return triple(2)",
                6,
            ),
            (
                "default values and annotations",
                "from typing import Any\nD = [1]\nclass T: pass\n"
                "def tool(x: T = D, *, y: 'list[T]' = None) -> Any: return x",
                [1],
            ),
            (
                "nested functions",
                "S = 1\ndef tool():\n    def inner(y=S):\n        return lambda: y + S\n"
                "    return inner()()",
                2,
            ),
            (
                "comprehensions",
                "L = [1, 2]\nK = 3\ndef tool(): return [x * K for x in L if x in {y for y in L}]",
                [3, 6],
            ),
            (
                "local names that are global ones too",
                "x = object()\ndef tool(): \n    x = 1\n    return [x for x in 'ab'] + [x]",
                ["a", "b", 1],
            ),
            (
                "classes",
                "from dataclasses import dataclass, field\nZ = 0\nclass Base:\n    z = Z\n"
                "@dataclass\nclass P(Base):\n    x: int = Z\n"
                "    ys: list = field(default_factory=list)\n"
                "def tool(): return P(1).x, P().ys, P.z",
                (1, [], 0),
            ),
            (
                "decorators",
                "import functools\nN = 2\ndef times(n):\n    def wrap(f):\n"
                "        @functools.wraps(f)\n"
                "        def g(*a): return n * f(*a)\n        return g\n    return wrap\n"
                "@times(N)\ndef tool(x=1): return x",
                2,
            ),
            (
                "a decorator that hides the function",
                "def twice(f):\n    def g(): return 2 * f()\n    return g\n"
                "@twice\ndef tool(): return 1",
                2,
            ),
            (
                "decorators of the standard library",
                "import functools\n@functools.lru_cache(maxsize=None)\ndef tool(): return 1",
                1,
            ),
            (
                "global statements",
                "count = 5\ndef tool():\n    global count, other\n    other = count = count + 1\n"
                "    return count\ntool()",
                6,
            ),
            (
                "globals that helpers write",
                "Count = 0\ndef bump():\n    global Count, Last\n    Count += 1\n    Last = Count\n"
                "def tool():\n    bump()\n    return Count, Last\ntool()",
                (1, 1),
            ),
            (
                "branches",
                "try:\n    import nothing_of_that_name as m\nexcept ImportError:\n    m = None\n"
                "import sys\nif sys.version_info > (3,):\n    def h(): return m\nelse:\n"
                "    h = 1\ndef tool(): return h()",
                None,
            ),
            (
                "one line of several statements",
                "A = 1; B = 2; import math\ndef tool(): return A + B + math.floor(0.5)",
                3,
            ),
            (
                "future annotations",
                "from __future__ import annotations\ndef tool(x: Unknown = 1): return x",
                1,
            ),
            (
                "a multi-line string",
                'T = """a\n  b\n"""\ndef tool():\n    return T + """\nc"""',
                "a\n  b\n\nc",
            ),
            (
                "the match statement",
                "LIM = 1\ndef tool(x=(1, 2)):\n    match x:\n        case (a, b) if a >= LIM:\n"
                "            return a + b",
                3,
            ),
            (
                "type parameters",
                "from collections.abc import Sequence\nA = 1\n"
                "def tool[T: Sequence](x: T = (A,)) -> T: return x",
                (1,),
            ),
        ]
        for name, code, want in tests:
            with self.subTest(name):
                self.host.tools = ""
                self.session()
                tool = self.saved(code)
                self.assertEqual(tool(), want, self.host.tools)
                self.assertEqual(self.stderr, "")

    def test_only_what_is_needed(self):
        self.saved(
            "import os, re, json\nA = 1\nB = 2\ndef other(): return A\n"
            "def helper(): return re.escape('b')\ndef tool():\n    '''A tool.'''\n"
            "    return B, helper()"
        )
        self.assertEqual(
            self.host.tools.removeprefix(_saved._HEADER),
            textwrap.dedent(
                """

            # >>> saved tool: tool >>>
            import re

            B = 2


            def helper(): return re.escape('b')


            def tool():
                '''A tool.'''
                return B, helper()
            # <<< saved tool: tool <<<
            """
            ),
        )

    def test_functions_of_earlier_cells(self):
        self.cell("import math\nLIMIT = 1\ndef helper(): return LIMIT")
        self.cell("LIMIT = 2\ndef tool(n=LIMIT): return helper(), math.floor(n)")
        self.cell("def unrelated(): pass\nimport json as math_")
        self.assertEqual(self.saved("")(), (2, 2))

    def test_async_functions(self):
        tool = self.saved(
            "import asyncio\nasync def nap(): await asyncio.sleep(0)\nasync def tool():\n"
            "    await nap()\n    return 7"
        )
        self.assertTrue(inspect.iscoroutinefunction(tool))
        self.assertEqual(asyncio.run(tool()), 7)

    def test_predefined_names_are_looked_up_when_called(self):
        self.host.add("github", {"name": "f", "answer": {"structuredContent": {"n": 7}}})
        tool = self.saved(
            "def tool():\n    save_memory('k', 1)\n"
            "    return runtime, load_memory('k'), mcp_github, mcp_other"
        )
        self.assertNotIn("import", self.host.tools.removeprefix(_saved._HEADER))
        with self.assertRaisesRegex(NameError, "mcp_other"):
            tool()
        self.host.add("other")
        self.cell("")
        got = tool()
        self.assertIs(got[0], runtime)
        self.assertEqual((got[1], got[3]._codeexec_server.name), (1, "other"))

    def test_other_tools_are_looked_up_when_called(self):
        self.saved("def one(): return 1", "one")
        tool = self.saved("def tool(): return one() + 1")
        self.assertEqual(tool(), 2)
        self.assertEqual(self.host.tools.count("def one"), 1)
        self.cell("def one(): return 10\nsave_tool(one)")
        self.assertEqual(self.cell("result = tool()"), 11)
        # One that this session imports by name is imported by the tool, too.
        self.assertEqual(
            self.saved("from user_tools import one as uno\ndef third(): return uno()", "third")(),
            10,
        )

    def test_each_tool_keeps_its_own_helpers(self):
        self.saved("LIMIT = 1\ndef h(): return LIMIT\ndef one(): return h()", "one")
        self.saved("LIMIT = 2\ndef h(): return -LIMIT\ndef two(): return h()", "two")
        self.assertEqual(self.cell("result = one(), two()"), (1, -2))
        self.saved("LIMIT = 3\ndef h(): return LIMIT\ndef one(): return h()", "one")
        self.assertEqual(self.cell("result = one(), two()"), (3, -2))
        self.assertEqual(self.host.tools.count("LIMIT = 1"), 0)

    def test_what_cannot_be_saved(self):
        tests = [
            ("lambda", "tool = lambda: 1", "it is a lambda, which has no name"),
            (
                "closure",
                "def make(n):\n    def tool(): return n\n    return tool\ntool = make(1)",
                "it is a closure: it uses 'n' of make(), in which it is defined",
            ),
            (
                "nested function",
                "def make():\n    def tool(): return 1\n    return tool\ntool = make()",
                "it is defined inside of make; define it at module level",
            ),
            ("builtin", "tool = len", "it is built into Python"),
            (
                "bound method",
                "class A:\n    def f(self): pass\ntool = A().f",
                "it is a method of an object of class A",
            ),
            ("bound builtin method", "tool = [].append", "it is built into Python"),
            (
                "function of a class",
                "class A:\n    def f(self): pass\ntool = A.f",
                "it is defined inside of A",
            ),
            ("class", "class tool: pass", "it is a class"),
            (
                "instance",
                "class A:\n    def __call__(self): pass\ntool = A()",
                "it is an object of class A",
            ),
            (
                "partial",
                "import functools\ntool = functools.partial(print)",
                "it is an object of class partial",
            ),
            ("no function", "tool = 5", "an object of type int can't be saved: it is no function"),
            ("its name", "tool = 'tool'", "give the function itself, and not its name or"),
            (
                "of a module",
                "from textwrap import dedent as tool",
                "it is defined in the module 'textwrap'",
            ),
            (
                "made by exec",
                "exec('def tool(): pass')",
                "its source is not known: it was made by exec()",
            ),
            (
                "result of a call",
                "x = input_of_mine()\ndef tool(): return x",
                "it uses 'x', which is computed at run time: input_of_mine(); pass it as a "
                "parameter",
            ),
            (
                "awaited",
                "async def f(): return 1\nx = await f()\ndef tool(): return x",
                "it uses 'x', which is computed at run time: await f()",
            ),
            (
                "of memory",
                "x = load_memory('k')\ndef tool(): return x",
                "computed at run time: load_memory('k')",
            ),
            (
                "derived",
                "x = input_of_mine()\ny = [x, 1]\ndef h(): return y\ndef tool(): return h()",
                "it uses 'x', which is computed",
            ),
            (
                "the time",
                "from datetime import datetime\nx = datetime.now()\ndef tool(): return x",
                "computed at run time: datetime.now()",
            ),
            (
                "a file",
                "from pathlib import Path\nx = Path('/dev/null').read_text()\ndef tool(): return x",
                "computed at run time",
            ),
            (
                "a file of open",
                "x = open('/dev/null').read()\ndef tool(): return x",
                "computed at run time",
            ),
            (
                "an object",
                "class A: pass\nx = A()\ndef tool(): return x",
                "computed at run time: A()",
            ),
            (
                "a loop",
                "for x in [1]: pass\ndef tool(): return x",
                "it uses 'x', which is set by a loop",
            ),
            (
                "a with statement",
                "import io\nwith io.StringIO() as x: pass\ndef tool(): return x",
                "set by a `with` statement",
            ),
            (
                "added to",
                "x = 1\nx += 1\ndef tool(): return x",
                "set by an assignment such as `+=`",
            ),
            (
                "mutated",
                "x = []\nx.append(1)\ndef tool(): return x",
                "it uses 'x', which has changed since it was defined: a new session "
                "would begin with []; if that is right, assign it again and save then; if not, "
                "keep it with save_memory, or pass it as a parameter",
            ),
            (
                "mutated by a helper",
                "x = []\ndef note(): x.append(1)\ndef tool(): note(); return x\ntool()",
                "which has changed",
            ),
            (
                "mutated and nested",
                "x = {'a': []}\nx['a'].append(1)\ndef tool(): return x",
                "which has changed",
            ),
            (
                "no source",
                "globals()['x'] = 1\ndef tool(): return x",
                "it uses 'x', which no statement at module level defines",
            ),
            (
                "replaced",
                "def h(): pass\nglobals()['h'] = len\ndef tool(): return h()",
                "it uses 'h', which is another function now",
            ),
            (
                "undefined",
                "def tool(): return unheard_of",
                "it uses 'unheard_of', which is not defined",
            ),
            (
                "a condition",
                "if input_of_mine():\n    x = 1\ndef tool(): return x",
                "under an `if` whose condition is computed at run time",
            ),
            (
                "the main program",
                "if __name__ == '__main__':\n    x = 1\ndef tool(): return x",
                "defined only where __name__ is '__main__'",
            ),
            (
                "beside a statement",
                "import sys\nif sys:\n    x = 1\n    print()\ndef tool(): return x",
                "defined beside a statement that runs code",
            ),
            (
                "decorator of an object",
                "class App:\n    def tool(self, f): return f\napp = App()\n@app.tool\n"
                "def tool(): pass",
                "it uses 'app', which is computed at run time: App()",
            ),
            (
                "default value",
                "x = input_of_mine()\ndef tool(a=x): pass",
                "it uses 'x', which is computed at run time",
            ),
            (
                "helper that is a closure",
                "def make(n):\n    def f(): return n\n    return f\nh = make(1)\n"
                "def tool(): return h()",
                "it uses 'h', which is computed at run time: make(1)",
            ),
            (
                "marker in the source",
                'def tool(): return """\n# <<< saved tool: tool <<<\n"""',
                "its source has a line like",
            ),
        ]
        for name, code, want in tests:
            with self.subTest(name):
                self.session()
                self.namespace["input_of_mine"] = lambda: "x"
                self.assertIn(want, self.refused(code))

    def test_names_that_tools_cannot_have(self):
        for name, want in [
            ("save_memory", "every session has something else of that name"),
            ("user_tools", "every session has something else of that name"),
            ("_private", "names that begin with _ are no tools"),
            ("print", "it would hide Python's own"),
        ]:
            with self.subTest(name):
                self.session()
                self.run_with()
                self.assertIn(want, self.refused(f"def {name}(): pass", name))

    def test_what_a_new_session_could_not_load(self):
        for error, shown in [
            ("KeyError(__name__)", "KeyError: 'user_tools'"),
            ("SystemExit(1)", "SystemExit: 1"),
        ]:
            with self.subTest(error):
                text = self.refused(
                    f"def register(f):\n    if __name__ != '__main__': raise {error}\n"
                    "    return f\n"
                    "@register\ndef tool(): pass"
                )
                self.assertIn(f"a new session could not load it: {shown}", text)

    def test_an_older_version_that_is_still_held(self):
        self.cell("def tool(): return 1\nold = tool\ndef tool(): return 2")
        self.cell("save_tool(old)")
        self.session()
        self.assertEqual(self.cell("result = tool()"), 1)


class FileTest(SavedTest):
    def test_visible_at_once(self):
        self.cell(
            "def tool(): return 1\nsave_tool(tool)\nimport user_tools\nresult = user_tools.tool()"
        )
        self.assertEqual(self.namespace["result"], 1)
        self.assertEqual(self.cell("from user_tools import tool as t\nresult = t()"), 1)
        self.cell("def tool(): return 2\nsave_tool(tool)\nresult = user_tools.tool()")
        self.assertEqual(self.namespace["result"], 2)

    def test_all_ways_to_import(self):
        self.saved("def tool(): return 1")
        self.session()
        tests = [
            "import user_tools\nresult = user_tools.tool()",
            "from user_tools import *\nresult = tool()",
            "import user_tools, importlib\nresult = importlib.reload(user_tools).tool()",
            "import sys, user_tools\ndel sys.modules['user_tools']\nimport user_tools as u\n"
            "result = u.tool()",
            "result = getattr(user_tools, 'to' + 'ol')()",
            "result = globals()['to' + 'ol']()",
            "result = 'tool' in dir(user_tools) and 1",
        ]
        for code in tests:
            with self.subTest(code):
                self.session()
                self.assertEqual(self.cell(code), 1)
        with self.assertRaisesRegex(
            AttributeError, "there is no saved tool 'tol'; saved tools: tool"
        ):
            self.cell("user_tools.tol")
        with self.assertRaises(ImportError):
            self.cell("from user_tools import tol")

    def test_no_tools(self):
        self.assertEqual(
            self.cell("import user_tools\nresult = list_saved_tools(), user_tools.__all__"),
            ([], []),
        )
        self.assertEqual(self.cell("result = delete_saved_tool('x')"), "Tool 'x' not found.")
        self.assertEqual(self.host.tools, "")

    def test_no_tools_cost_no_request(self):
        self.cell("pass")
        self.cell("import json")
        self.assertEqual(self.host.requests, [])

    def test_tools_that_are_not_mentioned_are_not_loaded(self):
        self.saved("def one(): pass", "one")
        self.saved("def two(): return 2", "two")
        self.session()
        self.cell("two()")
        self.assertEqual([*_saved._tools.loaded], ["two"])
        self.cell("def later(): return one")
        self.assertEqual(sorted(_saved._tools.loaded), ["one", "two"])
        self.session()
        self.cell("pass")
        self.cell("result = 1")
        self.assertEqual(_saved._tools.loaded, {})
        self.assertEqual(len(self.host.asked("saved.read")) > 0, True)

    def test_tools_that_others_save_meanwhile(self):
        self.cell("def mine(): return later()")
        text = self.host.tools = "def later(): return 1\n"
        self.assertEqual(self.cell("result = mine()"), 1)
        self.host.tools = text.replace("1", "2")
        self.assertEqual(self.cell("result = mine()"), 2)
        self.host.tools = ""
        with self.assertRaises(NameError):
            self.cell("mine()")

    def test_variables_of_the_session_are_left_alone(self):
        self.saved("def tool(): return 1")
        self.cell("tool = 5")
        self.assertEqual(self.cell("result = tool, user_tools.tool()"), (5, 1))

    def test_what_was_written_by_hand(self):
        hand = (
            '"""Mine."""\nimport math\n\nLIMIT = 4\n\n\ndef _half(x):\n    return x / 2\n\n\n'
            '# About root.\ndef root(x=LIMIT):\n    """The root."""\n'
            "    return _half(math.sqrt(x))\n"
        )
        self.host.tools = hand
        self.assertEqual(self.cell("result = root()"), 1)
        self.assertEqual(
            self.cell("result = user_tools.LIMIT, '_half' in globals(), user_tools.__doc__"),
            (4, False, "Mine."),
        )
        self.saved("def tool(): return root() + 1")
        self.assertTrue(self.host.tools.startswith(hand + "\n\n# >>> saved tool: tool >>>\n"))
        self.assertEqual(self.cell("result = tool()"), 2)
        self.assertEqual(
            self.cell("result = list_saved_tools()"),
            [
                {"name": "root", "signature": "def root(x=LIMIT)", "description": "The root."},
                {"name": "tool", "signature": "def tool()", "description": ""},
            ],
        )
        self.cell("def root(x): return 0\nsave_tool(root)")
        self.assertEqual(self.host.tools.count("def root"), 1)
        self.assertIn("# About root.\n", self.host.tools)
        self.assertEqual(self.cell("result = tool.__globals__['__builtins__']['root'](1)"), 0)
        self.assertEqual(self.cell("result = delete_saved_tool('tool')"), "Tool 'tool' deleted.")
        self.assertEqual(self.cell("result = delete_saved_tool('root')"), "Tool 'root' deleted.")
        self.assertEqual(self.host.tools, hand[: hand.index("def root")])

    def test_hand_written_functions_can_be_deleted(self):
        self.host.tools = (
            "import math\n\n@property\ndef one(): pass\n\n\ndef two():\n    return 2\n"
        )
        self.assertEqual(self.cell("result = delete_saved_tool('one')"), "Tool 'one' deleted.")
        self.assertEqual(self.host.tools, "import math\n\n\ndef two():\n    return 2\n")

    def test_a_section_edited_by_hand(self):
        self.saved("def tool(): return 1")
        self.host.tools = self.host.tools.replace("return 1", "return 5")
        self.assertEqual(self.cell("result = tool()"), 5)

    def test_broken_tools_are_skipped_with_a_line_each(self):
        for name in ("one", "two", "three"):
            self.saved(f"def {name}(): return '{name}'", name)
        good = self.host.tools
        hand = "def mine(): return 1\n\ndef torn(:\n    pass\n\n1 / 0\n\ndef last(): return 2\n"
        self.host.tools = hand + good.replace("def one()", "def one(").replace(
            "def two()", "raise SystemExit\ndef two()"
        )
        self.session()
        self.cell(
            "result = mine(), last(), three()\n"
            "one, two, torn = (globals().get(n) for n in ('one', 'two', 'torn'))"
        )
        self.assertEqual(self.namespace["result"], (1, 2, "three"))
        lines = self.stderr.splitlines()
        self.assertEqual(len(lines), 4, lines)
        text = "\n".join(sorted(lines))
        for part in (
            "the saved tool 'one' is skipped: SyntaxError:",
            "the saved tool 'two' is skipped: SystemExit",
            "the saved tool 'torn' is skipped: SyntaxError: invalid syntax "
            "(/projects/user_tools.py, line 3)",
            "a statement is skipped: ZeroDivisionError: division by zero "
            "(/projects/user_tools.py, line 6)",
        ):
            self.assertIn(part, text)
        errors = {tool["name"]: tool.get("error") for tool in runtime.list_saved_tools()}
        self.assertEqual([name for name, error in errors.items() if error], ["one", "torn"])
        # They can be replaced and deleted.
        self.cell("def torn(): return 3\nsave_tool(torn)\ndelete_saved_tool('one')")
        self.assertIn("\n1 / 0\n", self.host.tools)
        self.session()
        self.assertEqual(self.cell("result = torn(), last()"), (3, 2))
        self.assertIn("broken", _session.explain_name("two"))

    def test_lines_of_tracebacks(self):
        self.saved("def one(): return 1", "one")
        tool = self.saved("\n\ndef tool():\n    return 1 / 0")
        line = self.host.tools.split("\n").index("    return 1 / 0") + 1
        try:
            tool()
        except ZeroDivisionError as error:
            frame = error.__traceback__.tb_next
        self.assertEqual(
            (frame.tb_frame.f_code.co_filename, frame.tb_lineno), ("/projects/user_tools.py", line)
        )

    def test_no_save_of_others_is_lost(self):
        self.saved("def one(): return 1", "one")
        theirs = self.host.tools
        self.host.tools = ""
        self.host.other_tools = [theirs.replace("one", "other"), theirs]
        self.saved("def two(): return 2", "two")
        self.assertEqual(
            self.cell("result = [t['name'] for t in list_saved_tools()]"), ["one", "two"]
        )

    def test_saving_a_saved_tool_changes_nothing(self):
        self.saved("def tool(): return 1")
        before = self.host.tools
        self.assertEqual(self.cell("result = save_tool(tool)"), "Tool 'tool' saved.")
        self.assertEqual(self.host.tools, before)

    def test_odd_files(self):
        tests = [
            ("no end", "# >>> saved tool: a >>>\ndef a(): return 1\n", {"a": 1}),
            ("no begin", "def a(): return 1\n# <<< saved tool: a <<<\n", {"a": 1}),
            (
                "twice",
                "# >>> saved tool: a >>>\ndef a(): return 1\n# <<< saved tool: a <<<\n"
                "# >>> saved tool: a >>>\ndef a(): return 2\n# <<< saved tool: a <<<",
                {"a": 2},
            ),
            (
                "line ends of Windows",
                "# >>> saved tool: a >>>\r\ndef a():\r\n    return 1\r\n"
                "# <<< saved tool: a <<<\r\ndef b(): return 2\r\n",
                {"a": 1, "b": 2},
            ),
            ("byte order mark", "\ufeffdef a(): return 1\n", {"a": 1}),
            (
                "strings in the first column",
                'def a(): return """\ndef b(): pass\n"""\ndef c(: pass\ndef d(): return 1',
                {"d": 1},
            ),
            ("white space", " \n\n", {}),
            ("a NUL", "def a(): return 1\n\0\ndef b(): return 2", {"a": 1, "b": 2}),
        ]
        for name, text, want in tests:
            with self.subTest(name):
                self.session()
                self.host.tools = text
                self.cell("globals()")
                self.assertEqual({n: self.namespace[n]() for n in want}, want)
                self.cell("def z(): return 9\nsave_tool(z)")
                self.session()
                self.cell("globals()")
                self.assertEqual({n: self.namespace[n]() for n in [*want, "z"]}, {**want, "z": 9})
                for tool in [*want, "z"]:
                    self.assertEqual(
                        self.cell(f"result = delete_saved_tool({tool!r})"),
                        f"Tool {tool!r} deleted.",
                    )


if __name__ == "__main__":
    unittest.main()
