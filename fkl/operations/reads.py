"""How a chain begins: `TensorRead TensorPack ReadSet`."""

from __future__ import annotations

from typing import Any, ClassVar

from fkl.checks import index_of, integer
from fkl.dtypes import MAX_CHANNELS, DType, parse_dtype
from fkl.operations.base import Extents, Field, Lowered, Read
from fkl.operations.values import numbers_tuple, pixel_bytes, pixel_field

__all__ = ["IMAGE_FIELD", "PerThreadRead", "ReadSet", "TensorPack", "TensorRead"]

#: The record of one strided array in the parameter block: pointer, pitch, plane and channel strides.
IMAGE_FIELD = Field("Image", 32, 8)


class TensorRead(Read):
    """Read an array whose channels lie beside each other.

    Parameters
    ----------
    source : array, optional
        The array to bind: any DLPack or ``__cuda_array_interface__`` object or `fkl.DeviceBuffer`, of shape
        (W,), (H, W), (P, H, W), each with a last dimension of 1..4 channels if there is one. Without it the array
        arrives at the call, which also takes a list of equal-size images, one plane each.
    channels : int, optional
        Overrides the guess of what the last dimension is (see `fkl.dtypes.fold_shape`).

    Raises
    ------
    TypeError
        A list as ``source``: a list of images is given at the call.
    """

    layout: ClassVar[str] = "packed"

    def __init__(self, source: Any = None, *, channels: int | None = None) -> None:
        if isinstance(source, (list, tuple)):
            raise TypeError(
                f"{type(self).__name__} binds one array, not a list; give the list of images at the call: "
                "compose(TensorRead(), ...) and then k([a, b, c])"
            )
        self.source = source
        self.channels = None if channels is None else index_of(channels)
        if channels is not None and (self.channels is None or not 1 <= self.channels <= MAX_CHANNELS):
            raise ValueError(f"{type(self).__name__}: channels must be 1 to 4, got {channels!r:.80}")

    def format(self, dtype: DType) -> str:
        """The C++ type that loads a pixel."""
        return f"Packed<{dtype.ctype}, {dtype.channels}>"

    @property
    def form(self) -> tuple[Any, ...] | None:
        return (type(self),)

    def lower(self, dtype: DType) -> Lowered:
        return Lowered("", (IMAGE_FIELD,), dtype)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs = {} if self.channels is None else {"channels": self.channels}
        return (), kwargs

    def __repr__(self) -> str:
        bound = "<bound>" if self.source is not None else ""
        channels = f"channels={self.channels}" if self.channels is not None else ""
        return f"{type(self).__name__}({', '.join(filter(None, (bound, channels)))})"


class PerThreadRead(TensorRead):
    """Another name of `TensorRead`."""


class TensorPack(TensorRead):
    """Read a planar array (C, H, W), (P*C, H, W) or (P, C, H, W) as packed pixels.

    Parameters
    ----------
    channels : int
        C, 1 to 4. The shape is never folded.
    source : array, optional
        The array to bind.
    """

    layout: ClassVar[str] = "planar"

    def __init__(self, channels: int, source: Any = None) -> None:
        super().__init__(source, channels=integer(channels, "TensorPack: the number of channels, its first argument,"))

    def format(self, dtype: DType) -> str:
        return f"Planar<{dtype.ctype}, {dtype.channels}>"

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.channels,), {}

    def __repr__(self) -> str:
        return f"TensorPack({self.channels}{', <bound>' if self.source is not None else ''})"


class ReadSet(Read):
    """Generate a constant image; the chain needs no input.

    Parameters
    ----------
    value : number or sequence of numbers
        One number for all channels, or one per channel; a sequence of 2 to 4 numbers on a scalar ``dtype`` makes a
        pixel of so many channels.
    width, height : int
        Size in pixels, 0 or more.
    dtype : dtype
        The pixel type.
    """

    layout: ClassVar[str] = "constant"

    def __init__(self, value: Any, width: int, height: int = 1, dtype: Any = "float32") -> None:
        self.value = numbers_tuple(value, "ReadSet")
        self.dtype = parse_dtype(dtype)
        if isinstance(self.value, tuple) and self.dtype.channels == 1:
            self.dtype = self.dtype.with_channels(len(self.value))
        self.width, self.height = integer(width, "ReadSet: width"), integer(height, "ReadSet: height")
        if min(self.width, self.height) < 0:
            raise ValueError(f"ReadSet: width and height must not be negative, got {self.width} x {self.height}")
        pixel_bytes(self.dtype, self.value, "ReadSet")

    def format(self, dtype: DType) -> str:
        """The C++ type that loads a pixel."""
        return f"Constant<{dtype.ctype}, {dtype.channels}>"

    def lower(self, dtype: DType) -> Lowered:
        return Lowered("", (pixel_field(self.dtype),), self.dtype)

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        return (pixel_bytes(self.dtype, self.value, "ReadSet"),)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.value, self.width, self.height, self.dtype.name), {}
