"""Scalar and pixel types: what they are called, how they are parsed, and how array shapes fold into images.

Owns `DType` and the folding rule. Everything else in fkl imports this module; it imports nothing of fkl and,
at import time, nothing beyond the standard library.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

__all__ = ["BASES", "DType", "Folded", "fold_shape", "parse_dtype"]

#: Scalar types in the order of their codes; `fkl.runtime` uses the index as its C-level dtype code.
BASES = (
    "bool", "uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64",
    "float16", "bfloat16", "float32", "float64",
)  # fmt: skip

_ITEMSIZE = {
    "bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
}  # fmt: skip

_CTYPE = {
    "bool": "b8", "uint8": "u8", "int8": "i8", "uint16": "u16", "int16": "i16", "uint32": "u32", "int32": "i32",
    "uint64": "u64", "int64": "i64", "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip

_LIMITS = {
    "uint8": (0, 2**8 - 1), "int8": (-(2**7), 2**7 - 1), "uint16": (0, 2**16 - 1), "int16": (-(2**15), 2**15 - 1),
    "uint32": (0, 2**32 - 1), "int32": (-(2**31), 2**31 - 1), "uint64": (0, 2**64 - 1),
    "int64": (-(2**63), 2**63 - 1),
}  # fmt: skip

MAX_CHANNELS = 4


class DType:
    """A pixel type: a scalar base with 1 to 4 channels.

    Parameters
    ----------
    base : str
        One of `BASES`.
    channels : int
        1 to 4.

    Attributes
    ----------
    base : str
    channels : int
    itemsize : int
        Bytes of one scalar.
    pixelsize : int
        Bytes of one pixel, ``itemsize * channels``.
    name : str
        ``"float32"`` or ``"uint8x3"``.

    Raises
    ------
    TypeError
        Unknown base, or a channel count outside 1..4.
    """

    __slots__ = ("base", "channels", "itemsize", "name", "pixelsize")

    def __init__(self, base: str, channels: int = 1) -> None:
        if base not in _ITEMSIZE:
            raise TypeError(_unknown(base))
        if isinstance(channels, bool) or not isinstance(channels, int) or not 1 <= channels <= MAX_CHANNELS:
            raise TypeError(f"a pixel has 1 to 4 channels, got {channels!r} for base {base!r}")
        object.__setattr__(self, "base", base)
        object.__setattr__(self, "channels", channels)
        object.__setattr__(self, "itemsize", _ITEMSIZE[base])
        object.__setattr__(self, "pixelsize", _ITEMSIZE[base] * channels)
        object.__setattr__(self, "name", base if channels == 1 else f"{base}x{channels}")

    base: str
    channels: int
    itemsize: int
    pixelsize: int
    name: str

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a DType is immutable")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a DType is immutable")

    @property
    def code(self) -> int:
        """Index of the base in `BASES`."""
        return BASES.index(self.base)

    @property
    def ctype(self) -> str:
        """The scalar's name in the device headers, such as ``f32``."""
        return _CTYPE[self.base]

    @property
    def cpixel(self) -> str:
        """The pixel's C++ spelling in the device headers."""
        return f"pixel<{_CTYPE[self.base]}, {self.channels}>"

    @property
    def is_float(self) -> bool:
        """Whether the base is one of the four floating-point types."""
        return self.base in ("float16", "bfloat16", "float32", "float64")

    @property
    def is_bool(self) -> bool:
        """Whether the base is bool."""
        return self.base == "bool"

    @property
    def is_integer(self) -> bool:
        """Whether the base is an integer type; bool is none."""
        return self.base in _LIMITS

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of an integer base."""
        return _LIMITS[self.base]

    def with_base(self, base: str) -> DType:
        """The same channels on another base."""
        return _shared(base, self.channels)

    def with_channels(self, channels: int) -> DType:
        """The same base with another channel count."""
        return _shared(self.base, channels)

    def __reduce__(self) -> tuple[Any, ...]:
        return (DType, (self.base, self.channels))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        # Equal to its name too: buffer.dtype == "uint8".
        return self.name == other if isinstance(other, str) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"fkl.DType({self.base!r}, {self.channels})"


@lru_cache(maxsize=64)
def _shared(base: str, channels: int) -> DType:
    return DType(base, channels)


def _unknown(name: object) -> str:
    text = str(name)
    if "float8" in text or "fp8" in text or "e4m3" in text or "e5m2" in text:
        return f"fp8 types are not supported, got {text!r}; convert to float16 or bfloat16 first"
    if "complex" in text:
        return f"complex types are not supported, got {text!r}; use two float channels"
    return f"unknown dtype {name!r}; the bases are {', '.join(BASES)}"


def parse_dtype(spec: object) -> DType:
    """Turn any accepted spelling into a `DType`.

    Parameters
    ----------
    spec : DType, str, (str, int), numpy.dtype, numpy scalar type or torch.dtype
        ``"float32"``, ``"uint8x3"``, ``("uint8", 3)``, ``numpy.uint8``, ``numpy.dtype("u1")``, ``torch.uint8``.

    Raises
    ------
    TypeError
        Unknown base, channels outside 1..4, fp8, complex, foreign byte order or a structured dtype.
    """
    if isinstance(spec, DType):
        return spec
    if isinstance(spec, str):
        return _parse_name(spec)
    if isinstance(spec, tuple):
        if len(spec) != 2:
            raise TypeError(f'a dtype tuple is (base, channels), such as ("uint8", 3); got {spec!r}')
        base = parse_dtype(spec[0])
        if base.channels != 1:
            raise TypeError(f"the base of a dtype tuple has no channels of its own; got {spec!r}")
        return DType(base.base, spec[1])
    if spec is bool:
        return DType("bool")
    if spec is float:
        return DType("float64")
    if spec is int:
        return DType("int64")
    name = _foreign_name(spec)
    if name is None:
        raise TypeError(_unknown(spec if not isinstance(spec, type) else spec.__name__))
    return _parse_name(name)


@lru_cache(maxsize=128)
def _parse_name(text: str) -> DType:
    if text in _ITEMSIZE:
        return DType(text)
    base, cross, count = text.rpartition("x")
    if cross and base in _ITEMSIZE and count.isdecimal():
        return DType(base, int(count))
    raise TypeError(_unknown(text))


def _foreign_name(spec: object) -> str | None:
    """The name of a NumPy or torch dtype, without importing either."""
    module = getattr(type(spec), "__module__", "") or ""
    if isinstance(spec, type):
        # numpy.uint8, ml_dtypes.bfloat16: scalar classes named after their type.
        owner = spec.__module__.partition(".")[0]
        if owner not in ("numpy", "ml_dtypes", "jax"):
            return None
        return {"bool_": "bool", "double": "float64", "single": "float32", "half": "float16"}.get(
            spec.__name__, spec.__name__
        )
    if any(base.__name__ == "dtype" and base.__module__ == "numpy" for base in type(spec).__mro__):
        if getattr(spec, "names", None):
            raise TypeError(f"structured dtypes are not supported, got {spec!r}")
        if getattr(spec, "byteorder", "=") == ">" or getattr(spec, "isnative", True) is False:
            raise TypeError(f"foreign byte order is not supported, got {spec!r}; use .astype(dtype.newbyteorder('='))")
        return str(getattr(spec, "name", ""))
    if module.startswith("torch"):
        return str(spec).removeprefix("torch.")
    return None


class Folded(NamedTuple):
    """An array shape read as planes of pixels.

    ``rank`` is the number of dimensions that are not channels (1 to 3); ``packed`` says that the last one is.
    """

    planes: int
    height: int
    width: int
    channels: int
    rank: int
    packed: bool


def fold_shape(shape: tuple[int, ...], channels: int | None = None) -> Folded:
    """Fold an array shape into planes, height, width and channels.

    The last dimension is channels if it is 1..4 in an array of at least 3 dimensions, or 2..4 in one of 2 dimensions;
    the rest is (W), (H, W) or (P, H, W). Four dimensions must be (P, H, W, C).

    Parameters
    ----------
    shape : tuple of int
        The array's shape.
    channels : int, optional
        Overrides the guess: with 1 no dimension is channels, except a trailing 1 of an array of 3 or 4 dimensions;
        2..4 must equal the last dimension.

    Returns
    -------
    Folded
        A shape without planes has planes 1.

    Raises
    ------
    ValueError
        A 0-d array, more than 4 dimensions, or ``channels`` that does not fit.
    """
    ndim = len(shape)
    if ndim == 0:
        raise ValueError("a 0-d array has no pixels to index; use reshape(1)")
    if ndim > 4:
        raise ValueError(f"an array has at most 4 dimensions (P, H, W, C), got shape {tuple(shape)}")
    if channels is None:
        last = shape[-1]
        packed = (ndim >= 3 and 1 <= last <= MAX_CHANNELS) or (ndim == 2 and 2 <= last <= MAX_CHANNELS)
        if ndim == 4 and not packed:
            raise ValueError(
                f"a 4-dimensional array is (planes, height, width, channels) with 1 to 4 channels, got shape "
                f"{tuple(shape)}; a planar (P, C, H, W) array is read with TensorPack"
            )
    else:
        if isinstance(channels, bool) or not isinstance(channels, int) or not 1 <= channels <= MAX_CHANNELS:
            raise ValueError(f"channels must be 1 to 4, got {channels!r}")
        if channels == 1:
            packed = ndim >= 3 and shape[-1] == 1
            if ndim == 4 and not packed:
                raise ValueError(f"channels=1 does not fit shape {tuple(shape)}: 4 dimensions are (P, H, W, C)")
        else:
            packed = True
            if shape[-1] != channels or ndim == 1:
                raise ValueError(f"channels={channels} does not fit shape {tuple(shape)}: the last dimension must be it")
    c = shape[-1] if packed else 1
    rest = tuple(shape[:-1]) if packed else tuple(shape)
    planes, height, width = (1,) * (3 - len(rest)) + rest
    return Folded(planes, height, width, c, len(rest), packed)
