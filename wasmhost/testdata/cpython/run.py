"""Runs one module of CPython's own tests, and prints as JSON what came of it.

The caller sets MODULE, the module's name below `test`; LIBRARY, the folder that
holds the package `test`; WORK, a folder to make and run in; and OMIT, patterns
of the cases that are not run at all.
"""

import collections
import fnmatch
import json
import os
import re
import sys
import tempfile
import traceback
import unittest

sys.path.insert(0, LIBRARY)
sys.dont_write_bytecode = True
os.makedirs(WORK)
os.chdir(WORK)
# Where tests make files: most in the working folder, some by the module tempfile.
os.environ["TMPDIR"] = tempfile.tempdir = WORK

from test import support
from test.support import os_helper

# The tests skip what they believe a WASI host can't do, and this one often can;
# what truly fails has a line in the list of skips. What depends on processes and
# sockets was decided when test.support was imported, and stays.
support.is_wasi = False
os_helper.TESTFN_UNENCODABLE = os_helper.TESTFN_ASCII + os.fsdecode(b"-\xff")


def name_of(test):
    """A case's name without "test."; setUpClass and the like are cases too."""
    name = test.id()
    if found := re.fullmatch(r"(\w+) \((.+)\)", name):
        name = f"{found[2]}.{found[1]}"
    return name.removeprefix("test.")


def text_of(err):
    return "".join(traceback.format_exception(err[1]))


class Cases(unittest.TestResult):
    """How each case ended: "pass", "skip" or "fail", and why."""

    def __init__(self):
        super().__init__()
        self.ended = {}

    def end(self, test, how, why=""):
        # The worst of a case's parts counts.
        name = name_of(test)
        before = self.ended.get(name, ("",))[0]
        if before != "fail" and (how != "pass" or before == ""):
            self.ended[name] = how, why

    def addSuccess(self, test):
        self.end(test, "pass")

    def addError(self, test, err):
        self.end(test, "fail", text_of(err))

    addFailure = addError

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.end(test, "fail", f"{subtest._subDescription()}\n{text_of(err)}")

    def addSkip(self, test, reason):
        self.end(getattr(test, "test_case", test), "skip", reason)

    def addExpectedFailure(self, test, err):
        self.end(test, "pass")

    def addUnexpectedSuccess(self, test):
        self.end(test, "fail", "it was expected to fail")


def cases(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from cases(test)
        else:
            yield test


omitted = collections.Counter()
chosen = unittest.TestSuite()
for case in cases(unittest.defaultTestLoader.loadTestsFromName("test." + MODULE)):
    if pattern := next((p for p in OMIT if fnmatch.fnmatchcase(name_of(case), p)), None):
        omitted[pattern] += 1
    else:
        chosen.addTest(case)
result = Cases()
chosen.run(result)
os.chdir("/")
print(json.dumps({"cases": result.ended, "omitted": omitted}))
