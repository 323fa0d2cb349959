"""Colour: `ColorConversion`, and the video matrices `ConvertYUVToRGB` and `ConvertRGBToYUV`."""

from __future__ import annotations

import re
import struct
from typing import Any, ClassVar

from fkl.bounds import Bounds
from fkl.checks import index_of, one_of
from fkl.dtypes import DType
from fkl.operations.base import Elementwise, Extents, Field, Lowered
from fkl.operations.values import number, scalar_bytes

__all__ = ["ColorConversion", "ConvertRGBToYUV", "ConvertYUVToRGB"]

_ORDERS = ("BGR", "RGB", "BGRA", "RGBA")
#: (Kr, Kb) of ITU-R BT.601, BT.709 and BT.2020.
_PRIMARIES = {"bt601": (0.299, 0.114), "bt709": (0.2126, 0.0722), "bt2020": (0.2627, 0.0593)}


def _red(order: str) -> int:
    return 2 if order.startswith("BGR") else 0


class ColorConversion(Elementwise):
    """Convert colours by OpenCV's codes and constants (`cv2.cvtColor`).

    Parameters
    ----------
    code : str
        Such as "BGR2RGB" or "COLOR_RGB2GRAY", in any case: every pair of BGR, RGB, BGRA, RGBA; GRAY to and from each;
        BGR and RGB to and from YCrCb, YUV and HSV.
    alpha : number, optional
        What an added alpha channel holds; by default the type's maximum, 1.0 for floats.

    Raises
    ------
    ValueError
        An unknown code.
    """

    headers: ClassVar[tuple[str, ...]] = ("fkl/color.h", "fkl/channels.h")

    def __init__(self, code: str, alpha: Any = None) -> None:
        if not isinstance(code, str):
            raise TypeError(f'ColorConversion takes a code such as "BGR2RGB", got {code!r:.80}')
        name = re.sub(r"^COLOR_", "", code.strip().upper())
        source, two, target = name.partition("2")
        spaces = ("GRAY", "YCRCB", "YUV", "HSV")
        known = two and source != target and (
            (source in _ORDERS and target in (*_ORDERS, "GRAY"))
            or (source == "GRAY" and target in _ORDERS)
            or (source in ("BGR", "RGB") and target in spaces)
            or (target in ("BGR", "RGB") and source in spaces)
        )  # fmt: skip
        if not known:
            raise ValueError(
                f"unknown colour code {code!r}; there are pairs of BGR, RGB, BGRA, RGBA and GRAY, such as BGR2RGBA, and BGR or "
                "RGB to and from YCrCb, YUV and HSV"
            )
        self.code, self.source, self.target = name, source, target
        self.alpha = None if alpha is None else number(alpha, "ColorConversion: alpha")
        if alpha is not None and not (target.endswith("A") and not source.endswith("A")):
            raise ValueError(f"ColorConversion({code!r}) adds no alpha channel, so alpha={alpha!r} has no place")

    def _channels(self) -> int:
        return {"GRAY": 1, "BGRA": 4, "RGBA": 4}.get(self.source, 3)

    def lower(self, dtype: DType) -> Lowered:
        self.check(dtype)
        if dtype.channels != self._channels():
            raise TypeError(f"ColorConversion({self.code!r}) takes {self._channels()} channels, the chain has {dtype} there")
        source, target, red = self.source, self.target, _red(self.source)
        if "HSV" in (source, target):
            if dtype.base not in ("uint8", "float32", "float64"):
                raise TypeError(f"HSV takes uint8, float32 and float64, the chain has {dtype} there; put a Cast before it")
            function = f"to_hsv<{red}>" if target == "HSV" else f"from_hsv<{_red(target)}>"
            return Lowered(f"auto {{y}} = {function}({{x}});", (), dtype, 12)
        if {source, target} & {"YUV", "YCRCB"}:
            if not (dtype.is_float or dtype.base in ("uint8", "uint16")):
                raise TypeError(f"YUV and YCrCb take uint8, uint16 and floats, the chain has {dtype} there; put a Cast before it")
            yuv = str("YUV" in (source, target)).lower()
            forward = target in ("YUV", "YCRCB")
            function = f"to_ycc<{red}, {yuv}>" if forward else f"from_ycc<{_red(target)}, {yuv}>"
            return Lowered(f"auto {{y}} = {function}({{x}});", (), dtype, 6)
        if target == "GRAY":
            return Lowered(f"auto {{y}} = to_gray<{red}>({{x}});", (), dtype.with_channels(1), 5)
        if source == "GRAY":
            order = "from_gray<3>({x})"
        else:
            four = source.endswith("A") and target.endswith("A")
            given = "{x}" if four or not source.endswith("A") else "discard<3>({x})"
            order = f"reorder<{'2, 1, 0' if red != _red(target) else '0, 1, 2'}{', 3' if four else ''}>({given})"
        if target.endswith("A") and not source.endswith("A"):
            field = Field(f"pixel<{dtype.ctype}, 1>", dtype.itemsize, dtype.itemsize)
            return Lowered(f"auto {{y}} = add_last({order}, {{0}});", (field,), dtype.with_channels(4))
        return Lowered(f"auto {{y}} = {order};", (), dtype.with_channels(4 if target.endswith("A") else 3))

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        if not (self.target.endswith("A") and not self.source.endswith("A")):
            return ()
        alpha = self.alpha if self.alpha is not None else 1.0 if dtype.is_float else dtype.limits[1]
        return (scalar_bytes(dtype.base, alpha, "ColorConversion: alpha"),)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.code,), {} if self.alpha is None else {"alpha": self.alpha}


class _Video(Elementwise):
    headers: ClassVar[tuple[str, ...]] = ("fkl/color.h", "fkl/channels.h")

    def __init__(self, primaries: str = "bt709", range: str = "limited", depth: int = 8, alpha: Any = None) -> None:
        name = type(self).__name__
        bits = index_of(depth)
        if bits not in (8, 10, 12):
            raise ValueError(f"{name}: depth is 8, 10 or 12 bits, got {depth!r:.80}")
        self.primaries = one_of(primaries, tuple(_PRIMARIES), f"{name}: primaries")
        self.range, self.depth = one_of(range, ("limited", "full"), f"{name}: range"), bits
        self.alpha = None if alpha is None else number(alpha, f"{name}: alpha")

    def _scales(self) -> tuple[float, float, float, float, float]:
        """Full scale, luma offset and span, chroma offset and span, in code values."""
        top, unit = float((1 << self.depth) - 1), float(1 << (self.depth - 8))
        if self.range == "limited":
            return top, 16 * unit, 219 * unit, 128 * unit, 224 * unit
        return top, 0.0, top, 128 * unit, top

    def _lower(self, dtype: DType, function: str, record: str) -> Lowered:
        self.check(dtype)
        if dtype.channels != 3:
            raise TypeError(f"{type(self).__name__} takes 3 channels, the chain has {dtype} there")
        code = f"{function}({{x}}, {{0}})"
        fields, out = [Field(record, 32, 4)], DType("float32", 3)
        if self.alpha is not None:
            code, out = f"add_last({code}, {{1}})", DType("float32", 4)
            fields.append(Field("pixel<f32, 1>", 4, 4))
        return Lowered(f"auto {{y}} = {code};", tuple(fields), out, 4)

    def _alpha(self) -> tuple[bytes, ...]:
        return () if self.alpha is None else (scalar_bytes("float32", self.alpha, f"{type(self).__name__}: alpha"),)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs = {"primaries": self.primaries, "range": self.range, "depth": self.depth}
        return (), kwargs if self.alpha is None else {**kwargs, "alpha": self.alpha}


class ConvertYUVToRGB(_Video):
    """Video (Y, U, V) pixels to float32 (R, G, B) in the depth's full scale, not clamped; the ITU matrices.

    Parameters
    ----------
    primaries : {"bt709", "bt601", "bt2020"}
    range : {"limited", "full"}
        Limited: 8-bit luma 16..235, chroma 128 +- 112.
    depth : {8, 10, 12}
        Bits of a sample. Results are 0..255, 0..1023 or 0..4095.
    alpha : number, optional
        Append a channel that holds it.

    All of them are values: another one compiles nothing.
    """

    def lower(self, dtype: DType) -> Lowered:
        return self._lower(dtype, "video_to_rgb", "VideoRecord")

    def bounds(self, before: Bounds) -> Bounds | None:
        # Factors lie between 2^-4 and 2^2, whatever the matrix; offsets are integers up to 2^11.
        if self.alpha is not None or before.grain < 0 or before.most > 16:
            return None
        return Bounds(-27, -27, 21)

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        kr, kb = _PRIMARIES[self.primaries]
        kg = 1 - kr - kb
        top, luma_offset, luma, chroma_offset, chroma = self._scales()
        c = top / chroma
        # As stored: its product with the offset, 0 or a power of two, is exact, and so (Y - offset) * scale is one step.
        (scale,) = struct.unpack("<f", struct.pack("<f", top / luma))
        return (
            struct.pack("<8f", scale, scale * luma_offset, chroma_offset, 2 * (1 - kr) * c, -2 * kb * (1 - kb) / kg * c,
                        -2 * kr * (1 - kr) / kg * c, 2 * (1 - kb) * c, 0.0),
            *self._alpha(),
        )  # fmt: skip


class ConvertRGBToYUV(_Video):
    """(R, G, B) in the depth's full scale to video (Y, U, V) in float32, not rounded and not clamped.

    Parameters
    ----------
    primaries, range, depth, alpha
        As `ConvertYUVToRGB`.
    """

    def lower(self, dtype: DType) -> Lowered:
        return self._lower(dtype, "rgb_to_video", "VideoInverse")

    def values(self, dtype: DType, extents: Extents) -> tuple[bytes, ...]:
        kr, kb = _PRIMARIES[self.primaries]
        top, luma_offset, luma, chroma_offset, chroma = self._scales()
        return (
            struct.pack("<8f", kr, 1 - kr - kb, kb, luma / top, luma_offset, chroma / top / (2 * (1 - kb)),
                        chroma / top / (2 * (1 - kr)), chroma_offset),
            *self._alpha(),
        )  # fmt: skip
