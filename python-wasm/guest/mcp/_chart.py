"""`render_chart`: from rows to a chart. The host draws it.

This side makes columns of numbers of whatever the rows hold; the host decides
what can be drawn, and says why not.

# Why numbers travel as binary

100,000 points are 1.6 MB as floats, and some 4 MB of JSON that two sides would
have to write and read digit by digit.
"""

__all__ = ["render_chart"]

from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from math import isnan, nan
import sys
from typing import Any, Literal, NamedTuple

from mcp import _files, _host, _show
from mcp._names import did_you_mean

ChartType = Literal["bar", "line", "scatter", "area", "pie", "hist"]

_TYPES = ("bar", "line", "scatter", "area", "pie", "hist")
_EPOCH = datetime(1970, 1, 1)
_NO_LABEL = "—"


def render_chart(
    data: Iterable[Mapping[str, Any]] | Mapping[str, Sequence[Any]],
    chart_type: ChartType,
    x: str | None = None,
    y: str | Sequence[str] | None = None,
    *,
    title: str | None = None,
    series: str | None = None,
    filename: str | None = None,
    width: float = 10,
    height: float = 6,
) -> str:
    """Draw a chart, show it, save it in the run's folder and return its `file://` URL.

    `data` is a list of dicts, or a dict of columns. `x` and `y` name columns; `y`
    may be a list of them. `series` names a column whose values divide the rows
    into lines, or groups of bars. A `hist` wants `x` only. None and NaN leave a gap.
    Dates are placed by time. `width` and `height` are in inches, of 144 pixels.
    Where no files can be saved, the chart is only shown, and the URL is empty.

        >>> rows = [{"month": "2025-01-01", "sales": 3}, {"month": "2025-02-01", "sales": 5}]
        >>> render_chart(rows, "line", "month", "sales", title="Sales")
        'file:///home/me/MCPs/user_tools/executions/.../images/chart-1.png'
    """
    if chart_type not in _TYPES:
        raise ValueError(f"chart_type {chart_type!r} is unknown. {did_you_mean(str(chart_type), _TYPES, what='Types')}")
    if filename is not None:
        filename = filename if filename.lower().endswith(".png") else f"{filename}.png"
        _files._inside(filename, "images")
    table = _Table(data)
    chart = _hist(table, x, y, series) if chart_type == "hist" else _plot(table, chart_type, x, y, series)
    names = [each.name for each in chart.series]
    params = {
        "type": chart_type,
        "title": "" if title is None else str(title),
        "x_name": chart.x_name,
        "y_name": chart.y_name,
        "width": _inches("width", width),
        "height": _inches("height", height),
        "axis": chart.axis,
        "labels": chart.labels,
        "series": names,
    }
    columns = [column for each in chart.series for column in (each.x, each.y) if column is not None]
    reply = _host.call("chart.render", params, attachments=[column.tobytes() for column in columns])
    if missing := reply.value["missing"]:
        print(f"render_chart: the font has no glyphs for {missing!r}; they are drawn as boxes", file=sys.stderr)
    return _shown(reply.attachments[0], filename)


def _shown(png: bytes, filename: str | None) -> str:
    """Save the picture where that is possible, and show it."""
    url = name = ""
    if filename is not None or _files.available():
        name = filename or _files.unused("chart", ".png")
        url = _files.save_image(name, png)
    _show.show(png, f"images/{name}" if name else "")
    return url


def _inches(what: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{what} must be a number of inches, not {value!r}") from None


class _Series(NamedTuple):
    """A line: the numbers of its points. There is no `x` where values are counted."""

    name: str
    x: "array[float] | None"
    y: "array[float]"


class _Chart(NamedTuple):
    """What there is to be drawn, as the host wants it."""

    axis: str
    labels: list[str]
    series: list[_Series]
    x_name: str
    y_name: str


class _Table:
    """The columns of rows, or of a dict of columns."""

    def __init__(self, data: Any) -> None:
        self._columns: dict[str, list[Any]] | None = None
        self._rows: list[Any] = []
        if isinstance(data, Mapping):
            self._columns = {str(name): _listed(name, values) for name, values in data.items()}
            lengths = {len(column) for column in self._columns.values()}
            if len(lengths) > 1:
                shown = ", ".join(f"{name} {len(column)}" for name, column in self._columns.items())
                raise ValueError(f"the columns of data have different lengths: {shown}")
            self.size = max(lengths, default=0)
        elif isinstance(data, (str, bytes)) or not isinstance(data, Iterable):
            raise TypeError(f"data must be a list of dicts, or a dict of lists, not {type(data).__name__}")
        else:
            self._rows = list(data)
            self.size = len(self._rows)
            for number, row in enumerate(self._rows):
                if not (hasattr(row, "keys") and hasattr(row, "__getitem__")):
                    raise TypeError(f"data[{number}] must be a dict, not {type(row).__name__}")
        if self.size == 0:
            raise ValueError("data is empty: there is nothing to draw")

    def names(self) -> list[str]:
        """Return the names of all columns."""
        if self._columns is not None:
            return list(self._columns)
        return list(dict.fromkeys(name for row in self._rows for name in row.keys()))

    def column(self, what: str, name: Any) -> list[Any]:
        """Return a column; a row that lacks it has None there."""
        if name is None:
            raise ValueError(f"{what} is missing: name a column. Columns: {', '.join(map(str, self.names()))}")
        if self._columns is not None:
            if name in self._columns:
                return self._columns[name]
        else:
            column = [row[name] if name in row.keys() else None for row in self._rows]
            if any(value is not None for value in column) or name in self.names():
                return column
        known = [str(each) for each in self.names()]
        raise ValueError(f"{what}: data has no column {name!r}. {did_you_mean(str(name), known, what='Columns')}")


def _listed(name: Any, values: Any) -> list[Any]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"column {name!r} must be a list, not {type(values).__name__}")
    return list(values)


def _hist(table: _Table, x: str | None, y: Any, series: str | None) -> _Chart:
    name = x if x is not None else y
    values = _numbers("x", name, table.column("x", name))
    groups = _groups(table, series)
    members = [_Series(group, None, array("d", (values[i] for i in rows))) for group, rows in groups.items()]
    return _Chart("number", [], members, str(name), "count")


def _plot(table: _Table, kind: str, x: str | None, y: Any, series: str | None) -> _Chart:
    wanted = [y] if isinstance(y, str) or not isinstance(y, Sequence) else list(y)
    if kind == "pie" and (series is not None or len(wanted) > 1):
        raise ValueError("a pie shows one column: give one y, and no series")
    places = table.column("x", x)
    columns = {name: _numbers("y", name, table.column("y", name)) for name in wanted}
    if not columns:
        raise ValueError("y is empty: name at least one column")
    groups = _groups(table, series)
    axis, at = ("category", None) if kind in ("bar", "pie") else _scale(places)
    labels: list[str] = []
    if at is None:
        labels, at = _categories(places, by_row=kind in ("bar", "pie") and series is None)
        if kind == "bar" and series is not None:
            _check_unique(groups, at, labels, x)
    members = []
    for group, rows in groups.items():
        rows = [i for i in rows if not isnan(at[i])]
        if kind == "area" or axis == "time" and kind == "line":
            rows.sort(key=at.__getitem__)
        for name, values in columns.items():
            title = str(name) if series is None else group if len(columns) == 1 else f"{group} {name}"
            members.append(_Series(title, array("d", (at[i] for i in rows)), array("d", (values[i] for i in rows))))
    single = str(wanted[0]) if len(wanted) == 1 else ""
    return _Chart(axis, labels, members, "" if axis == "time" else str(x), single)


def _groups(table: _Table, series: str | None) -> dict[str, list[int]]:
    """Return the numbers of the rows of each series, in the order in which they appear."""
    if series is None:
        return {"": list(range(table.size))}
    groups: dict[str, list[int]] = {}
    for i, value in enumerate(table.column("series", series)):
        groups.setdefault(_NO_LABEL if value is None else _label(value), []).append(i)
    return groups


def _check_unique(groups: dict[str, list[int]], at: "Sequence[float]", labels: list[str], x: Any) -> None:
    for group, rows in groups.items():
        seen: set[float] = set()
        for i in rows:
            if at[i] in seen:
                raise ValueError(
                    f"series {group!r} has several rows with {x}={labels[int(at[i])]!r}: "
                    "add them up first, one row for each bar"
                )
            seen.add(at[i])


def _numbers(what: str, name: Any, column: list[Any]) -> list[float]:
    """Return a column as floats, NaN where there is nothing."""
    numbers = []
    for row, value in enumerate(column):
        number = _number(value)
        if number is None:
            raise ValueError(f"{what} column {name!r}, row {row}: {_brief(value)} is not a number")
        numbers.append(number)
    return numbers


def _number(value: Any) -> float | None:
    """Return a value as a float; None if it isn't a number."""
    if value is None or isinstance(value, str) and not value.strip():
        return nan
    if isinstance(value, (bytes, bytearray, list, tuple)):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _scale(column: list[Any]) -> tuple[str, list[float] | None]:
    """Return the kind of axis that a column of x wants, and the places on it unless these are categories."""
    given = [value for value in column if value is not None and value != ""]
    if given and not any(isinstance(value, bool) for value in given):
        numbers = [_number(value) for value in column]
        if None not in numbers:
            return "number", numbers  # type: ignore[return-value]
        moments = [_moment(value) for value in given]
        if None not in moments:
            found = iter(_seconds(moments))  # type: ignore[arg-type]
            return "time", [nan if value is None or value == "" else next(found) for value in column]
    return "category", None


def _moment(value: Any) -> datetime | None:
    """Return the time that a value is, or spells in ISO format; else None."""
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day)
    # "20250101" is a number, and was taken for one before.
    if isinstance(value, str) and len(value) >= 10 and value[4:5] == "-":
        try:
            return datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    return None


def _seconds(moments: list[datetime]) -> list[float]:
    """Return what the clocks of the first moment's time zone show, in seconds since 1970."""
    zone = next((moment.tzinfo for moment in moments if moment.tzinfo is not None), None)
    seconds = []
    for moment in moments:
        if moment.tzinfo is not None:
            moment = moment.astimezone(zone)
        seconds.append((moment.replace(tzinfo=None) - _EPOCH).total_seconds())
    return seconds


def _categories(column: list[Any], *, by_row: bool) -> tuple[list[str], list[float]]:
    """Return the labels of a column and the index of each row's; with `by_row` each row has its own."""
    labels = [_NO_LABEL if value is None else _label(value) for value in column]
    if by_row:
        return labels, [float(i) for i in range(len(labels))]
    places: dict[str, int] = {}
    at = [float(places.setdefault(label, len(places))) for label in labels]
    return list(places), at


def _label(value: Any) -> str:
    if isinstance(value, datetime) and value.time().isoformat() == "00:00:00":
        return value.date().isoformat()
    if isinstance(value, float):
        return f"{value:g}"
    text = str(value).encode("utf-8", "replace").decode()
    return text if len(text) <= 100 else f"{text[:99]}…"


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
