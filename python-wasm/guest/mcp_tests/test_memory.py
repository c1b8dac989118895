"""Memory: what can be saved, what comes back, and the loop of an update."""

import asyncio
import collections
import datetime
import enum
import unittest

from mcp_tests.fake_host import GuestTest
from mcp import _memory, runtime
from mcp.runtime import load_memory, save_memory, update_memory


class MemoryTest(GuestTest):
    def test_predefined_and_in_runtime(self):
        names = self.run_with()
        for name in _memory.__all__:
            self.assertIs(names[name], getattr(runtime, name))
            self.assertIn(name, runtime.__all__)

    def test_a_record(self):
        self.assertEqual(save_memory("k", {"a": (1, 2)}, {"m": 1}), "Memory 'k' saved.")
        self.assertEqual(load_memory("k"), {"a": [1, 2]})
        self.assertEqual(save_memory("k", 5), "Memory 'k' saved.")
        self.assertEqual(
            runtime.get_memory_info("k"),
            {"key": "k", "value": 5, "metadata": {"m": 1}, "created_at": 1.5, "updated_at": 2.5},
        )
        self.assertEqual(
            runtime.list_memories(),
            [{"key": "k", "metadata": {"m": 1}, "created_at": 1.5, "updated_at": 2.5, "size": 1}],
        )
        self.assertIs(runtime.memory_exists("k"), True)
        self.assertEqual(runtime.delete_memory("k"), "Memory 'k' deleted.")
        self.assertEqual(runtime.delete_memory("k"), "Memory 'k' not found.")
        self.assertIs(runtime.memory_exists("k"), False)
        self.assertIsNone(runtime.get_memory_info("k"))
        self.assertEqual(runtime.list_memories(), [])

    def test_the_default_is_for_what_is_absent(self):
        default = object()
        self.assertIs(load_memory("k", default), default)
        self.assertIsNone(load_memory("k"))
        save_memory("k", None)
        self.assertIsNone(load_memory("k", default))
        self.assertEqual(update_memory("k", lambda old: [old], default=5), [None])

    # Values

    def test_what_json_can_hold(self):
        class Color(enum.StrEnum):
            RED = "red"

        class Count(enum.IntEnum):
            TWO = 2

        Point = collections.namedtuple("Point", "x y")
        shared = [1]
        tests = [
            (None, None),
            (True, True),
            (10**30, 10**30),
            (-0.5, -0.5),
            ("ünïcödé \0 \ud83d", "ünïcödé \0 \ud83d"),
            (((), [()]), [[], [[]]]),
            (Point(1, 2), [1, 2]),
            (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
            ({Color.RED: Count.TWO}, {"red": 2}),
            ([shared, shared], [[1], [1]]),
        ]
        for value, want in tests:
            with self.subTest(value=value):
                save_memory("k", value)
                got = load_memory("k")
                self.assertEqual(got, want)
                self.assertEqual(repr(got), repr(want))
                self.assertEqual(repr(update_memory("k", lambda _: value)), repr(want))

    def test_what_json_cannot_hold(self):
        async def waiting():
            pass

        tests = [
            ({1, 2}, "value is a set, which JSON can't hold; save sorted"),
            ({"a": [0, {"b c": datetime.date(2025, 1, 31)}]},
             r"value\.a\[1\]\['b c'\] is a date, which JSON can't hold; save its isoformat"),
            ([b"x"], r"value\[0\] is a bytes, which JSON can't hold"),
            ({"x": float("nan")}, r"value\.x is nan, which JSON can't hold"),
            ([float("-inf")], r"value\[0\] is -inf"),
            ({"a": {1: 2}}, r"value\.a has the key 1; keys must be str"),
            ([1j], r"value\[0\] is a complex"),
            ([object()], r"value\[0\] is an object, which JSON can't hold$"),
            (10**5000, "value is an int of 16,610 bits, too large to save"),
            (waiting, "value is a function"),
        ]
        for value, want in tests:
            want = rf"^save_memory\('k'\): {want}"
            with self.subTest(want), self.assertRaisesRegex(TypeError, want):
                save_memory("k", value)
        pending = waiting()
        self.addCleanup(pending.close)
        with self.assertRaisesRegex(TypeError, "save its result, with `await`"):
            save_memory("k", pending)
        with self.assertRaisesRegex(TypeError, r"^save_memory\('k'\): metadata\.x is a set"):
            save_memory("k", 1, {"x": set()})
        with self.assertRaisesRegex(TypeError, "metadata must be a dict, not list"):
            save_memory("k", 1, [])
        want = r"^update_memory\('k'\): the value of fn\.x is a set"
        with self.assertRaisesRegex(TypeError, want):
            update_memory("k", lambda _: {"x": set()})
        self.assertEqual(self.host.memory, {})
        self.assertEqual(self.host.asked("memory.save") + self.host.asked("memory.commit"), [])

    def test_cycles_and_depth(self):
        cycle = {"a": []}
        cycle["a"].append(cycle)
        with self.assertRaisesRegex(ValueError, r"value\.a\[0\] contains itself"):
            save_memory("k", cycle)
        deep = []
        for _ in range(199):
            deep = [deep]
        save_memory("k", deep)
        self.assertEqual(load_memory("k"), deep)
        with self.assertRaisesRegex(ValueError, "is nested more than 200 deep"):
            save_memory("k", [deep])

    # Updates

    def test_an_update(self):
        self.assertEqual(update_memory("k", lambda n: n + 1, default=0), 1)
        save_memory("k", 1, {"m": 1})
        self.assertEqual(update_memory("k", lambda n: n + 1), 2)
        self.assertEqual(runtime.get_memory_info("k")["metadata"], {"m": 1})

    def test_an_update_begins_again_after_a_conflict(self):
        seen = []

        def append(items):
            seen.append(list(items))
            items.append("mine")
            return items

        default = []
        self.host.conflicts = [["a"], ["a", "b"]]
        self.assertEqual(update_memory("k", append, default), ["a", "b", "mine"])
        self.assertEqual(seen, [[], ["a"], ["a", "b"]])
        self.assertEqual(default, [])
        for op in ("memory.attempt", "memory.commit"):
            self.assertEqual([asked["conflicts"] for asked in self.host.asked(op)], [0, 1, 2])
        self.assertEqual(self.host.asked("memory.commit")[0]["revision"], "")

    def test_an_error_of_the_function_changes_nothing(self):
        save_memory("k", 1)
        with self.assertRaises(ZeroDivisionError):
            update_memory("k", lambda n: n / 0)
        self.assertEqual(load_memory("k"), 1)

    def test_what_an_update_returns_is_a_copy(self):
        mine = {"a": [1]}
        got = update_memory("k", lambda _: mine)
        got["a"].append(2)
        self.assertEqual((mine, load_memory("k")), ({"a": [1]}, {"a": [1]}))

    # Errors

    def test_a_damaged_record(self):
        self.host.memory["k"] = {"error": "the record of memory \"k\" is damaged"}
        for use in (
            lambda: load_memory("k", 5),
            lambda: runtime.get_memory_info("k"),
            lambda: update_memory("k", lambda n: n),
        ):
            with self.assertRaisesRegex(runtime.MemoryCorrupted, "is damaged"):
                use()
        self.assertTrue(issubclass(runtime.MemoryCorrupted, runtime.MCPError))
        self.assertTrue(runtime.memory_exists("k"))
        self.assertIn("is damaged", runtime.list_memories()[0]["error"])
        self.assertEqual(runtime.delete_memory("k"), "Memory 'k' deleted.")

    def test_keys(self):
        tests = [(5, TypeError), (None, TypeError), ("", ValueError), ("\ud800", ValueError)]
        for key, error in tests:
            for use in (
                lambda key: save_memory(key, 1),
                load_memory,
                lambda key: update_memory(key, lambda n: n),
                runtime.delete_memory,
                runtime.memory_exists,
                runtime.get_memory_info,
            ):
                with self.subTest(key=key), self.assertRaisesRegex(error, "memory key"):
                    use(key)

    def test_inside_of_a_running_loop(self):
        async def main():
            return update_memory("k", lambda n: n + 1, default=1)

        self.assertEqual(asyncio.run(main()), 2)


if __name__ == "__main__":
    unittest.main()
