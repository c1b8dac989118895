"""The modules ``mcp.servers.<alias>``, made when they are imported.

All of it is here and not in `mcp.servers`, whose attributes are servers: one
with the alias `sys` would replace an import of ours.
"""

__all__ = ["forget_others", "install", "package_dir", "package_getattr"]

from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from opcode import opmap
import sys
from types import FrameType, ModuleType
from typing import Any

from mcp._catalog import Server, catalog
from mcp._errors import MCPError, not_importable
from mcp._proxy import ServerProxy

_PACKAGE = "mcp.servers"
_IMPORT_FROM = opmap["IMPORT_FROM"]

# Full names of the modules made so far in this session.
_made: set[str] = set()


class ServerModule(ModuleType):
    """A module whose content is the tools of one server."""

    _codeexec_proxy: ServerProxy | None = None

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return [alias for alias in dir(self._codeexec_proxy) if alias != "list_tools"]
        try:
            return getattr(self._codeexec_proxy, name)
        except MCPError as error:
            # `from … import` replaces an AttributeError by a message of its
            # own, which would lose ours.
            if isinstance(error, AttributeError) and _is_import(sys._getframe(1)):
                raise not_importable(str(error), error.server, error.tool) from None
            raise

    def __dir__(self) -> list[str]:
        return dir(self._codeexec_proxy)


def _is_import(frame: FrameType) -> bool:
    """Say whether `frame` is at the second half of a ``from … import`` statement."""
    code = frame.f_code.co_code
    return 0 <= frame.f_lasti < len(code) and code[frame.f_lasti] == _IMPORT_FROM


class Finder:
    """Finds `mcp.servers.<alias>` for `import`; it is its own loader."""

    @staticmethod
    def find_spec(
        fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a server's module; an MCPError for a server there isn't."""
        package, _, alias = fullname.rpartition(".")
        if not package and alias.startswith("mcp_"):
            _refuse_variable(alias)
        if package != _PACKAGE:
            return None
        try:
            server = catalog.by_alias(alias)
        except MCPError as error:
            raise not_importable(str(error), error.server) from None
        return ModuleSpec(fullname, Finder, origin=f"MCP server {server.name!r}")

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """Return the module, which needs no further execution."""
        server = catalog.by_alias(spec.name.rpartition(".")[2])
        module = ServerModule(spec.name, f"MCP server {server.name!r}. {server.description}")
        module._codeexec_proxy = ServerProxy(server)
        _made.add(spec.name)
        return module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Do nothing: tools are looked up when they are used."""


def _refuse_variable(name: str) -> None:
    """Say what to write instead of ``import mcp_github``, unless that is a module."""
    alias = name.removeprefix("mcp_")
    for server in catalog.servers():
        if server.alias == alias:
            raise not_importable(
                f"{name} is predefined: use it without an import, "
                f"or write: from {_PACKAGE}.{alias} import ...",
                server.name,
            )


def install() -> None:
    """Make `import` find the modules of servers."""
    if Finder not in sys.meta_path:
        # First, so that a finder which explains missing modules doesn't see ours.
        sys.meta_path.insert(0, Finder)


def package_getattr(name: str) -> Any:
    """Return the attribute `name` of `mcp.servers`: a server's module, by alias."""
    if name == "__all__":
        return package_dir()
    if name.startswith("__"):
        raise AttributeError(f"module {_PACKAGE!r} has no attribute {name!r}")
    fullname = f"{_PACKAGE}.{catalog.by_alias(name).alias}"
    __import__(fullname)
    return sys.modules[fullname]


def package_dir() -> list[str]:
    """Return the aliases of this run's servers."""
    return sorted(server.alias for server in catalog.servers())


def forget_others() -> None:
    """Forget the modules of servers that the current run may not use.

    What has been imported from them stays, and says so when it is called.
    """
    if not _made:
        return
    current = catalog.servers()
    for fullname in [*_made]:
        if _server_of(sys.modules.get(fullname)) not in current:
            _made.discard(fullname)
            sys.modules.pop(fullname, None)
            vars(sys.modules[_PACKAGE]).pop(fullname.rpartition(".")[2], None)


def _server_of(module: Any) -> Server | None:
    proxy = getattr(module, "_codeexec_proxy", None)
    return getattr(proxy, "_codeexec_server", None)
