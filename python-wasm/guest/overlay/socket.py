"""The module `socket` of a sandbox that has no network.

The constants, exceptions and pure functions that libraries use at import are
here.  Making a socket, or resolving a name, raises `OSError`.
"""

import enum
import errno as _errno
import io
import ipaddress as _ipaddress
import sys
from typing import Any, NoReturn

from codeexec.refusals import NO_NETWORK as _NO_NETWORK

error = OSError
timeout = TimeoutError


class herror(OSError):
    """An error of address lookup, never raised here."""


class gaierror(OSError):
    """An error of name lookup, never raised here."""


class AddressFamily(enum.IntEnum):
    AF_UNSPEC = 0
    AF_UNIX = 1
    AF_INET = 2
    AF_INET6 = 10


class SocketKind(enum.IntEnum):
    SOCK_STREAM = 1
    SOCK_DGRAM = 2
    SOCK_RAW = 3
    SOCK_SEQPACKET = 5
    SOCK_NONBLOCK = 0o4000
    SOCK_CLOEXEC = 0o2000000


class MsgFlag(enum.IntFlag):
    MSG_OOB = 1
    MSG_PEEK = 2
    MSG_DONTROUTE = 4
    MSG_DONTWAIT = 64
    MSG_WAITALL = 256
    MSG_NOSIGNAL = 16384


class AddressInfo(enum.IntFlag):
    AI_PASSIVE = 1
    AI_CANONNAME = 2
    AI_NUMERICHOST = 4
    AI_V4MAPPED = 8
    AI_ALL = 16
    AI_ADDRCONFIG = 32
    AI_NUMERICSERV = 1024


for _kind in (AddressFamily, SocketKind, MsgFlag, AddressInfo):
    globals().update(_kind.__members__)

# The values are Linux's.
EAI_BADFLAGS, EAI_NONAME, EAI_AGAIN, EAI_FAIL, EAI_FAMILY = -1, -2, -3, -4, -6
EAI_SOCKTYPE, EAI_SERVICE, EAI_MEMORY, EAI_SYSTEM = -7, -8, -10, -11
INADDR_ANY, INADDR_LOOPBACK, INADDR_BROADCAST, INADDR_NONE = 0, 0x7F000001, 0xFFFFFFFF, 0xFFFFFFFF
IPPROTO_IP, IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6 = 0, 1, 6, 17, 41
IPPROTO_ICMPV6, IPPROTO_RAW = 58, 255
IPV6_V6ONLY, IPV6_UNICAST_HOPS, IPV6_MULTICAST_IF, IPV6_JOIN_GROUP = 26, 16, 17, 20
IP_TOS, IP_TTL, IP_MULTICAST_IF, IP_MULTICAST_TTL, IP_MULTICAST_LOOP = 1, 2, 32, 33, 34
IP_ADD_MEMBERSHIP, IP_DROP_MEMBERSHIP = 35, 36
NI_NUMERICHOST, NI_NUMERICSERV, NI_NOFQDN, NI_NAMEREQD, NI_DGRAM = 1, 2, 4, 8, 16
SHUT_RD, SHUT_WR, SHUT_RDWR = 0, 1, 2
SOL_SOCKET, SOL_IP, SOL_TCP, SOL_UDP = 1, 0, 6, 17
SOMAXCONN = 4096
SO_DEBUG, SO_REUSEADDR, SO_TYPE, SO_ERROR, SO_DONTROUTE, SO_BROADCAST = 1, 2, 3, 4, 5, 6
SO_SNDBUF, SO_RCVBUF, SO_KEEPALIVE, SO_OOBINLINE, SO_LINGER, SO_REUSEPORT = 7, 8, 9, 10, 13, 15
SO_RCVTIMEO, SO_SNDTIMEO, SO_BINDTODEVICE = 20, 21, 25
TCP_NODELAY, TCP_MAXSEG, TCP_CORK, TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT = 1, 2, 3, 4, 5, 6
TCP_SYNCNT, TCP_DEFER_ACCEPT, TCP_QUICKACK, TCP_USER_TIMEOUT, TCP_FASTOPEN = 7, 9, 12, 18, 23

has_ipv6 = False
_GLOBAL_DEFAULT_TIMEOUT = object()
_default_timeout: float | None = None
_SERVICES = {"ftp": 21, "ssh": 22, "smtp": 25, "domain": 53, "http": 80, "imap": 143, "https": 443}
_HOST_NAME = "localhost"


def _refuse(*args: object, **kwargs: object) -> NoReturn:
    raise OSError(_NO_NETWORK)


class socket:
    """An endpoint of a connection, which cannot be made: raises `OSError`."""

    def __init__(
        self, family: int = -1, type: int = -1, proto: int = -1, fileno: Any = None
    ) -> None:
        raise OSError(_NO_NETWORK)

    accept = bind = connect = connect_ex = detach = dup = fileno = get_inheritable = _refuse
    getpeername = getsockname = getsockopt = gettimeout = listen = makefile = recv = _refuse
    recv_into = recvfrom = recvfrom_into = send = sendall = sendfile = sendto = _refuse
    set_inheritable = setblocking = setsockopt = settimeout = shutdown = _refuse

    def close(self) -> None:
        """Does nothing."""


SocketType = socket


class SocketIO(io.RawIOBase):
    """Raw I/O on a socket, which cannot be made: raises `OSError`."""

    def __init__(self, sock: socket, mode: str) -> None:
        raise OSError(_NO_NETWORK)


def create_connection(*args: object, **kwargs: object) -> NoReturn:
    """Would connect to a server; raises `OSError`."""
    raise OSError(_NO_NETWORK)


def create_server(*args: object, **kwargs: object) -> NoReturn:
    """Would make a listening socket; raises `OSError`."""
    raise OSError(_NO_NETWORK)


def getaddrinfo(*args: object, **kwargs: object) -> NoReturn:
    """Would look up a host; raises `OSError`."""
    raise OSError(_NO_NETWORK)


socketpair = fromfd = fromshare = gethostbyname = gethostbyname_ex = gethostbyaddr = _refuse
getnameinfo = send_fds = recv_fds = if_nameindex = if_nametoindex = if_indextoname = _refuse


def has_dualstack_ipv6() -> bool:
    """Returns False."""
    return False


def gethostname() -> str:
    """Returns the name of this machine, which has no other name than localhost."""
    return _HOST_NAME


def getfqdn(name: str = "") -> str:
    """Returns `name`, or the name of this machine: nothing can be looked up."""
    name = name.strip()
    return _HOST_NAME if not name or name in ("0.0.0.0", "::") else name


def getservbyname(servicename: str, protocolname: str = "tcp") -> int:
    """Returns the port number of a well-known service."""
    try:
        return _SERVICES[servicename]
    except KeyError:
        raise OSError("service/proto not found") from None


def getservbyport(port: int, protocolname: str = "tcp") -> str:
    """Returns the name of the well-known service at a port."""
    for name, number in _SERVICES.items():
        if number == port:
            return name
    raise OSError("port/proto not found")


def getprotobyname(protocolname: str) -> int:
    """Returns the number of a protocol of the internet family."""
    try:
        return {"ip": 0, "icmp": 1, "tcp": 6, "udp": 17}[protocolname]
    except KeyError:
        raise OSError("protocol not found") from None


def getdefaulttimeout() -> float | None:
    """Returns the timeout that a new socket would have."""
    return _default_timeout


def setdefaulttimeout(timeout: float | None) -> None:
    """Sets the timeout that a new socket would have."""
    global _default_timeout
    _default_timeout = timeout


def close(fd: int) -> None:
    """Closes a descriptor that is a socket; none is."""
    raise OSError(_errno.ENOTSOCK, "Socket operation on non-socket")


def _swap(size: int, x: int) -> int:
    if not 0 <= x < 1 << 8 * size:
        raise OverflowError(f"an unsigned number of {size * 8} bits is expected, not {x}")
    return int.from_bytes(x.to_bytes(size, sys.byteorder), "big")


def htons(x: int) -> int:
    """Converts a 16-bit number from host to network byte order."""
    return _swap(2, x)


def htonl(x: int) -> int:
    """Converts a 32-bit number from host to network byte order."""
    return _swap(4, x)


ntohs, ntohl = htons, htonl


def inet_aton(ip_address: str) -> bytes:
    """Packs an IPv4 address, which may have less than four parts (``127.1``)."""
    parts = ip_address.split(".")
    try:
        *heads, last = map(_address_part, parts)
        if len(heads) > 3 or any(not 0 <= head < 256 for head in heads):
            raise ValueError
        return bytes(heads) + last.to_bytes(4 - len(heads), "big")
    except (ValueError, OverflowError):
        raise OSError("illegal IP address string passed to inet_aton") from None


def _address_part(text: str) -> int:
    """A part of an IPv4 address: decimal, octal (``0...``) or hexadecimal (``0x...``)."""
    lower = text.lower()
    return int(lower, 16 if lower.startswith("0x") else 8 if lower.startswith("0") else 10)


def inet_ntoa(packed_ip: bytes) -> str:
    """Unpacks an IPv4 address."""
    if len(packed_ip) != 4:
        raise OSError("packed IP wrong length")
    return ".".join(map(str, bytes(packed_ip)))


def _address_type(family: int) -> type:
    if family == AddressFamily.AF_INET:
        return _ipaddress.IPv4Address
    if family == AddressFamily.AF_INET6:
        return _ipaddress.IPv6Address
    raise OSError(_errno.EAFNOSUPPORT, "Address family not supported by protocol")


def inet_pton(address_family: int, ip_string: str) -> bytes:
    """Packs an address of the given family."""
    kind = _address_type(address_family)
    try:
        return kind(ip_string).packed
    except ValueError:
        raise OSError("illegal IP address string passed to inet_pton") from None


def inet_ntop(address_family: int, packed_ip: bytes) -> str:
    """Unpacks an address of the given family."""
    kind = _address_type(address_family)
    if len(packed_ip) != kind(0).max_prefixlen // 8:
        raise ValueError("invalid length of packed IP address string")
    return str(kind(bytes(packed_ip)))


__all__ = [
    name for name in globals() if not name.startswith("_") and name not in ("enum", "io", "sys")
]
