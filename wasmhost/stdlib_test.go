package wasmhost_test

import (
	"os"
	"strings"
	"testing"

	"codeexec/wasmhost"
)

// The C modules that are linked in: one that is lost is noticed here, not by a user.
func TestBuiltinModules(t *testing.T) {
	s := newSession(t, wasmhost.SessionOptions{})
	r := run(t, s, "import sys\nprint(*sorted(sys.builtin_module_names), sep='\\n')")
	const name = "testdata/builtin_modules.txt"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(name, []byte(r.Stdout.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if r.Stdout.String() != string(want) {
		t.Errorf("%s differs (UPDATE=1 rewrites it); got:\n%s", name, r.Stdout)
	}
}

// Each module imports and does its work.
func TestStandardLibrary(t *testing.T) {
	tests := []struct{ module, code, want string }{
		{"json", "json.loads(json.dumps({'a': [1, 2.5, None]}))", "{'a': [1, 2.5, None]}"},
		{"datetime", "datetime.datetime(2026, 2, 28) + datetime.timedelta(days=1)", "datetime.datetime(2026, 3, 1, 0, 0)"},
		{"decimal", "decimal.Decimal('0.1') + decimal.Decimal('0.2')", "Decimal('0.3')"},
		{"re", "re.sub(r'(\\w)(\\d)', r'\\2\\1', 'a1 b2')", "'1a 2b'"},
		{"math", "math.isqrt(10**20), math.comb(5, 2)", "(10000000000, 10)"},
		{"cmath", "cmath.sqrt(-1)", "1j"},
		{"random", "random.Random(1).randint(1, 10**6)", "140892"},
		{"statistics", "statistics.median([3, 1, 2])", "2"},
		{"struct", "struct.unpack('<I', struct.pack('>I', 1))", "(16777216,)"},
		{"array", "array.array('d', [1]).tobytes()", `b'\x00\x00\x00\x00\x00\x00\xf0?'`},
		{"csv", "list(csv.reader(['a,\"b,c\"']))", "[['a', 'b,c']]"},
		{"pickle", "pickle.loads(pickle.dumps({1, 2}))", "{1, 2}"},
		{"hashlib", "all(hashlib.new(a) for a in hashlib.algorithms_guaranteed), hashlib.sha3_256(b'x').hexdigest()[:8]", "(True, '741efa31')"},
		{"hmac", "hmac.new(b'k', b'm', 'sha256').hexdigest()[:8]", "'b60090e3'"},
		{"zlib", "zlib.decompress(zlib.compress(b'x' * 1000)) == b'x' * 1000", "True"},
		{"gzip", "gzip.decompress(gzip.compress(b'x'))", "b'x'"},
		{"bz2", "bz2.decompress(bz2.compress(b'x'))", "b'x'"},
		{"lzma", "lzma.decompress(lzma.compress(b'x'))", "b'x'"},
		{"zipfile", "zipfile.is_zipfile(__import__('io').BytesIO(b'x'))", "False"},
		{"tarfile", "tarfile.TarInfo('a').name", "'a'"},
		{"sqlite3", "sqlite3.connect(':memory:').execute('select sqrt(16.0), json(\\'[1]\\')').fetchone()", "(4.0, '[1]')"},
		{"xml.etree.ElementTree", "xml.etree.ElementTree.fromstring('<a b=\"1\"/>').get('b')", "'1'"},
		{"xml.sax", "xml.sax.parseString('<a/>', xml.sax.ContentHandler())", ""},
		{"unicodedata", "unicodedata.name('é')", "'LATIN SMALL LETTER E WITH ACUTE'"},
		{"zoneinfo", "len(zoneinfo.available_timezones()) > 400", "True"},
		{"asyncio", "await asyncio.wait_for(asyncio.sleep(0, 'x'), 5)", "'x'"},
		{"contextvars", "contextvars.ContextVar('x', default=1).get()", "1"},
		{"dataclasses", "dataclasses.make_dataclass('P', ['x'])(1)", "P(x=1)"},
		{"typing", "typing.get_args(typing.Optional[int])", "(<class 'int'>, <class 'NoneType'>)"},
		{"ast", "ast.unparse(ast.parse('x+1'))", "'x + 1'"},
		{"inspect", "str(inspect.signature(lambda a, *, b=1: 0))", "'(a, *, b=1)'"},
		{"logging", "logging.getLevelName(30)", "'WARNING'"},
		{"unittest", "unittest.TestCase().assertEqual(1, 1)", ""},
		{"email", "email.message_from_string('Subject: x\\n\\nbody')['subject']", "'x'"},
		{"email.mime.text", "email.mime.text.MIMEText('x').get_content_type()", "'text/plain'"},
		{"html", "html.unescape('&amp;&eacute;')", "'&é'"},
		{"html.parser", "html.parser.HTMLParser().feed('<p>')", ""},
		{"urllib.parse", "urllib.parse.urlsplit('https://a.b/c?d=e').query", "'d=e'"},
		{"urllib.request", "urllib.request.Request('http://a.b').host", "'a.b'"},
		{"http", "http.HTTPStatus(404).phrase", "'Not Found'"},
		{"http.client", "http.client.responses[200]", "'OK'"},
		{"uuid", "uuid.uuid5(uuid.NAMESPACE_DNS, 'x').version", "5"},
		{"secrets", "len(secrets.token_bytes(4))", "4"},
		{"tempfile", "tempfile.TemporaryFile().write(b'x'), tempfile.gettempdir()", "(1, '/tmp')"},
		{"difflib", "difflib.get_close_matches('appel', ['apple', 'x'])", "['apple']"},
		{"textwrap", "textwrap.dedent('  x')", "'x'"},
		{"locale", "locale.getpreferredencoding()", "'utf-8'"},
		{"calendar", "calendar.isleap(2028)", "True"},
		{"heapq", "heapq.nlargest(2, [1, 3, 2])", "[3, 2]"},
		{"bisect", "bisect.bisect([1, 2, 3], 2)", "2"},
		{"fractions", "fractions.Fraction(1, 3) + 1", "Fraction(4, 3)"},
		{"ipaddress", "ipaddress.ip_network('10.0.0.0/30').num_addresses", "4"},
		{"base64", "base64.b85encode(b'xyz')", "b'czJp'"},
		{"configparser", "configparser.ConfigParser().sections()", "[]"},
		{"tomllib", "tomllib.loads('a = 1')", "{'a': 1}"},
		{"argparse", "argparse.ArgumentParser().parse_args([])", "Namespace()"},
		{"pprint", "pprint.pformat({'a': 1})", `"{'a': 1}"`},
		{"traceback", "traceback.format_exception_only(ValueError('x'))", `['ValueError: x\n']`},
		{"concurrent.futures", "list(concurrent.futures.ThreadPoolExecutor().map(abs, [-1]))", "[1]"},
		{"threading", "threading.Lock().acquire(), threading.RLock().acquire(), threading.current_thread().name", "(True, True, 'MainThread')"},
		{"queue", "queue.Queue().empty()", "True"},
		{"importlib.metadata", "importlib.metadata.metadata", ""},
		{"importlib.resources", "importlib.resources.files('json') is not None", "True"},
		{"importlib.util", "importlib.util.find_spec('json').name", "'json'"},
		{"itertools", "list(itertools.batched('abc', 2))", "[('a', 'b'), ('c',)]"},
		{"functools", "functools.reduce(lambda a, b: a + b, [1, 2])", "3"},
		{"collections", "collections.Counter('aab').most_common(1)", "[('a', 2)]"},
		{"string", "string.Template('$x').substitute(x=1)", "'1'"},
		{"copy", "copy.deepcopy([[1]])", "[[1]]"},
		{"enum", "enum.Enum('E', 'A').A.value", "1"},
		{"graphlib", "list(graphlib.TopologicalSorter({1: [2]}).static_order())", "[2, 1]"},
		{"shlex", "shlex.split('a \"b c\"')", "['a', 'b c']"},
		{"glob", "glob.glob('/tm?')", "['/tmp']"},
		{"shutil", "shutil.which('x')", ""},
		{"mimetypes", "mimetypes.guess_type('a.png')[0]", "'image/png'"},
		{"colorsys", "colorsys.rgb_to_hsv(1, 0, 0)", "(0.0, 1.0, 1)"},
		{"timeit", "timeit.timeit('1', number=1) < 60", "True"},
		{"platform", "platform.system()", "'wasi'"},
		{"optparse", "optparse.OptionParser().usage", ""},
		{"sched", "sched.scheduler().empty()", "True"},
		{"wave", "wave.Error.__name__", "'Error'"},
		{"xmlrpc.client", "xmlrpc.client.dumps((1,))[:8]", "'<params>'"},
		{"smtplib", "smtplib.SMTP_PORT", "25"},
		{"socketserver", "socketserver.TCPServer.__name__", "'TCPServer'"},
		{"multiprocessing", "multiprocessing.cpu_count() >= 1", "True"},
		{"ssl", "ssl.SSLError.__mro__[1].__name__", "'OSError'"},
		{"select", "select.error is OSError", "True"},
		{"subprocess", "subprocess.PIPE", "-1"},
		{"signal", "signal.SIGINT.value", "2"},
		{"ctypes", "ctypes.__name__", "'ctypes'"},
		{"dbm", "dbm.whichdb('/tmp/x')", ""},
		{"pydoc", "pydoc.plain(pydoc.render_doc(len))[:6]", "'Python'"},
		{"doctest", "doctest.testmod.__name__", "'testmod'"},
		{"cProfile", "cProfile.Profile().enable()", ""},
		{"tracemalloc", "tracemalloc.is_tracing()", "False"},
		{"symtable", "symtable.symtable('x', 'f', 'exec').get_name()", "'top'"},
		{"tokenize", "tokenize.NAME", "1"},
		{"dis", "dis.opname[0]", "'CACHE'"},
		{"code", "code.compile_command('1') is not None", "True"},
		{"encodings.idna", "'ü'.encode('idna'), 'ü'.encode('cp1252'), '語'.encode('shift_jis')", `(b'xn--tda', b'\xfc', b'\x8c\xea')`},
	}
	s := newSession(t, wasmhost.SessionOptions{})
	for _, tc := range tests {
		t.Run(tc.module, func(t *testing.T) {
			r := run(t, s, "import "+tc.module+"\n"+tc.code)
			if r.Outcome != wasmhost.Success {
				t.Fatalf("%s\n%s", r.Outcome, traceback(r))
			}
			if tc.want != "" && r.Value != tc.want {
				t.Errorf("%s = %s, want %s", tc.code, r.Value, tc.want)
			}
		})
	}
}

// What the sandbox lacks says so in one line, at the call.
func TestRefusalsSayWhatToDo(t *testing.T) {
	tests := []struct{ name, code, except, message string }{
		{"sockets", "import socket\nsocket.create_connection(('example.com', 80))", "OSError", "no network"},
		{"urlopen", "import urllib.request\nurllib.request.urlopen('http://example.com')", "", "no network"},
		{"subprocesses", "import subprocess\nsubprocess.run(['ls'])", "OSError", "no processes"},
		{"os.system", "import os\nos.system('ls')", "OSError", "no processes"},
		{"threads", "import threading\nthreading.Thread(target=print).start()", "RuntimeError", "thread"},
		{"missing packages", "import numpy", "ModuleNotFoundError", "/projects/packages"},
		{"breakpoint", "breakpoint()", "", "debugger"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			r := run(t, newSession(t, wasmhost.SessionOptions{}), tc.code)
			if r.Exception == nil || tc.except != "" && r.Exception.Type != tc.except || !strings.Contains(r.Exception.Message, tc.message) ||
				strings.Contains(r.Exception.Message, "\n") {
				t.Errorf("got %+v, want %s with %q in one line", r.Exception, tc.except, tc.message)
			}
		})
	}
}
