"""What `import` says of a module that the sandbox does not have."""

import sys
from collections.abc import Sequence
from types import ModuleType

__all__ = ["install"]

PACKAGES = "/projects/packages"

_IMPORTLIB = "<frozen importlib._bootstrap>"

_NETWORK = "there is no network, so call an MCP tool instead (see runtime.discovered_servers())"
_NUMBERS = "use statistics, math, fractions, csv or sqlite3"
_CHARTS = "draw with render_chart(...)"

# What to use instead of packages that are asked for often.
_INSTEAD = {
    "IPython": "use display(...)",
    "aiohttp": _NETWORK,
    "bs4": "use html.parser",
    "dateutil": "use datetime.fromisoformat() and datetime.strptime()",
    "httpx": _NETWORK,
    "lxml": "use xml.etree.ElementTree or html.parser",
    "matplotlib": _CHARTS,
    "nest_asyncio": "asyncio.run() works without it",
    "numpy": _NUMBERS,
    "openpyxl": "use csv",
    "pandas": _NUMBERS,
    "pip": "nothing can be installed from a script",
    "plotly": _CHARTS,
    "pytz": "use zoneinfo",
    "requests": _NETWORK,
    "scipy": _NUMBERS,
    "seaborn": _CHARTS,
    "sklearn": _NUMBERS,
    "urllib3": _NETWORK,
    "websockets": _NETWORK,
    "yaml": "use json or tomllib",
}

_getframe = sys._getframe
_stdlib = sys.stdlib_module_names


class _MissingModules:
    """The last finder on `sys.meta_path`: finds nothing, but explains that.

    Only `import` gets an explanation.  `importlib.util.find_spec` goes on to
    return None, which is how libraries ask whether a module is there.
    """

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> None:
        # The callers are importlib's _find_spec and, for an import, this one.
        is_import = _getframe(2).f_code.co_name == "_find_and_load_unlocked"
        if path is None and is_import and sys.meta_path[-1] is _MissingModules:
            raise ModuleNotFoundError(_explain(name), name=name)


def install() -> None:
    """Puts the finder in place."""
    # Import errors are shown without the frames of importlib.  This one counts
    # as such a frame, and is left out with them.
    find = _MissingModules.find_spec
    find.__code__ = find.__code__.replace(co_filename=_IMPORTLIB)
    sys.meta_path.append(_MissingModules)


def _explain(name: str) -> str:
    message = f"No module named {name!r}"
    if name in _stdlib:
        return f"{message}: this module of the standard library is not in the sandbox"
    instead = _INSTEAD.get(name)
    hint = f" ({instead})" if instead else ""
    return (
        f"{message}: the sandbox has Python's standard library and MCP tools{hint}; "
        f"pure-Python packages can be added to {PACKAGES}, on the host by `codeexec packages add`"
    )
