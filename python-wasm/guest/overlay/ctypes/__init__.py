"""The module `ctypes` of a sandbox that can load no foreign code.

Classes can be named and derived from, so that libraries import.  Making an
object of them, or loading a library, raises `OSError`.
"""

from typing import Any, NoReturn

from codeexec.refusals import NO_CTYPES as _NO_CTYPES

DEFAULT_MODE = RTLD_LOCAL = 0
RTLD_GLOBAL = 256


class ArgumentError(Exception):
    """An argument does not fit a foreign function; never raised here."""


def _refuse(*args: Any, **kwargs: Any) -> NoReturn:
    raise OSError(_NO_CTYPES)


class _Type(type):
    """The type of data types; ``c_int * 3`` is one as well."""

    def __mul__(cls, length: int) -> "type[_Data]":
        members = {"_type_": cls, "_length_": length}
        return _Type(f"{cls.__name__}_Array_{length}", (Array,), members)

    __rmul__ = __mul__


class _Data(metaclass=_Type):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise OSError(_NO_CTYPES)

    from_address = from_buffer = from_buffer_copy = from_param = in_dll = staticmethod(_refuse)


class _SimpleCData(_Data):
    pass


class Array(_Data):
    pass


class Structure(_Data):
    pass


class Union(_Data):
    pass


class BigEndianStructure(Structure):
    pass


class LittleEndianStructure(Structure):
    pass


class BigEndianUnion(Union):
    pass


class LittleEndianUnion(Union):
    pass


class _Pointer(_Data):
    pass


class _CFuncPtr(_Data):
    pass


_NAMES = (
    "bool byte char char_p double float int int16 int32 int64 int8 long longdouble longlong short "
    "size_t ssize_t time_t ubyte uint uint16 uint32 uint64 uint8 ulong ulonglong ushort void_p "
    "wchar wchar_p"
)
for _name in _NAMES.split():
    globals()[f"c_{_name}"] = _Type(f"c_{_name}", (_SimpleCData,), {"__module__": __name__})


class py_object(_SimpleCData):
    pass


class CDLL:
    """A shared library, which cannot be loaded: raises `OSError`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise OSError(_NO_CTYPES)


class PyDLL(CDLL):
    pass


class _Loader:
    """Loads libraries by name: raises `OSError`."""

    def __init__(self, dlltype: type[CDLL] = CDLL) -> None:
        self._dlltype = dlltype

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise OSError(_NO_CTYPES)

    __getitem__ = LoadLibrary = _refuse


LibraryLoader = _Loader
cdll = _Loader()
pydll = pythonapi = _Loader(PyDLL)


def POINTER(cls: Any) -> type[_Data]:
    """The type of pointers to `cls`."""
    return _Type(f"LP_{getattr(cls, '__name__', cls)}", (_Pointer,), {"_type_": cls})


def CFUNCTYPE(restype: Any, *argtypes: Any, **kwargs: Any) -> type[_Data]:
    """The type of foreign functions with these types."""
    return _Type("CFunctionType", (_CFuncPtr,), {"_argtypes_": argtypes, "_restype_": restype})


PYFUNCTYPE = CFUNCTYPE

addressof = alignment = byref = cast = create_string_buffer = create_unicode_buffer = _refuse
get_errno = memmove = memset = pointer = resize = set_errno = sizeof = string_at = _refuse
ARRAY = SetPointerType = c_buffer = memoryview_at = wstring_at = _refuse
