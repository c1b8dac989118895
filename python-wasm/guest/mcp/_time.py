"""Times in the zones of the world. The functions are names of `mcp.runtime`.

# Why a time without a zone is one of UTC

The sandbox has no zone of its own, and what `datetime.now()` says in it is UTC.
"""

__all__ = ["convert_time", "list_timezones", "now"]

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, available_timezones

from mcp._names import close_matches, listing


def now(tz: str | tzinfo = "UTC") -> datetime:
    """Return the time of now in a time zone.

        >>> now("Europe/Berlin").isoformat(timespec="minutes")
        '2025-07-01T14:30+02:00'
    """
    return datetime.now(_zone(tz))


def convert_time(dt: datetime | str | float, tz: str | tzinfo) -> datetime:
    """Return a time as it is in another time zone.

    `dt` is a datetime, a text in ISO format, or seconds since 1970. One without
    a zone is taken for UTC.

        >>> convert_time("2025-07-01T12:00Z", "Asia/Tokyo").isoformat()
        '2025-07-01T21:00:00+09:00'
    """
    zone = _zone(tz)
    match dt:
        case datetime():
            moment = dt
        case str():
            moment = _parsed(dt)
        case int() | float():
            moment = datetime.fromtimestamp(dt, UTC)
        case _:
            raise TypeError(f"dt must be a datetime or a text in ISO format, not {type(dt).__name__}")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(zone)


def list_timezones(region: str | None = None) -> list[str]:
    """Return the names of time zones, sorted; with `region` those that begin with it.

        >>> list_timezones("Australia")[:2]
        ['Australia/ACT', 'Australia/Adelaide']
    """
    names = sorted(available_timezones())
    if region is None:
        return names
    prefix = region.rstrip("/").lower() + "/"
    found = [name for name in names if name.lower().startswith(prefix)]
    if not found:
        regions = sorted({name.partition("/")[0] for name in names if "/" in name})
        raise ValueError(f"unknown region {region!r}. Regions: {listing(regions)}")
    return found


def _zone(tz: str | tzinfo) -> tzinfo:
    if isinstance(tz, tzinfo):
        return tz
    if not isinstance(tz, str):
        raise TypeError(f"tz must be the name of a time zone, not {type(tz).__name__}")
    try:
        return ZoneInfo(tz)
    except (LookupError, OSError, ValueError):  # no such key, a folder, or no key at all
        pass
    raise ValueError(f"unknown time zone {tz!r}. {_suggestion(tz)}")


def _suggestion(tz: str) -> str:
    wanted = tz.strip().replace(" ", "_")
    names = sorted(available_timezones())
    # Whoever writes "berlin" means the city; all its zones end with it.
    cities = [name for name in names if name.lower().rpartition("/")[2] == wanted.lower()]
    matches = cities or close_matches(wanted, names)
    if not matches:
        return "list_timezones() returns their names."
    return f"Did you mean {' or '.join(map(repr, matches[:3]))}?"


def _parsed(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        pass
    raise ValueError(f"{text!r} is no time in ISO format, such as '2025-07-01T12:00+02:00'")
