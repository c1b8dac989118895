"""The event loop, tasks at the end of a run, and calls to the host."""

import time
import unittest

from tests.sandbox import Delayed, Failure, Session, host

CALL = "from codeexec.host import call, call_async, HostError\nimport asyncio\n"


class Nesting(unittest.TestCase):
    def test_ways_to_run_a_coroutine_in_top_level_code(self):
        ways = [
            "await f()",
            "asyncio.run(f())",
            "asyncio.get_event_loop().run_until_complete(f())",
            "asyncio.get_running_loop().run_until_complete(f())",
            "asyncio.new_event_loop().run_until_complete(f())",
            "with asyncio.Runner() as r:\n    x = r.run(f())\nx",
            "loop = asyncio.new_event_loop()\nasyncio.set_event_loop(loop)\n"
            "x = loop.run_until_complete(f())\nloop.close()\nx",
            "loop = asyncio.get_event_loop()\nx = loop.run_until_complete(f())\nloop.close()\nx",
            "async def g(): return asyncio.run(f())\nawait g()",
            "async def g(): return asyncio.get_running_loop().run_until_complete(f())\n"
            "asyncio.run(g())",
            "await asyncio.to_thread(asyncio.run, f())",
            "await asyncio.create_task(f())",
            "asyncio.run(f(), debug=True)",
            "asyncio.run(f(), loop_factory=asyncio.EventLoop)",
        ]
        for way in ways:
            with self.subTest(way):
                result = Session().run(
                    "import asyncio\nasync def f():\n    await asyncio.sleep(0.001)\n"
                    f"    return asyncio.current_task() is not None\n{way}"
                )
                self.assertEqual(
                    ("ok", "True", ""), (result.outcome, result.value, result.stderr), result
                )

    def test_inner_loop_is_a_loop_of_its_own(self):
        result = Session().run(
            "import asyncio\nouter = asyncio.get_running_loop()\nseen = []\n"
            "async def background(): seen.append('outer')\n"
            "async def main():\n    await asyncio.sleep(0.01)\n"
            "    return asyncio.get_running_loop() is outer, list(seen)\n"
            "t = asyncio.create_task(background())\n"
            "inner = asyncio.run(main())\nawait t\n"
            "inner, seen, asyncio.get_running_loop() is outer"
        )
        self.assertEqual("((False, []), ['outer'], True)", result.value)

    def test_reentering_runs_other_tasks_too(self):
        result = Session().run(
            "import asyncio\nloop = asyncio.get_running_loop()\nseen = []\n"
            "async def f(n):\n    await asyncio.sleep(n / 100); seen.append(n); return n\n"
            "tasks = [asyncio.create_task(f(n)) for n in (1, 2, 5)]\n"
            "me = asyncio.current_task()\n"
            "x = loop.run_until_complete(f(3))\n"
            "first = list(seen)\n"
            "same = asyncio.current_task() is me\n"
            "await asyncio.gather(*tasks)\n"
            "x, first, seen, same"
        )
        self.assertEqual("(3, [1, 2, 3], [1, 2, 3, 5], True)", result.value, result)

    def test_reentering_in_every_task(self):
        result = Session().run(
            "import asyncio\nloop = asyncio.get_running_loop()\n"
            "async def leaf(n):\n    await asyncio.sleep(0); return n\n"
            "async def f(n): return loop.run_until_complete(leaf(n))\n"
            "await asyncio.gather(*(f(n) for n in range(20)))"
        )
        self.assertEqual(str(list(range(20))), result.value)

    def test_run_forever_until_stop(self):
        code = (
            "import asyncio\nloop = asyncio.{}_event_loop()\nseen = []\n"
            "loop.call_later(0.01, seen.append, 1)\nloop.call_later(0.02, loop.stop)\n"
            "loop.run_forever()\nseen"
        )
        for kind in ("get", "new"):
            self.assertEqual("[1]", Session().run(code.format(kind)).value)

    def test_done_callbacks_run_before_the_loop_stops(self):
        result = Session().run(
            "import asyncio\nasync def f(): return 1\nseen = []\n"
            "loop = asyncio.new_event_loop()\nt = loop.create_task(f())\n"
            "t.add_done_callback(lambda t: seen.append(t.result()))\n"
            "loop.run_until_complete(t)\nseen"
        )
        self.assertEqual("[1]", result.value)

    def test_executors_run_inline(self):
        result = Session().run(
            "import asyncio, concurrent.futures as cf\n"
            "def f(x):\n    try: asyncio.get_running_loop()\n    except RuntimeError: return x\n"
            "a = await asyncio.to_thread(f, 1)\n"
            "b = await asyncio.get_running_loop().run_in_executor(None, f, 2)\n"
            "with cf.ThreadPoolExecutor(4) as pool:\n"
            "    c = list(pool.map(f, range(3)))\n"
            "    d = [x.result() for x in cf.as_completed([pool.submit(f, 7)])]\n"
            "    e = await asyncio.get_running_loop().run_in_executor(pool, f, 9)\n"
            "    bad = pool.submit(int, 'x').exception()\n"
            "a, b, c, d, e, type(bad).__name__"
        )
        self.assertEqual("(1, 2, [0, 1, 2], [7], 9, 'ValueError')", result.value, result)

    def test_primitives_live_on_in_the_session(self):
        session = Session()
        session.run("import asyncio\nq = asyncio.Queue(1)\nlock = asyncio.Lock()\nawait q.put(1)")
        result = session.run(
            "async def put():\n    async with lock:\n        await q.put(2)\n"
            "t = asyncio.create_task(put())\nawait asyncio.sleep(0)\n"
            "(await q.get(), await q.get(), await t)"
        )
        self.assertEqual("(1, 2, None)", result.value, result)


class Deadlocks(unittest.TestCase):
    def test_waiting_for_nothing_is_an_error(self):
        tests = [
            ("await asyncio.Event().wait()", "Event.wait()", 2),
            ("x = 1\nawait asyncio.Queue().get()", "Queue.get()", 3),
            ("await asyncio.get_running_loop().create_future()", "<Future pending", 2),
            ("await asyncio.gather(asyncio.Event().wait())", "asyncio.gather()", 2),
            (
                "async def f():\n    await asyncio.Event().wait()\nawait asyncio.create_task(f())",
                "Event.wait()",
                4,
            ),
            (
                "async def f():\n    await asyncio.Event().wait()\nasyncio.run(f())",
                "Event.wait()",
                3,
            ),
            ("asyncio.new_event_loop().run_forever()", "nothing is left", 2),
            (
                "a = asyncio.create_task(asyncio.sleep(0))\nlock = asyncio.Lock()\n"
                "await lock.acquire()\nawait lock.acquire()",
                "Lock.acquire()",
                5,
            ),
        ]
        for code, awaited, line in tests:
            with self.subTest(code):
                result = Session().run("import asyncio\n" + code)
                self.assertEqual("RuntimeError", result.error["type"], result)
                self.assertIn("deadlock", result.error["message"])
                self.assertIn(awaited, result.error["message"])
                self.assertIn('File "<cell 1>"', result.error["traceback"])
                self.assertEqual("", result.stderr)

    def test_is_raised_where_the_code_waits(self):
        result = Session().run(
            "import asyncio\ntry:\n    await asyncio.Event().wait()\n"
            "except RuntimeError as e:\n    print('caught')\nfinally:\n"
            "    await asyncio.sleep(0.001)\n    print('done')"
        )
        self.assertEqual(("ok", "caught\ndone\n"), (result.outcome, result.stdout))

    def test_threading_primitives(self):
        for code in (
            "threading.Event().wait()",
            "import queue\nqueue.Queue().get()",
            "import concurrent.futures\nconcurrent.futures.Future().result()",
        ):
            with self.subTest(code):
                result = Session().run("import threading\n" + code)
                self.assertIn("deadlock", result.error["message"])
        self.assertEqual(
            "False", Session().run("import threading\nthreading.Event().wait(0.01)").value
        )


class EndOfRun(unittest.TestCase):
    def setUp(self):
        host.handlers["tools.call"] = lambda params: Delayed(params.get("delay", 0), params["tool"])
        host.cancelled.clear()

    def test_pending_tasks_get_one_turn_and_are_cancelled(self):
        session = Session()
        result = session.run(
            "import asyncio\nasync def f():\n    try:\n        print('started')\n"
            "        await asyncio.sleep(10)\n"
            "    except asyncio.CancelledError:\n        print('cancelled')\n        raise\n"
            "t = asyncio.create_task(f())"
        )
        self.assertEqual(("started\ncancelled\n", ""), (result.stdout, result.stderr))
        result = session.run("await asyncio.sleep(0.01)\nt.cancelled()")
        self.assertEqual(("True", "", ""), (result.value, result.stdout, result.stderr))

    def test_nothing_prints_into_the_next_run(self):
        tests = [
            "asyncio.get_running_loop().call_later(0.01, print, 'late')",
            "async def f():\n    while True:\n        try: await asyncio.sleep(0.005)\n"
            "        except asyncio.CancelledError: pass\n        print('again')\n"
            "t = asyncio.create_task(f())",
            "async def f(): 1 / 0\nt = asyncio.create_task(f())\nawait asyncio.sleep(0)\n"
            "await asyncio.sleep(0)",
            "async def f(): 1 / 0\nl = [asyncio.create_task(f())]; l.append(l)\n"
            "await asyncio.sleep(0.001)\ndel l",
            "async def f(): 1 / 0\nasyncio.create_task(f())\nawait asyncio.sleep(0.001)",
            "class C:\n    def __del__(self): print('gone')\nc = C(); c.c = c\ndel c",
            "async def g():\n    try:\n        yield 1\n    finally:\n"
            "        await asyncio.sleep(0.01); print('closed')\nasync for x in g(): break",
            "def cb():\n    print('cb')\n    asyncio.get_running_loop().call_soon(cb)\n"
            "asyncio.get_running_loop().call_soon(cb)",
        ]
        for code in tests:
            with self.subTest(code):
                session = Session()
                session.run("import asyncio\n" + code)
                result = session.run(
                    "import gc\nt = l = c = x = None\ngc.collect()\nawait asyncio.sleep(0.02)"
                )
                self.assertEqual(("ok", "", ""), (result.outcome, result.stdout, result.stderr))

    def test_error_of_a_task_is_reported_in_its_run(self):
        result = Session().run(
            "import asyncio\nasync def f(): 1 / 0\nt = asyncio.create_task(f())\n"
            "await asyncio.sleep(0.001)"
        )
        self.assertEqual("ok", result.outcome)
        self.assertIn("Task exception was never retrieved", result.stderr)
        self.assertIn("ZeroDivisionError", result.stderr)
        self.assertNotIn("codeexec", result.stderr)

    def test_call_in_flight_is_noted(self):
        session = Session()
        result = session.run(
            CALL
            + "push = call_async('tools.call', {'server': 'git', 'tool': 'push', 'delay': 9})\n"
            "t = asyncio.create_task(push)"
        )
        self.assertEqual("ok", result.outcome)
        self.assertIn("git.push", result.stderr)
        self.assertIn("await", result.stderr)
        self.assertEqual(1, len(host.cancelled))
        self.assertEqual("", session.run("1").stderr)

    def test_stubborn_task_does_not_hold_up_the_end(self):
        start = time.monotonic()
        result = Session().run(
            "import asyncio\nasync def f():\n    while True:\n"
            "        try: await asyncio.sleep(100)\n"
            "        except asyncio.CancelledError: pass\nt = asyncio.create_task(f())"
        )
        self.assertEqual("ok", result.outcome)
        self.assertLess(time.monotonic() - start, 5)

    def test_cleanup_of_a_task_may_take_a_moment(self):
        result = Session().run(
            "import asyncio\nasync def f():\n    try: await asyncio.sleep(100)\n"
            "    finally:\n        await asyncio.sleep(0.01)\n        print('clean')\n"
            "t = asyncio.create_task(f())"
        )
        self.assertEqual("clean\n", result.stdout)

    def test_exit_in_a_leftover_task_ends_the_run(self):
        result = Session().run(
            "import asyncio\nasync def f(): exit(3)\nt = asyncio.create_task(f())"
        )
        self.assertEqual(("exit", 3), (result.outcome, result.exit_code))

    def test_unawaited_coroutine_is_reported_where_it_is_dropped(self):
        result = Session().run("async def fetch(x): pass\nprint('a')\nfetch(1)\nprint('b')")
        self.assertEqual(
            "<cell 1>:3: RuntimeWarning: coroutine 'fetch' was never awaited; "
            "write: await fetch(...)\n"
            "  fetch(1)\n",
            result.stderr,
        )

    def test_unawaited_value_is_reported_once(self):
        session = Session()
        result = session.run("async def fetch(x): pass\nfetch(1)")
        self.assertTrue(result.value.startswith("<coroutine object fetch"))
        self.assertIn("write: await fetch(...)", result.stderr)
        self.assertEqual("", session.run("import gc\n_ = 1\n2").stderr)
        self.assertEqual("", session.run("gc.collect() and None").stderr)

    def test_unawaited_tool_calls_are_reported(self):
        servers = [{"name": "git", "alias": "git", "description": ""}]
        tool = {
            "name": "push",
            "alias": "push",
            "description": "",
            "inputSchema": {"type": "object"},
        }
        host.handlers["tools.list"] = lambda params: {
            "server": "git",
            "alias": "git",
            "tools": [tool],
        }
        tests = [
            "r = mcp_git.push()\nprint(type(r))",
            "rs = [mcp_git.push() for _ in range(2)]",
            "mcp_git.push()",
            "mcp_git.push()\nx = 1",
            "rs = {'a': mcp_git.push()}",
        ]
        for code in tests:
            with self.subTest(code):
                session = Session()
                result = session.run(code, servers=servers)
                self.assertEqual("ok", result.outcome, result)
                self.assertIn("await mcp_git.push(...)", result.stderr)
                result = session.run(
                    "r = rs = None\nimport gc\ngc.collect()\nx = _ = 2", servers=servers
                )
                self.assertEqual("", result.stderr)

    def test_coroutine_may_be_awaited_in_the_next_run(self):
        session = Session()
        session.run("async def f(): return 5\nc = f()")
        result = session.run("await c")
        self.assertEqual(("5", ""), (result.value, result.stderr))


class Calls(unittest.TestCase):
    def setUp(self):
        host.handlers["echo"] = lambda params: Delayed(params.get("delay", 0), params)
        host.cancelled.clear()

    def test_call(self):
        code = (
            CALL + "r = call('echo', {'x': [1, 'é\\ud800', None]}, [b'abc', b''])\n"
            "r.value['x'], r.attachments"
        )
        self.assertEqual("([1, 'é\\ud800', None], [b'abc', b''])", Session().run(code).value)

    def test_errors(self):
        def fail(params):
            raise Failure("ServerUnavailable", "it crashed", {"server": "x"})

        host.handlers["fail"] = fail
        for how in ("call('fail', {})", "await call_async('fail', {})"):
            code = (
                CALL + f"try:\n    {how}\nexcept HostError as e:\n    x = str(e), e.kind, e.data\nx"
            )
            self.assertEqual(
                "('it crashed', 'ServerUnavailable', {'server': 'x'})", Session().run(code).value
            )
        for value in ("float('nan')", "{1}", "b'x'", "object()"):
            with self.subTest(value):
                result = Session().run(CALL + f"call('echo', {{'x': {value}}})")
                self.assertIn(result.error["type"], ("ValueError", "TypeError"))
                self.assertEqual(3, result.error["line"])

    def test_calls_are_concurrent_and_in_order(self):
        start = time.monotonic()
        result = Session().run(
            CALL
            + "calls = [call_async('echo', {'n': n, 'delay': 0.2 - n / 100}) for n in range(10)]\n"
            "rs = await asyncio.gather(*calls)\n"
            "[r.value['n'] for r in rs]"
        )
        self.assertEqual(str(list(range(10))), result.value)
        self.assertLess(time.monotonic() - start, 1.5)

    def test_cancelling_cancels_on_the_host(self):
        result = Session().run(
            CALL + "try:\n    async with asyncio.timeout(0.01):\n"
            "        await call_async('echo', {'delay': 9})\n"
            "except TimeoutError:\n    print('timeout')"
        )
        self.assertEqual("timeout\n", result.stdout)
        self.assertEqual(1, len(host.cancelled))

    def test_answer_for_an_outer_loop_that_arrives_in_an_inner_one(self):
        result = Session().run(
            CALL + "t = asyncio.create_task(call_async('echo', {'n': 1, 'delay': 0.01}))\n"
            "await asyncio.sleep(0)\n"
            "asyncio.run(asyncio.sleep(0.03))\n(await t).value['n']"
        )
        self.assertEqual("1", result.value)

    def test_call_blocks_but_loses_no_answer(self):
        result = Session().run(
            CALL + "t = asyncio.create_task(call_async('echo', {'n': 1}))\nawait asyncio.sleep(0)\n"
            "call('echo', {'n': 2, 'delay': 0.02}).value['n'], (await t).value['n']"
        )
        self.assertEqual("(2, 1)", result.value)


if __name__ == "__main__":
    unittest.main()
