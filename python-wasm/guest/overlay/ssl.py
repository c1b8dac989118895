"""The module `ssl` of a sandbox that has no network.

Contexts can be made and configured, because libraries do that when they are
imported.  Wrapping a socket, or anything else that needs TLS itself, raises
`OSError`.
"""

import base64
import calendar
import enum
import os
import textwrap
import time
from collections.abc import Callable
from socket import _GLOBAL_DEFAULT_TIMEOUT, SO_TYPE, SOCK_STREAM, SOL_SOCKET  # noqa: F401
from socket import create_connection, socket  # noqa: F401
from typing import Any, NamedTuple, NoReturn

from codeexec.refusals import NO_NETWORK as _NO_NETWORK

OPENSSL_VERSION = "no TLS: the sandbox has no network"
OPENSSL_VERSION_INFO = (3, 0, 0, 0, 0)
OPENSSL_VERSION_NUMBER = 0x30000000
HAS_ALPN = HAS_ECDH = HAS_SNI = HAS_TLSv1_2 = HAS_TLSv1_3 = HAS_NEVER_CHECK_COMMON_NAME = True
HAS_NPN = HAS_PSK = HAS_SSLv2 = HAS_SSLv3 = HAS_TLSv1 = HAS_TLSv1_1 = False
CHANNEL_BINDING_TYPES = ["tls-unique"]
PEM_HEADER = "-----BEGIN CERTIFICATE-----"
PEM_FOOTER = "-----END CERTIFICATE-----"
socket_error = OSError


class _SSLMethod(enum.IntEnum):
    PROTOCOL_TLS = PROTOCOL_SSLv23 = 2
    PROTOCOL_TLSv1 = 3
    PROTOCOL_TLSv1_1 = 4
    PROTOCOL_TLSv1_2 = 5
    PROTOCOL_TLS_CLIENT = 16
    PROTOCOL_TLS_SERVER = 17


class Options(enum.IntFlag):
    OP_ALL = 0x80000050
    OP_IGNORE_UNEXPECTED_EOF = 0x80
    OP_LEGACY_SERVER_CONNECT = 0x4
    OP_NO_TICKET = 0x4000
    OP_NO_COMPRESSION = 0x20000
    OP_NO_RENEGOTIATION = 0x40000000
    OP_ENABLE_KTLS = 0x8
    OP_ENABLE_MIDDLEBOX_COMPAT = 0x100000
    OP_CIPHER_SERVER_PREFERENCE = 0x400000
    OP_SINGLE_DH_USE = OP_SINGLE_ECDH_USE = OP_NO_SSLv2 = 0
    OP_NO_SSLv3 = 0x2000000
    OP_NO_TLSv1 = 0x4000000
    OP_NO_TLSv1_1 = 0x10000000
    OP_NO_TLSv1_2 = 0x8000000
    OP_NO_TLSv1_3 = 0x20000000


class VerifyFlags(enum.IntFlag):
    VERIFY_DEFAULT = 0
    VERIFY_ALLOW_PROXY_CERTS = 0x40
    VERIFY_CRL_CHECK_LEAF = 0x4
    VERIFY_CRL_CHECK_CHAIN = 0xC
    VERIFY_X509_STRICT = 0x20
    VERIFY_X509_TRUSTED_FIRST = 0x8000
    VERIFY_X509_PARTIAL_CHAIN = 0x80000


class VerifyMode(enum.IntEnum):
    CERT_NONE = 0
    CERT_OPTIONAL = 1
    CERT_REQUIRED = 2


class SSLErrorNumber(enum.IntEnum):
    SSL_ERROR_SSL = 1
    SSL_ERROR_WANT_READ = 2
    SSL_ERROR_WANT_WRITE = 3
    SSL_ERROR_WANT_X509_LOOKUP = 4
    SSL_ERROR_SYSCALL = 5
    SSL_ERROR_ZERO_RETURN = 6
    SSL_ERROR_WANT_CONNECT = 7
    SSL_ERROR_EOF = 8
    SSL_ERROR_INVALID_ERROR_CODE = 10


class AlertDescription(enum.IntEnum):
    ALERT_DESCRIPTION_CLOSE_NOTIFY = 0
    ALERT_DESCRIPTION_HANDSHAKE_FAILURE = 40
    ALERT_DESCRIPTION_BAD_CERTIFICATE = 42
    ALERT_DESCRIPTION_UNKNOWN_CA = 48
    ALERT_DESCRIPTION_PROTOCOL_VERSION = 70
    ALERT_DESCRIPTION_INTERNAL_ERROR = 80
    ALERT_DESCRIPTION_UNRECOGNIZED_NAME = 112


class TLSVersion(enum.IntEnum):
    MINIMUM_SUPPORTED = -2
    SSLv3 = 768
    TLSv1 = 769
    TLSv1_1 = 770
    TLSv1_2 = 771
    TLSv1_3 = 772
    MAXIMUM_SUPPORTED = -1


for _kind in (_SSLMethod, Options, VerifyFlags, VerifyMode, SSLErrorNumber, AlertDescription):
    globals().update(_kind.__members__)


class Purpose(enum.Enum):
    SERVER_AUTH = "1.3.6.1.5.5.7.3.1"
    CLIENT_AUTH = "1.3.6.1.5.5.7.3.2"


class SSLError(OSError):
    """An error of TLS."""

    library: str | None = None
    reason: str | None = None


class SSLZeroReturnError(SSLError):
    """The connection was closed in order."""


class SSLWantReadError(SSLError):
    """More data has to come first."""


class SSLWantWriteError(SSLError):
    """Data has to leave first."""


class SSLSyscallError(SSLError):
    """A system call has failed."""


class SSLEOFError(SSLError):
    """The connection was closed without notice."""


class SSLCertVerificationError(SSLError, ValueError):
    """A certificate could not be verified."""


CertificateError = SSLCertVerificationError


def _refuse(*args: object, **kwargs: object) -> NoReturn:
    raise OSError(_NO_NETWORK)


class _Refused:
    """What cannot be made without TLS: raises `OSError`."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        raise OSError(_NO_NETWORK)


class MemoryBIO(_Refused):
    """A buffer between a program and TLS."""


class SSLObject(_Refused):
    """TLS over buffers."""


class SSLSession(_Refused):
    """A session that can be resumed."""


class SSLSocket(socket):
    """TLS over a socket."""


class DefaultVerifyPaths(NamedTuple):
    """Where certificates of authorities are looked for."""

    cafile: str | None
    capath: str | None
    openssl_cafile_env: str
    openssl_cafile: str
    openssl_capath_env: str
    openssl_capath: str


class SSLContext:
    """A configuration, which nothing uses.

    Attributes can be set to anything; methods that load something do nothing.
    """

    sslsocket_class = SSLSocket
    sslobject_class = SSLObject

    def __init__(self, protocol: int | None = None) -> None:
        self.protocol = _SSLMethod(2 if protocol is None else protocol)
        is_client = self.protocol is _SSLMethod.PROTOCOL_TLS_CLIENT
        self.check_hostname = is_client
        self.verify_mode = VerifyMode.CERT_REQUIRED if is_client else VerifyMode.CERT_NONE
        self.verify_flags = VerifyFlags.VERIFY_X509_TRUSTED_FIRST
        self.options = Options.OP_ALL | Options.OP_NO_SSLv3
        self.minimum_version = TLSVersion.TLSv1_2
        self.maximum_version = TLSVersion.MAXIMUM_SUPPORTED
        self.keylog_filename: str | None = None
        self.post_handshake_auth = False
        self.hostname_checks_common_name = True
        self.security_level = 2
        self.sni_callback: Callable[..., Any] | None = None
        self.num_tickets = 2

    wrap_socket = wrap_bio = _refuse

    def _ignore(self, *args: object, **kwargs: object) -> None:
        """Does nothing."""

    load_cert_chain = load_default_certs = load_dh_params = load_verify_locations = _ignore
    set_alpn_protocols = set_ciphers = set_default_verify_paths = set_ecdh_curve = _ignore
    set_npn_protocols = set_psk_client_callback = set_psk_server_callback = _ignore
    set_servername_callback = _ignore

    def cert_store_stats(self) -> dict[str, int]:
        """Returns how many certificates are loaded: none."""
        return {"x509": 0, "crl": 0, "x509_ca": 0}

    def get_ca_certs(self, binary_form: bool = False) -> list[Any]:
        """Returns the certificates of authorities: none."""
        return []

    def get_ciphers(self) -> list[dict[str, Any]]:
        """Returns the enabled ciphers: none."""
        return []

    def session_stats(self) -> dict[str, int]:
        """Returns the number of sessions: none."""
        return {"number": 0}


def create_default_context(
    purpose: Purpose = Purpose.SERVER_AUTH,
    *,
    cafile: Any = None,
    capath: Any = None,
    cadata: Any = None,
) -> SSLContext:
    """Makes a context with the usual settings."""
    if not isinstance(purpose, Purpose):
        raise TypeError(purpose)
    if purpose is Purpose.SERVER_AUTH:
        return SSLContext(_SSLMethod.PROTOCOL_TLS_CLIENT)
    return SSLContext(_SSLMethod.PROTOCOL_TLS_SERVER)


def _create_unverified_context(
    protocol: int | None = None, *, check_hostname: bool = False, **kwargs: Any
) -> SSLContext:
    context = SSLContext(_SSLMethod.PROTOCOL_TLS_CLIENT if protocol is None else protocol)
    context.check_hostname = check_hostname
    context.verify_mode = kwargs.get("cert_reqs") or VerifyMode.CERT_NONE
    return context


_create_default_https_context = create_default_context
_create_stdlib_context = _create_unverified_context


def get_default_verify_paths() -> DefaultVerifyPaths:
    """Returns where certificates would be looked for."""
    folder = "/etc/ssl"
    cafile, capath = f"{folder}/cert.pem", f"{folder}/certs"
    return DefaultVerifyPaths(None, None, "SSL_CERT_FILE", cafile, "SSL_CERT_DIR", capath)


def get_server_certificate(addr: tuple[str, int], *args: Any, **kwargs: Any) -> NoReturn:
    """Would fetch a server's certificate; raises `OSError`."""
    raise OSError(_NO_NETWORK)


def get_protocol_name(protocol_code: int) -> str:
    """Returns the name of a ``PROTOCOL_`` constant."""
    return next((m.name for m in _SSLMethod if m == protocol_code), "<unknown>")


def cert_time_to_seconds(cert_time: str) -> int:
    """Converts a certificate's time, ``"Jan  5 09:34:43 2018 GMT"``, to epoch seconds."""
    return calendar.timegm(time.strptime(cert_time, "%b %d %H:%M:%S %Y GMT"))


def DER_cert_to_PEM_cert(der_cert_bytes: bytes) -> str:
    """Converts a certificate from binary form to text."""
    lines = textwrap.wrap(base64.b64encode(der_cert_bytes).decode(), 64)
    return "\n".join([PEM_HEADER, *lines, PEM_FOOTER]) + "\n"


def PEM_cert_to_DER_cert(pem_cert_string: str) -> bytes:
    """Converts a certificate from text to binary form."""
    text = pem_cert_string.strip()
    if not text.startswith(PEM_HEADER):
        raise ValueError(f"Invalid PEM encoding; must start with {PEM_HEADER}")
    if not text.endswith(PEM_FOOTER):
        raise ValueError(f"Invalid PEM encoding; must end with {PEM_FOOTER}")
    return base64.decodebytes(text[len(PEM_HEADER) : -len(PEM_FOOTER)].encode())


def RAND_bytes(num: int) -> bytes:
    """Returns random bytes."""
    return os.urandom(num)


def RAND_status() -> bool:
    """Returns True: there is enough randomness."""
    return True


def RAND_add(string: Any, entropy: float) -> None:
    """Does nothing: there is enough randomness."""
