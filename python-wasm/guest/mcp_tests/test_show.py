"""What `display` takes for a picture, and what it prints."""

import base64
from contextlib import redirect_stderr, redirect_stdout
import io
import os
from pathlib import Path
import tempfile
import unittest

from mcp_tests.fake_host import GuestTest
from mcp import _session, runtime

PNG = b"\x89PNG\r\n\x1a\nrest"
JPEG = b"\xff\xd8\xffrest"
SVG = "<svg xmlns='http://www.w3.org/2000/svg'/>"


def offers(**methods):
    """Return an object with methods that return the given values."""
    return type("Offer", (), {name: lambda self, value=value: value for name, value in methods.items()})()


class Bundle:
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {"text/plain": "x", "image/png": PNG}, {}


class ShowTest(GuestTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.png = self.folder / "a.png"
        self.png.write_bytes(PNG)

    def shown(self, *objects):
        """Return the bytes of the pictures that are shown, and what is printed."""
        self.host.shown.clear()
        out = io.StringIO()
        with redirect_stdout(out):
            runtime.display(*objects)
        return [data for _, [data] in self.host.shown], out.getvalue()

    def test_pictures(self):
        tests = [
            ("bytes", PNG, PNG),
            ("bytearray", bytearray(JPEG), JPEG),
            ("memoryview", memoryview(PNG), PNG),
            ("gif", b"GIF89a...", b"GIF89a..."),
            ("webp", b"RIFF1234WEBPVP8", b"RIFF1234WEBPVP8"),
            ("svg", SVG.encode(), SVG.encode()),
            ("svg with a declaration", b'<?xml version="1.0"?>\n' + SVG.encode(), b'<?xml version="1.0"?>\n' + SVG.encode()),
            ("Image", runtime.Image(PNG), PNG),
            ("Image that is none", runtime.Image(b"html"), b"html"),  # the host says what is wrong
            ("Resource", runtime.Resource("x://y", "image/png", None, PNG), PNG),
            ("Resource of text", runtime.Resource("x://y", "image/svg+xml", SVG), SVG.encode()),
            ("path", self.png, PNG),
            ("path as str", str(self.png), PNG),
            ("_repr_png_", offers(_repr_png_=PNG), PNG),
            ("_repr_png_ in base64", offers(_repr_png_=base64.b64encode(PNG).decode()), PNG),
            ("_repr_png_ with metadata", offers(_repr_png_=(PNG, {"width": 1})), PNG),
            ("_repr_jpeg_", offers(_repr_png_=None, _repr_jpeg_=JPEG), JPEG),
            ("_repr_svg_", offers(_repr_svg_=SVG), SVG.encode()),
            ("_repr_mimebundle_", Bundle(), PNG),
        ]
        for name, value, want in tests:
            with self.subTest(name):
                self.assertEqual(self.shown(value), ([want], ""))

    def test_text(self):
        tests = [
            ("str", "a.png", "'a.png'\n"),
            ("str with NUL", "a\0b", "'a\\x00b'\n"),
            ("path of another file", __file__, f"{__file__!r}\n"),
            ("bytes", b"text", "b'text'\n"),
            ("None", None, "None\n"),
            ("Audio", runtime.Audio(b"RIFF"), "<Audio audio/wav 4 bytes>\n"),
            ("Resource", runtime.Resource("x://y", None, "text"), "<Resource x://y 4 characters>\n"),
            ("html", offers(_repr_html_="<b>x</b>"), "<b>x</b>\n"),
            ("markdown", offers(_repr_html_="<b>x</b>", _repr_markdown_=("**x**", {})), "**x**\n"),
            ("a class", Bundle, f"{Bundle!r}\n"),
        ]
        for name, value, want in tests:
            with self.subTest(name):
                self.assertEqual(self.shown(value), ([], want))

    def test_several_in_their_order(self):
        self.assertEqual(self.shown(PNG, "x", JPEG), ([PNG, JPEG], "'x'\n"))

    def test_more_than_the_host_takes(self):
        from codeexec import host

        def refuse(header, attachments):
            raise OverflowError

        self.addCleanup(setattr, host, "show", host.show)
        host.show = refuse
        self.assertEqual(self.shown(PNG), ([], "[image not shown: 12 bytes are more than a run can show]\n"))

    def test_value_of_a_run(self):
        for value, pictures in (
            (runtime.Image(PNG), 1),
            (offers(_repr_png_=PNG), 1),
            (offers(_repr_png_=None), 0),
            (PNG, 0),  # its repr is the result
            (self.png, 0),
            (offers(_repr_html_="x"), 0),
        ):
            with self.subTest(repr(value)):
                self.host.shown.clear()
                _session.show_value(value)
                self.assertEqual(len(self.host.shown), pictures)

    def test_value_that_fails(self):
        class Broken:
            def _repr_png_(self):
                return 1 / 0

        err = io.StringIO()
        with redirect_stderr(err):
            _session.show_value(Broken())
        self.assertEqual(err.getvalue(), "Broken can't be shown: ZeroDivisionError: division by zero\n")


class FilesTest(GuestTest):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve() / "executions" / "run"
        self.host.execution = {"path": str(self.folder), "url": "file:///home/me/run"}
        self.run_with()

    def test_save_file(self):
        tests = [
            ("text", ("a.csv", "ü\n"), "data/a.csv", "ü\n".encode()),
            ("bytes", ("a.bin", b"\0\xff"), "data/a.bin", b"\0\xff"),
            ("another folder", ("a.txt", "x", "logs/today"), "logs/today/a.txt", b"x"),
            ("no folder", ("b.txt", "x", ""), "b.txt", b"x"),
            ("a name with a folder", ("x/y.txt", "x"), "data/x/y.txt", b"x"),
            ("a path", (Path("z.txt"), "x"), "data/z.txt", b"x"),
            ("replaces", ("a.csv", "new"), "data/a.csv", b"new"),
        ]
        for name, arguments, path, data in tests:
            with self.subTest(name):
                self.assertEqual(runtime.save_file(*arguments), f"file:///home/me/run/{path}")
                self.assertEqual((self.folder / path).read_bytes(), data)

    def test_url_is_escaped(self):
        url = runtime.save_file("50% ü #1?.txt", "")
        self.assertEqual(url, "file:///home/me/run/data/50%25%20%C3%BC%20%231%3F.txt")

    def test_names_that_lead_out(self):
        for name in ("../x", "a/../../x", "/etc/passwd", "..", "", ".", "a/", "a\0b", "a\\b", "a\nb", "\udc80"):
            with self.subTest(name), self.assertRaises(ValueError):
                runtime.save_file(name, "x")
        for subdir in ("..", "/tmp", "a/../.."):
            with self.subTest(subdir), self.assertRaises(ValueError):
                runtime.save_file("x", "x", subdir)
        self.assertFalse(self.folder.exists())

    def test_symbolic_links(self):
        runtime.execution_folder()
        outside = self.folder.parent.parent / "outside"
        outside.mkdir()
        os.symlink(outside, self.folder / "data")
        os.symlink(outside / "x", self.folder / "link")
        for arguments in (("a", "x"), ("link", "x", "")):
            with self.subTest(arguments), self.assertRaisesRegex(ValueError, "symbolic link"):
                runtime.save_file(*arguments)
        self.assertEqual(list(outside.iterdir()), [])

    def test_content_of_another_type(self):
        with self.assertRaisesRegex(TypeError, "not dict; write json.dumps"):
            runtime.save_file("a", {"x": 1})

    def test_save_image(self):
        self.assertEqual(runtime.save_image("shot", runtime.Image(PNG)), "file:///home/me/run/images/shot.png")
        self.assertEqual(runtime.save_image("photo", JPEG), "file:///home/me/run/images/photo.jpg")
        self.assertEqual(runtime.save_image("plan", SVG.encode()), "file:///home/me/run/images/plan.svg")
        self.assertEqual(runtime.save_image("x.jpeg", JPEG), "file:///home/me/run/images/x.jpeg")
        with self.assertRaisesRegex(ValueError, "x.png: not a picture but str"):
            runtime.save_image("x.png", "nothing")
        self.assertEqual(
            runtime.list_execution_files(),
            ["images/photo.jpg", "images/plan.svg", "images/shot.png", "images/x.jpeg"],
        )

    def test_folder(self):
        self.assertEqual(runtime.list_execution_files(), [])
        self.assertFalse(self.folder.exists())
        self.assertEqual(runtime.execution_folder(), self.folder)
        self.assertTrue(self.folder.is_dir())

    def test_no_folder(self):
        self.host.execution = None
        self.run_with()
        for call in (
            runtime.execution_folder,
            runtime.list_execution_files,
            lambda: runtime.save_file("a", "x"),
            lambda: runtime.save_image("a", PNG),
        ):
            with self.subTest(call), self.assertRaisesRegex(runtime.MCPError, "CODEEXEC_STATE_DIR"):
                call()


if __name__ == "__main__":
    unittest.main()
