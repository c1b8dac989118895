"""What `render_chart` makes of rows."""

from array import array
from contextlib import redirect_stderr
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
import io
from math import isnan, nan
from pathlib import Path
import tempfile
import unittest

from mcp_tests.fake_host import GuestTest
from mcp import runtime

ROWS = [
    {"city": "Bonn", "year": 2024, "sales": 1, "cost": 3},
    {"city": "Köln", "year": 2024, "sales": 2, "cost": None},
    {"city": "Bonn", "year": 2025, "sales": "3", "cost": nan},
]
DAY = 86_400.0


class ChartTest(GuestTest):
    def chart(self, *arguments, **options):
        """Return the parameters that were sent, and the columns of each series."""
        runtime.render_chart(*arguments, **options)
        params = self.host.asked("chart.render")[-1]
        columns = [[None if isnan(v) else v for v in array("d", data)] for data in self.host.attachments]
        size = 1 if params["type"] == "hist" else 2
        return params, [columns[i : i + size] for i in range(0, len(columns), size)]

    def setUp(self):
        super().setUp()
        self.run_with()

    def test_columns(self):
        params, series = self.chart(ROWS, "line", "year", ["sales", "cost"], title="T", width=5)
        self.assertEqual(
            params,
            {
                "type": "line", "title": "T", "x_name": "year", "y_name": "", "width": 5.0, "height": 6.0,
                "axis": "number", "labels": [], "series": ["sales", "cost"],
            },
        )
        years = [2024.0, 2024.0, 2025.0]
        self.assertEqual(series, [[years, [1.0, 2.0, 3.0]], [years, [3.0, None, None]]])

    def test_a_dict_of_columns_is_the_same(self):
        columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
        for kind in ("bar", "line", "pie"):
            self.assertEqual(self.chart(columns, kind, "city", "sales"), self.chart(ROWS, kind, "city", "sales"))

    def test_series(self):
        params, series = self.chart(ROWS, "bar", "year", "sales", series="city")
        self.assertEqual((params["labels"], params["series"]), (["2024", "2025"], ["Bonn", "Köln"]))
        self.assertEqual(series, [[[0.0, 1.0], [1.0, 3.0]], [[0.0], [2.0]]])
        params, _ = self.chart(ROWS, "line", "year", ["sales", "cost"], series="city")
        self.assertEqual(params["series"], ["Bonn sales", "Bonn cost", "Köln sales", "Köln cost"])

    def test_bars_of_rows(self):
        params, series = self.chart(ROWS, "bar", "city", "sales")
        self.assertEqual((params["labels"], series), (["Bonn", "Köln", "Bonn"], [[[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]]))

    def test_hist(self):
        params, series = self.chart(ROWS, "hist", "sales")
        self.assertEqual((params["x_name"], params["y_name"], series), ("sales", "count", [[[1.0, 2.0, 3.0]]]))
        _, series = self.chart(ROWS, "hist", "sales", series="city")
        self.assertEqual(series, [[[1.0, 3.0]], [[2.0]]])

    def test_kinds_of_x(self):
        berlin = timezone(timedelta(hours=2))
        tests = [
            ("numbers", [1, 2.5, Decimal("3")], "number", [1.0, 2.5, 3.0]),
            ("numbers as text", ["1", " 2 ", ""], "number", [1.0, 2.0]),
            ("dates", [date(1970, 1, 2), None, date(1970, 1, 3)], "time", [DAY, 2 * DAY]),
            ("dates as text", ["1970-01-02", "1970-01-03T12:00"], "time", [DAY, 2.5 * DAY]),
            ("times of a zone", [datetime(1970, 1, 2, 2, tzinfo=berlin)], "time", [DAY + 7200]),
            ("times are sorted", ["1970-01-03", "1970-01-02"], "time", [DAY, 2 * DAY]),
            ("text", ["a", "b", "a"], "category", [0.0, 1.0, 0.0]),
            ("mixed", ["2025-01-01", "soon"], "category", [0.0, 1.0]),
            ("bools", [True, False], "category", [0.0, 1.0]),
            ("nothing", [None], "category", [0.0]),
        ]
        for name, column, axis, want in tests:
            with self.subTest(name):
                params, series = self.chart({"x": column, "y": range(len(column))}, "line", "x", "y")
                self.assertEqual((params["axis"], series[0][0]), (axis, want))

    def test_labels(self):
        column = [datetime(2025, 1, 2), datetime(2025, 1, 2, 3), 1.5, 2, None, "x" * 200]
        params, _ = self.chart({"x": column, "y": range(6)}, "bar", "x", "y")
        self.assertEqual(
            params["labels"], ["2025-01-02", "2025-01-02 03:00:00", "1.5", "2", "—", "x" * 99 + "…"]
        )

    def test_mistakes(self):
        tests = [
            ("type", (ROWS, "bars", "city", "sales"), {}, ValueError, "Did you mean 'bar'"),
            ("column", (ROWS, "bar", "city", "salse"), {}, ValueError, "no column 'salse'. Did you mean 'sales'"),
            ("x", (ROWS, "bar", "cty", "sales"), {}, ValueError, "x: data has no column 'cty'. Did you mean 'city'"),
            ("series", (ROWS, "bar", "city", "sales"), {"series": "towns"}, ValueError, "series: data has no"),
            ("no y", (ROWS, "bar", "city"), {}, ValueError, "y is missing: name a column. Columns: city, year"),
            ("no y at all", (ROWS, "bar", "city", []), {}, ValueError, "y is empty"),
            ("empty", ([], "bar", "city", "sales"), {}, ValueError, "data is empty"),
            ("no columns", ({}, "bar", "city", "sales"), {}, ValueError, "data is empty"),
            ("text", (ROWS, "bar", "year", "city"), {}, ValueError, "y column 'city', row 0: 'Bonn' is not a number"),
            ("rows", ([(1, 2)], "bar", "a", "b"), {}, TypeError, r"data\[0\] must be a dict, not tuple"),
            ("data", ("abc", "bar", "a", "b"), {}, TypeError, "data must be a list of dicts"),
            ("lengths", ({"a": [1], "b": [1, 2]}, "bar", "a", "b"), {}, ValueError, "different lengths: a 1, b 2"),
            ("pie", (ROWS, "pie", "city", ["sales", "cost"]), {}, ValueError, "a pie shows one column"),
            ("twice", (ROWS + ROWS, "bar", "year", "sales"), {"series": "city"}, ValueError, "several rows with year='2024'"),
            ("width", (ROWS, "bar", "city", "sales"), {"width": "wide"}, TypeError, "width must be a number"),
            ("filename", (ROWS, "bar", "city", "sales"), {"filename": "x"}, runtime.MCPError, "no files can be saved"),
        ]
        for name, arguments, options, error, message in tests:
            with self.subTest(name), self.assertRaisesRegex(error, message):
                runtime.render_chart(*arguments, **options)
        self.assertEqual(self.host.asked("chart.render"), [])

    def test_shown_without_a_folder(self):
        self.assertEqual(runtime.render_chart(ROWS, "bar", "city", "sales"), "")
        self.assertEqual([header for header, _ in self.host.shown], [{"type": "picture", "saved": ""}])

    def test_saved(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.host.execution = {"path": str(Path(folder.name).resolve()), "url": "file:///run"}
        self.run_with()
        draw = lambda **options: runtime.render_chart(ROWS, "bar", "city", "sales", **options)
        self.assertEqual(draw(), "file:///run/images/chart-1.png")
        self.assertEqual(draw(), "file:///run/images/chart-2.png")
        self.assertEqual(draw(filename="mine"), "file:///run/images/mine.png")
        with self.assertRaises(ValueError):
            draw(filename="../mine")
        self.assertEqual(self.host.shown[-1][0], {"type": "picture", "saved": "images/mine.png"})

    def test_missing_glyphs(self):
        self.host.missing = "売"
        err = io.StringIO()
        with redirect_stderr(err):
            runtime.render_chart(ROWS, "bar", "city", "sales")
        self.assertIn("no glyphs for '売'", err.getvalue())


if __name__ == "__main__":
    unittest.main()
