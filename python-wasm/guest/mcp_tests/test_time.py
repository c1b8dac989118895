"""Times in the zones of the world."""

from datetime import UTC, datetime, timedelta, timezone
import unittest
from zoneinfo import ZoneInfo

from mcp_tests import fake_host  # noqa: F401, before anything of mcp
from mcp import runtime


class TimeTest(unittest.TestCase):
    def test_now(self):
        for tz in ("UTC", "Asia/Tokyo", ZoneInfo("Europe/Berlin"), UTC):
            with self.subTest(tz):
                moment = runtime.now(tz)
                self.assertEqual(str(moment.tzinfo), str(tz))
                self.assertLess(abs(datetime.now(UTC) - moment), timedelta(minutes=1))

    def test_convert(self):
        tests = [
            ("text", "2025-07-01T12:00Z", "2025-07-01T21:00:00+09:00"),
            ("text with an offset", "2025-07-01T12:00+02:00", "2025-07-01T19:00:00+09:00"),
            ("text without a zone", "2025-07-01 12:00", "2025-07-01T21:00:00+09:00"),
            ("date", "2025-07-01", "2025-07-01T09:00:00+09:00"),
            ("without a zone", datetime(2025, 7, 1, 12), "2025-07-01T21:00:00+09:00"),
            ("with one", datetime(2025, 7, 1, 12, tzinfo=timezone(timedelta(hours=2))), "2025-07-01T19:00:00+09:00"),
            ("seconds", 0, "1970-01-01T09:00:00+09:00"),
        ]
        for name, moment, want in tests:
            with self.subTest(name):
                self.assertEqual(runtime.convert_time(moment, "Asia/Tokyo").isoformat(), want)

    def test_summer_and_winter(self):
        hours = [runtime.convert_time(f"2025-{m}-01T12:00Z", "Europe/Berlin").hour for m in ("01", "07")]
        self.assertEqual(hours, [13, 14])

    def test_mistakes(self):
        tests = [
            ("city", lambda: runtime.now("berlin"), ValueError, "unknown time zone 'berlin'. Did you mean 'Europe/Berlin'"),
            ("city of two words", lambda: runtime.now("new york"), ValueError, "'America/New_York'"),
            ("typo", lambda: runtime.now("Europe/Brelin"), ValueError, "'Europe/Berlin'"),
            ("folder", lambda: runtime.now("Europe"), ValueError, "unknown time zone 'Europe'"),
            ("path", lambda: runtime.now("../etc/passwd"), ValueError, "unknown time zone"),
            ("NUL", lambda: runtime.now("a\0"), ValueError, "unknown time zone"),
            ("nothing", lambda: runtime.now(""), ValueError, "unknown time zone"),
            ("None", lambda: runtime.now(None), TypeError, "not NoneType"),
            ("no time", lambda: runtime.convert_time("tomorrow", "UTC"), ValueError, "'tomorrow' is no time in ISO"),
            ("a list", lambda: runtime.convert_time([], "UTC"), TypeError, "not list"),
            ("region", lambda: runtime.list_timezones("Narnia"), ValueError, "unknown region 'Narnia'. Regions: Africa"),
        ]
        for name, call, error, message in tests:
            with self.subTest(name), self.assertRaisesRegex(error, message):
                call()

    def test_list(self):
        names = runtime.list_timezones()
        self.assertEqual(names, sorted(names))
        self.assertIn("UTC", names)
        europe = runtime.list_timezones("europe/")
        self.assertIn("Europe/Berlin", europe)
        self.assertTrue(all(name.startswith("Europe/") for name in europe))


if __name__ == "__main__":
    unittest.main()
