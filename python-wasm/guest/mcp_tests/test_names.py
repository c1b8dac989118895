import itertools
import unittest

from mcp_tests import fake_host  # noqa: F401 - before anything of mcp
from mcp._names import aliases, close_matches, did_you_mean, listing


class AliasesTest(unittest.TestCase):
    def test_rules(self):
        tests = [
            ("a name that Python can spell stays", ["camelCase_1"], {"camelCase_1": "camelCase_1"}),
            (
                "other characters become _",
                ["cik-A", "a.b/c d"],
                {"cik-A": "cik_A", "a.b/c d": "a_b_c_d"},
            ),
            ("a leading digit gets _ in front", ["2fa"], {"2fa": "_2fa"}),
            (
                "a keyword gets a trailing _",
                ["from", "class", "None"],
                {"from": "from_", "class": "class_", "None": "None_"},
            ),
            ("soft keywords are names", ["match", "type"], {"match": "match", "type": "type"}),
            ("nothing but _ left", ["$$", "-"], {"$$": "argument", "-": "argument_2"}),
            ("the empty name", [""], {"": "argument"}),
            (
                "a name that the compiler refuses as a keyword argument",
                ["__debug__"],
                {"__debug__": "__debug___"},
            ),
            ("letters beyond ASCII", ["größe"], {"größe": "größe"}),
            ("a letter that the compiler would replace", ["ﬁle"], {"ﬁle": "_le"}),
        ]
        for name, names, want in tests:
            with self.subTest(name):
                self.assertEqual(aliases(names, "argument"), want)

    def test_spellable_names_keep_theirs_and_order_does_not_matter(self):
        names = ["a b", "a_b", "a-b", "a_b_2"]
        want = {"a_b": "a_b", "a_b_2": "a_b_2", "a b": "a_b_3", "a-b": "a_b_4"}
        for order in itertools.permutations(names):
            self.assertEqual(aliases(order, "x"), want)


class CloseMatchesTest(unittest.TestCase):
    def test_finds_what_was_meant(self):
        names = ["create_issue", "list_issues", "get_file_contents", "search-code"]
        tests = [
            ("a typo", "creat_isue", "create_issue"),
            ("camelCase", "createIssue", "create_issue"),
            ("the original name", "search_code", "search-code"),
            ("a part of the name", "file_contents", "get_file_contents"),
        ]
        for name, word, want in tests:
            with self.subTest(name):
                self.assertEqual(close_matches(word, names)[0], want)

    def test_nothing_close(self):
        self.assertEqual(close_matches("zzz", ["create_issue"]), [])
        self.assertEqual(close_matches("", ["a"]), [])

    def test_long_names_are_cheap(self):
        self.assertEqual(len(close_matches("a" * 10**6, ["a" * 10**6, "b" * 10**6])), 1)

    def test_lists_all_when_nothing_is_close(self):
        self.assertEqual(did_you_mean("zzz", ["read", "write"], what="Tools"), "Tools: read, write")

    def test_says_that_there_are_none(self):
        self.assertEqual(did_you_mean("zzz", [], what="Tools"), "There are no tools.")

    def test_listing_is_cut(self):
        self.assertEqual(listing(map(str, range(100)), 2), "0, 1, … (100 in all)")


if __name__ == "__main__":
    unittest.main()
