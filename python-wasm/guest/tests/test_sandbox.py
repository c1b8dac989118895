"""What the sandbox refuses, and that it says what to do instead."""

import unittest

from tests.sandbox import Session, guest, run_in_fork


class Refusals(unittest.TestCase):
    def test_calls_raise_one_line(self):
        tests = [
            (
                "import socket\nsocket.socket()",
                "OSError",
                "the sandbox has no network; call an MCP tool",
            ),
            ("import socket\nsocket.create_connection(('x', 80))", "OSError", "no network"),
            ("import socket\nsocket.getaddrinfo('x', 80)", "OSError", "no network"),
            (
                "import urllib.request\nurllib.request.urlopen('http://example.com')",
                "URLError",
                "no network",
            ),
            (
                "import urllib.request\nurllib.request.urlopen('https://example.com')",
                "URLError",
                "no network",
            ),
            (
                "import http.client\nhttp.client.HTTPSConnection('x').request('GET', '/')",
                "OSError",
                "no network",
            ),
            ("import smtplib\nsmtplib.SMTP('x')", "OSError", "no network"),
            ("import socketserver\nsocketserver.TCPServer(('', 0), None)", "OSError", "no network"),
            ("import ssl\nssl.create_default_context().wrap_socket(None)", "OSError", "no network"),
            ("import asyncio\nawait asyncio.open_connection('x', 80)", "OSError", "no network"),
            ("import asyncio\nawait asyncio.start_server(print, '', 0)", "OSError", "no network"),
            ("import select\nselect.select([0], [], [], 0)", "OSError", "no descriptors"),
            ("import subprocess\nsubprocess.run(['ls'])", "OSError", "no processes"),
            ("import subprocess\nsubprocess.Popen('ls', shell=True)", "OSError", "no processes"),
            ("import subprocess\nsubprocess.check_output('ls')", "OSError", "no processes"),
            ("import os\nos.system('ls')", "OSError", "no processes"),
            ("import os\nos.popen('ls')", "OSError", "no processes"),
            (
                "import asyncio\nawait asyncio.create_subprocess_exec('ls')",
                "OSError",
                "no processes",
            ),
            (
                "import asyncio\nawait asyncio.create_subprocess_shell('ls')",
                "OSError",
                "no processes",
            ),
            (
                "import multiprocessing\nmultiprocessing.Process(target=print).start()",
                "OSError",
                "no processes",
            ),
            ("import multiprocessing\nmultiprocessing.Pool(2)", "OSError", "no processes"),
            (
                "import multiprocessing as mp\nmp.get_context('spawn').Process().start()",
                "OSError",
                "no processes",
            ),
            ("import multiprocessing\nmultiprocessing.Manager()", "OSError", "no processes"),
            ("import multiprocessing\nmultiprocessing.Queue()", "OSError", "no processes"),
            ("import multiprocessing\nmultiprocessing.Lock()", "OSError", "no processes"),
            (
                "import concurrent.futures\nconcurrent.futures.ProcessPoolExecutor()",
                "OSError",
                "no processes",
            ),
            (
                "import threading\nthreading.Thread(target=print).start()",
                "RuntimeError",
                "no threads",
            ),
            ("import threading\nthreading.Timer(1, print).start()", "RuntimeError", "no threads"),
            ("import _thread\n_thread.start_new_thread(print, ())", "RuntimeError", "no threads"),
            ("import signal\nsignal.signal(signal.SIGINT, print)", "ValueError", "no signals"),
            ("import signal\nsignal.raise_signal(signal.SIGINT)", "ValueError", "no signals"),
            (
                "import asyncio\nasyncio.get_running_loop().add_signal_handler(2, print)",
                "NotImplementedError",
                "no signals",
            ),
            ("import ctypes\nctypes.CDLL('libc.so.6')", "OSError", "no ctypes"),
            ("import ctypes\nctypes.cdll.LoadLibrary('x')", "OSError", "no ctypes"),
            ("import ctypes\nctypes.c_int(5)", "OSError", "no ctypes"),
            (
                "import ctypes\n"
                "class S(ctypes.Structure): _fields_ = [('x', ctypes.c_int * 3)]\nS()",
                "OSError",
                "no ctypes",
            ),
        ]
        for code, kind, message in tests:
            with self.subTest(code):
                result = Session().run(code)
                self.assertEqual("exception", result.outcome, result)
                self.assertEqual(kind, result.error["type"], result.error)
                self.assertIn(message, result.error["message"])
                self.assertNotIn("frozen codeexec", result.error["traceback"])
                self.assertEqual("", result.stderr)

    def test_modules_that_libraries_import(self):
        modules = (
            "socket ssl select selectors subprocess threading multiprocessing multiprocessing.pool "
            "multiprocessing.managers multiprocessing.connection concurrent.futures.process ctypes "
            "ctypes.util http.client http.server urllib.request smtplib ftplib imaplib poplib "
            "xmlrpc.client logging.handlers logging.config socketserver webbrowser "
            "asyncio.subprocess asyncio.sslproto asyncio.selector_events asyncio.unix_events "
            "unittest.mock wsgiref.simple_server "
            "email.mime.text uuid platform pydoc pdb signal sched queue mailbox"
        ).split()
        for module in modules:
            with self.subTest(module):
                result = Session().run(f"import {module}")
                self.assertEqual(
                    ("ok", "", ""), (result.outcome, result.stdout, result.stderr), result
                )

    def test_names_that_libraries_use(self):
        result = Session().run(_LIBRARY_NAMES)
        self.assertEqual("ok", result.outcome, result.error.get("traceback"))

    def test_what_os_and_signal_lack_is_explained(self):
        session = Session()
        self.assertEqual("False", session.run("import os\nhasattr(os, 'nonsense')").value)
        error = session.run("os.lisdir").error
        self.assertIn("Did you mean: 'listdir'?", error["message"])

    def test_threads_that_are_not_started_are_fine(self):
        code = (
            "import threading\nt = threading.Thread(target=print)\n"
            "lock = threading.RLock()\nwith lock: pass\n"
            "threading.current_thread().name, threading.active_count()"
        )
        self.assertEqual("('MainThread', 1)", Session().run(code).value)


_LIBRARY_NAMES = r"""
import ctypes.util, multiprocessing, os, select, socket, ssl, struct, subprocess

assert socket.timeout is TimeoutError and socket.error is OSError
assert issubclass(socket.gaierror, OSError)
assert socket.AF_INET == 2 and socket.AF_INET.name == 'AF_INET'
assert socket.SOCK_STREAM and socket.IPPROTO_TCP
assert socket.inet_aton('127.1') == b'\x7f\0\0\1' and socket.inet_ntoa(b'\1\2\3\4') == '1.2.3.4'
assert socket.inet_pton(socket.AF_INET6, '::1')[-1] == 1
assert socket.inet_ntop(socket.AF_INET6, bytes(15) + b'\1') == '::1'
assert struct.pack('!H', 258) == struct.pack('=H', socket.htons(258))
assert socket.ntohs(socket.htons(258)) == 258
assert socket.gethostname() and socket.getfqdn()
class Mine(socket.socket): pass

context = ssl.create_default_context()
context.check_hostname = False
context.verify_mode = ssl.CERT_NONE
context.options |= ssl.OP_NO_TLSv1
context.minimum_version = ssl.TLSVersion.TLSv1_2
context.load_verify_locations('x')
context.set_alpn_protocols(['h2'])
assert issubclass(ssl.SSLError, OSError)
assert ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).check_hostname
assert ssl.PEM_cert_to_DER_cert(ssl.DER_cert_to_PEM_cert(b'x' * 99)) == b'x' * 99
assert ssl.cert_time_to_seconds('Jan  5 09:34:43 2018 GMT') == 1515144883

assert subprocess.PIPE == -1
assert str(subprocess.CalledProcessError(2, 'x')).endswith('status 2.')
words = ['a b', 'c"d', '', 'e\\', 'f\\ g\\']
assert subprocess.list2cmdline(words) == r'"a b" c\"d "" e\ "f\ g\\"'
assert select.select([], [], [], 0) == ([], [], [])
assert ctypes.util.find_library('c') is None
assert multiprocessing.cpu_count() == 1 == os.cpu_count()
"""


class MissingModules(unittest.TestCase):
    def test_import_says_what_there_is(self):
        tests = [
            ("import numpy", "No module named 'numpy'", "/projects/packages"),
            ("from requests import get", "no network", "MCP tool"),
            ("import matplotlib.pyplot as plt", "render_chart", "/projects/packages"),
            ("import nonsense.deep", "No module named 'nonsense'", "standard library"),
            ("import msvcrt", "standard library", "sandbox"),
            ("__import__('numpy')", "No module named 'numpy'", "/projects/packages"),
            (
                "import importlib\nimportlib.import_module('numpy')",
                "No module named 'numpy'",
                "/projects/packages",
            ),
        ]
        for code, *parts in tests:
            with self.subTest(code):
                error = Session().run(code).error
                self.assertEqual("ModuleNotFoundError", error["type"])
                for part in parts:
                    self.assertIn(part, error["message"])
                self.assertNotIn('importlib._bootstrap>", line', error["traceback"])
                self.assertNotIn("find_spec", error["traceback"])

    def test_name_of_the_exception(self):
        code = "try:\n    import numpy\nexcept ImportError as e:\n    x = e.name\nx"
        self.assertEqual("'numpy'", Session().run(code).value)

    def test_find_spec_still_returns_none(self):
        self.assertEqual(
            "True",
            Session().run("import importlib.util\nimportlib.util.find_spec('numpy') is None").value,
        )

    def test_submodules_and_names_are_as_usual(self):
        self.assertIn(
            "No module named 'json.nope'", Session().run("import json.nope").error["message"]
        )
        self.assertIn(
            "cannot import name 'nope'", Session().run("from json import nope").error["message"]
        )

    def test_folder_on_the_path_that_appears_later(self):
        code = (
            "import sys, os, tempfile\nfolder = tempfile.mkdtemp() + '/later'\n"
            "sys.path.append(folder)\n"
            "try: import appears_later\nexcept ImportError: pass\n"
            "os.mkdir(folder)\nopen(folder + '/appears_later.py', 'w').write('x = 5')"
        )
        first, second = run_in_fork(code, "import appears_later\nappears_later.x")
        self.assertEqual(("ok", "5"), (second.outcome, second.value), second)


class Fork(unittest.TestCase):
    def test_sessions_differ_in_what_is_random(self):
        code = (
            "import random, uuid, tempfile, secrets\n"
            "(random.random(), random.randint(0, 10**12), str(uuid.uuid1()), str(uuid.uuid4()),"
            " next(tempfile._get_candidate_names()), secrets.token_hex())"
        )
        import random
        import tempfile
        import uuid

        seen = []
        for _ in range(2):
            random.seed(1)
            tempfile._get_candidate_names()
            uuid._node = 5
            guest.after_fork()
            seen.append(eval(Session().run(code).value))
        for first, second in zip(*seen):
            self.assertNotEqual(first, second)

    def test_environment(self):
        result = Session().run(
            "import os, sys\n"
            "os.environ['HOME'] != '' and '' in sys.path and '/projects/packages' in sys.path"
        )
        self.assertEqual("True", result.value)


if __name__ == "__main__":
    unittest.main()
