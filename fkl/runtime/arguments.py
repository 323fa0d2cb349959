"""The arguments of `DeviceBuffer` and its constructors, checked: sizes, addresses, strides, fill values.

Each function raises the `TypeError` or `ValueError` that the user sees.
"""

from __future__ import annotations

from typing import Any

from fkl.checks import index_of, integer
from fkl.dtypes import DType, fold_shape

__all__ = ["address_of", "check_consumer", "item_of", "ordinal_of", "shape_of", "size_of", "sizes_of", "strides_of"]


def size_of(value: Any, name: str) -> int:
    """A size of 0 or more."""
    size = integer(value, name)
    if size < 0:
        raise ValueError(f"{name} must not be negative, got {size}")
    return size


def ordinal_of(device: Any) -> int:
    """A device's ordinal."""
    ordinal = index_of(device)
    if ordinal is None:
        raise TypeError(f"device is a CUDA ordinal such as 0, got {device!r:.80}")
    return ordinal


def sizes_of(shape: Any, what: str = "shape") -> tuple[int, ...]:
    """A tuple of sizes."""
    if isinstance(shape, (str, bytes)) or not hasattr(shape, "__iter__"):
        raise TypeError(f"{what} is a tuple of integers, got {shape!r:.80}")
    return tuple(size_of(n, "a size") for n in shape)


def shape_of(shape: Any) -> tuple[int, ...]:
    """A shape of 1 to 4 dimensions; an integer is one of them."""
    alone = index_of(shape)
    sizes = sizes_of(shape if alone is None else (alone,))
    if not 1 <= len(sizes) <= 4:
        raise ValueError(f"a buffer has 1 to 4 dimensions (planes, height, width, channels), got shape {sizes}")
    return sizes


def address_of(ptr: Any, some: bool) -> int:
    """The pointer as an integer; null only for an array without elements."""
    if ptr is None:
        raise ValueError("from_ptr needs a non-null device pointer, got None")
    address = index_of(ptr)
    if address is None:
        raise TypeError(f"ptr is the address as an integer, got {type(ptr).__name__}; for an array use "
                        "x.data_ptr() (torch), x.data.ptr (cupy), or hand the array to the chain itself")
    if address == 0 and some:
        raise ValueError("from_ptr needs a non-null device pointer for a shape with elements, got 0")
    if not 0 <= address < 2**64:
        raise ValueError(f"ptr is an address of 64 bits, got {address}")
    return address


def strides_of(sizes: tuple[int, ...], dtype: DType, pitch: Any, strides: Any) -> tuple[int, ...] | None:
    """Strides in bytes out of ``pitch`` or ``strides``; None: tight."""
    item = dtype.itemsize
    if pitch is not None and strides is not None:
        raise TypeError("give pitch or strides, not both")
    if strides is not None:
        if isinstance(strides, (str, bytes)) or not hasattr(strides, "__iter__"):
            raise TypeError(f"strides is a tuple of integers, got {strides!r:.80}")
        steps = tuple(integer(n, "a stride") for n in strides)
        if dtype.channels > 1 and len(steps) == len(sizes) - 1:
            steps = (*steps, item)
        if len(steps) != len(sizes):
            raise ValueError(f"strides has {len(steps)} numbers for {len(sizes)} dimensions")
        if any(n < 0 for n in steps):
            raise ValueError(f"strides must not be negative, got {steps}")
        if any(n % item for n in steps):
            raise ValueError(f"strides are bytes and multiples of the item size {item}, got {steps}")
        return steps
    if pitch is None:
        return None
    pitch = size_of(pitch, "pitch")
    folded = fold_shape(sizes, dtype.channels if dtype.channels > 1 else None)
    row = folded.width * folded.channels * item
    if folded.rank < 2:
        raise ValueError(f"pitch is the distance of rows, and shape {sizes} has one row; leave it out")
    if pitch < row:
        raise ValueError(f"pitch must be at least a row's {row} bytes, got {pitch}")
    if pitch % item:
        raise ValueError(f"pitch must be a multiple of the item size {item}, got {pitch}")
    steps = (pitch * folded.height, pitch, folded.channels * item)[3 - folded.rank:]
    return (*steps, item) if folded.packed else steps


def check_consumer(stream: Any) -> None:
    """The stream argument of ``__dlpack__``."""
    if stream is None:
        return
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise TypeError(f"__dlpack__ takes stream as an integer or None, got {stream!r:.80}")
    if stream == 0:
        raise ValueError("__dlpack__(stream=0) is ambiguous: 1 is the legacy default stream, 2 the per-thread one")
    if not -1 <= stream < 2**64:
        raise ValueError(f"__dlpack__ takes -1, 1, 2 or a stream handle, got {stream}")


def item_of(dtype: DType, value: Any) -> bytes:
    """One value in a type, as bytes."""
    import numpy

    if (not isinstance(value, (bool, numpy.bool_)) and not hasattr(value, "__float__")) or getattr(value, "ndim", 0) != 0:
        raise TypeError(f"a fill value is a number, got {value!r:.80}")
    if dtype.is_bool:
        return b"\x01" if value else b"\x00"
    if dtype.is_integer:
        low, high = dtype.limits
        if not low <= value <= high or value != int(value):
            raise ValueError(f"{dtype} holds the integers {low} to {high}, not {value!r}")
        return int(value).to_bytes(dtype.itemsize, "little", signed=low < 0)
    single = numpy.float32(value)
    if dtype == "bfloat16":
        bits = int(single.view(numpy.uint32))
        if value != value:
            return (0x7FC0).to_bytes(2, "little")
        return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) & 0xFFFF).to_bytes(2, "little")
    with numpy.errstate(over="ignore"):
        return numpy.array(value, str(dtype)).tobytes()
