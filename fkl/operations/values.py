"""Python and NumPy numbers -> the exact bytes a parameter block holds. Used by every operation with values."""

from __future__ import annotations

import math
import numbers
import struct
from typing import Any

from fkl.dtypes import MAX_CHANNELS, DType
from fkl.operations.base import Field, article

__all__ = ["number", "numbers_tuple", "pack_i32", "pixel_bytes", "pixel_field", "scalar_bytes"]

_CODE = {
    "bool": "?", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I", "int32": "i",
    "uint64": "Q", "int64": "q", "float64": "d",
}  # fmt: skip


def number(value: Any, what: str) -> int | float | bool:
    """One plain Python number out of a Python or NumPy number.

    Raises
    ------
    TypeError
        Anything that is not a real number.
    """
    if isinstance(value, (bool, int, float)):
        return value
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
        if isinstance(value, (bool, int, float)):
            return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    raise TypeError(f"{what} takes a number or one number per channel, got {type(value).__name__} {value!r:.60}")


def numbers_tuple(value: Any, what: str) -> int | float | bool | tuple[int | float | bool, ...]:
    """A number, or a tuple of 1 to 4 numbers out of any sequence or one-dimensional array.

    Raises
    ------
    TypeError
        Not numbers.
    ValueError
        An empty sequence, more than four numbers, or an array of more than one dimension.
    """
    if hasattr(value, "tolist") and getattr(value, "ndim", 0) > 0:
        if value.ndim > 1:
            raise ValueError(f"{what} takes a number or one number per channel, got an array of shape {value.shape}")
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        if not 1 <= len(value) <= MAX_CHANNELS:
            raise ValueError(f"{what} takes a number or 1 to 4 numbers, got {article(len(value), 'number')}")
        return tuple(number(v, what) for v in value)
    return number(value, what)


def scalar_bytes(base: str, value: int | float | bool, what: str) -> bytes:
    """One scalar in the chain's type; integers must fit, floats round to nearest even.

    Raises
    ------
    ValueError
        A value that an integer type cannot hold, or a finite one beyond a float type's range.
    """
    if base in ("float32", "float64", "float16", "bfloat16"):
        return _float_bytes(base, value, what)
    dtype = DType(base)
    if dtype.is_bool:
        if value not in (0, 1):
            raise ValueError(f"{what}: {value!r} is no bool; use True or False")
        return b"\x01" if value else b"\x00"
    low, high = dtype.limits
    if isinstance(value, float) and not value.is_integer():
        raise ValueError(
            f"{what}: the chain is {base} there and cannot hold {value!r}; "
            'put Cast("float32") before it, or give an integer'
        )
    whole = int(value)
    if not low <= whole <= high:
        raise ValueError(
            f"{what}: the chain is {base} there, which holds {low} to {high}, not {value!r}; "
            "put a Cast to a wider type before it"
        )
    return struct.pack("<" + _CODE[base], whole)


def _float_bytes(base: str, value: int | float | bool, what: str) -> bytes:
    try:
        wide = float(value)
        if base == "float64":
            return struct.pack("<d", wide)
        single = struct.pack("<f", wide)
        if base == "float32":
            return single
        # The 16-bit types are reached through float32, as everywhere in fkl.
        rounded = struct.unpack("<f", single)[0]
        if base == "float16":
            return struct.pack("<e", rounded)
        return _bfloat16_bytes(rounded, single)
    except OverflowError:
        raise ValueError(f"{what}: {value!r} is beyond the range of {base}; put a Cast to a wider type before it") from None


def _bfloat16_bytes(value: float, single: bytes) -> bytes:
    (bits,) = struct.unpack("<I", single)
    if math.isnan(value):
        return struct.pack("<H", 0x7FC0)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    if math.isfinite(value) and (rounded >> 16) & 0x7FFF == 0x7F80:
        raise OverflowError
    return struct.pack("<H", rounded >> 16)


def pixel_bytes(dtype: DType, value: Any, what: str) -> bytes:
    """A value for every channel: one number for all, or one number each.

    Raises
    ------
    ValueError
        The count of numbers is not the channel count, or a number the type cannot hold.
    """
    if isinstance(value, tuple):
        if len(value) != dtype.channels:
            raise ValueError(
                f"{what}: {article(len(value), 'number')} for a chain of {article(dtype.channels, 'channel')} ({dtype}); "
                "give one number, or one per channel"
            )
        return b"".join(scalar_bytes(dtype.base, v, what) for v in value)
    return scalar_bytes(dtype.base, value, what) * dtype.channels


def pixel_field(dtype: DType) -> Field:
    """A field that holds one pixel of this type."""
    return Field(dtype.cpixel, dtype.pixelsize, dtype.itemsize)


def pack_i32(*values: int) -> bytes:
    """32-bit integers, back to back."""
    return struct.pack(f"<{len(values)}i", *values)
