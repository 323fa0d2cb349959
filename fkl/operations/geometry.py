"""Geometry: `Crop Resize Warping BorderReader Deinterlace`. Each asks the level before it for the pixels it needs."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from fkl.bounds import Bounds
from fkl.checks import integer, one_of
from fkl.dtypes import DType
from fkl.operations.base import Extents, Field, Geometry, Sampled
from fkl.operations.values import number, numbers_tuple, pixel_bytes, pixel_field

__all__ = ["BorderReader", "Crop", "Deinterlace", "Placement", "Resize", "Warping"]

SIZE_FIELD = Field("SizeRecord", 8, 4)
#: Source pixels that an output pixel is made of; where sizes decide it, many.
_TAPS = {"nearest": 1, "linear": 4, "cubic": 16, "area": 16}


def _positive(value: Any, what: str) -> int:
    size = integer(value, what)
    if not 0 < size < 2**31:
        raise ValueError(f"{what} must be 1 to 2147483647, got {size}")
    return size


def interpolated(dtype: DType) -> DType:
    """The type of an interpolated result: float32, float64 and 16-bit floats stay."""
    return dtype if dtype.is_float else dtype.with_base("float32")


class Crop(Geometry):
    """Cut out a rectangle, or one rectangle a plane.

    Parameters
    ----------
    x, y, width, height : int
        Or one list of such tuples: a plane for each; of one image, or of as many images. An empty list is a batch of no
        planes. Rectangles reach outside only after a `BorderReader`.

    Raises
    ------
    TypeError
        A list of something else than rectangles.
    ValueError
        A width or height of 0 or less; a rectangle outside of the source.
    """

    def __init__(self, *rectangle: Any) -> None:
        if len(rectangle) == 1 and hasattr(rectangle[0], "__iter__"):
            self.rectangles: list[tuple[int, ...]] | None = [self._check(r) for r in rectangle[0]]
            self.rectangle = None
        else:
            self.rectangles, self.rectangle = None, self._check(rectangle)

    @staticmethod
    def _check(rectangle: Any) -> tuple[int, ...]:
        if not hasattr(rectangle, "__iter__"):
            raise TypeError(
                f"a rectangle is (x, y, width, height), got {rectangle!r:.80}; write Crop(x, y, width, height) for one, "
                "Crop([(x, y, width, height), ...]) for one a plane"
            )
        values = tuple(rectangle)
        if len(values) != 4:
            raise ValueError(f"a rectangle is (x, y, width, height), got {rectangle!r:.80}")
        x, y, w, h = (integer(v, "a rectangle's coordinate") for v in values)
        if w <= 0 or h <= 0:
            raise ValueError(f"a rectangle's width and height are 1 or more, got {(x, y, w, h)}")
        if not (-(2**31) < x < 2**31 - w and -(2**31) < y < 2**31 - h):
            raise ValueError(f"a rectangle lies within 2^31 pixels of the first one, got {(x, y, w, h)}")
        return x, y, w, h

    def sample(self, dtype: DType, *, extended: bool, roll: bool) -> Sampled:
        field = Field("CropRecord", 8, 4, self.rectangles is not None)
        return Sampled("crop<{L}>(p, x, y, z, {0})", (field,), dtype, extended=False)

    def plane_values(self, dtype: DType, width: int, height: int, plane: int, extents: Extents) -> tuple[bytes, ...]:
        rectangle = self.rectangles[plane] if self.rectangles is not None else self.rectangle
        assert rectangle is not None
        x, y, w, h = rectangle
        if not extents.extended and not (x >= 0 and y >= 0 and x + w <= width and y + h <= height):
            raise ValueError(
                f"rectangle {rectangle} (x, y, width, height) reaches outside of the source of {width} x {height} "
                "(width x height); put a BorderReader before the Crop, or move the rectangle"
            )
        return (struct.pack("<2i", x, y),)

    def extents(self, extents: Extents, before: DType, after: DType) -> Extents:
        if self.rectangles is None:
            assert self.rectangle is not None
            return extents._replace(width=self.rectangle[2], height=self.rectangle[3], sizes=None, extended=False,
                                    rank=max(extents.rank, 2))  # fmt: skip
        count = len(self.rectangles)
        if extents.planes not in (1, count):
            raise ValueError(
                f"{count} rectangles for {extents.planes} source planes; a list of rectangles cuts them all out of one plane, or "
                "one out of each"
            )
        sizes = tuple((r[2], r[3]) for r in self.rectangles)
        same = len(set(sizes)) <= 1
        width, height = sizes[0] if sizes else (0, 0)
        return extents._replace(width=width, height=height, planes=count, rank=3, sizes=None if same else sizes, extended=False)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.rectangles,) if self.rectangles is not None else (self.rectangle or ()), {}

    def bounds(self, before: Bounds) -> Bounds | None:
        return before


class Placement(NamedTuple):
    """Where a resized image lies in its output: output = source * scale + offset, on each axis."""

    scale_x: float
    scale_y: float
    x: int
    y: int
    width: int
    height: int


class Resize(Geometry):
    """Resize to (height, width).

    Parameters
    ----------
    width, height : int
        Of the output.
    interp : {"linear", "nearest", "cubic", "area"}
        Nearest keeps the type; the others give float32 (float64 and 16-bit floats stay), not clamped.
    aspect_ratio : {"ignore", "preserve", "preserve_left", "preserve_even"}
        The preserving ones letterbox: the content keeps its shape, centred ("preserve_left": at x = 0;
        "preserve_even": with even sizes).
    background : number or sequence of numbers
        What lies outside of the content; required when the shape is preserved.
    centers : {"half_pixel", "top_left"}
        Half pixel: source = (i + 0.5) * S / T - 0.5, as OpenCV and torch ``align_corners=False``. Top left: i * S / T.
    antialias : bool
        Widen the filter where the image shrinks (linear and cubic), as PIL and torch ``antialias=True``.
    """

    _interpolations: ClassVar[tuple[str, ...]] = ("linear", "nearest", "cubic", "area")
    _aspects: ClassVar[tuple[str, ...]] = ("ignore", "preserve", "preserve_left", "preserve_even")

    def __init__(
        self, width: int, height: int, interp: str = "linear", aspect_ratio: str = "ignore", background: Any = None,
        centers: str = "half_pixel", antialias: bool = False,
    ) -> None:  # fmt: skip
        self.width, self.height = _positive(width, "Resize: width"), _positive(height, "Resize: height")
        for name, value, known in (
            ("interp", interp, self._interpolations), ("aspect_ratio", aspect_ratio, self._aspects),
            ("centers", centers, ("half_pixel", "top_left")),
        ):  # fmt: skip
            one_of(value, known, f"Resize: {name}")
        if not isinstance(antialias, bool):
            raise TypeError(f"Resize: antialias is a bool, got {antialias!r}")
        if antialias and interp not in ("linear", "cubic"):
            raise ValueError(f"Resize: antialias works with linear and cubic, not with {interp}")
        if centers == "top_left" and (antialias or interp == "area"):
            raise ValueError('Resize: centers="top_left" works with nearest, linear and cubic without antialias')
        if aspect_ratio == "ignore" and background is not None:
            raise ValueError('Resize: a background needs aspect_ratio="preserve" (or preserve_left, preserve_even)')
        if aspect_ratio != "ignore" and background is None:
            raise ValueError(f'Resize: aspect_ratio="{aspect_ratio}" needs a background for what lies outside of the content')
        self.interp, self.aspect_ratio, self.centers, self.antialias = interp, aspect_ratio, centers, antialias
        self.background = None if background is None else numbers_tuple(background, "Resize: background")

    def sample(self, dtype: DType, *, extended: bool, roll: bool) -> Sampled:
        out = dtype if self.interp == "nearest" else interpolated(dtype)
        name = f"antialias_{self.interp}" if self.antialias else self.interp
        name = "top_left_nearest" if self._older_nearest else name
        code = f"resize_{name}<{{L}}, {str(roll).lower()}>(p, x, y, z, {{0}})"
        fields = [Field("SpanRecord", 48, 8) if self._spans else Field("ResizeRecord", 48, 8)]
        if self.background is not None:
            fields += [pixel_field(out), Field("ContentRecord", 16, 4)]
            code = f"inside(x, y, {{2}}) ? {code} : {{1}}"
        return Sampled(code, tuple(fields), out, extended=False, taps=16 if self.antialias else _TAPS[self.interp])

    @property
    def _older_nearest(self) -> bool:
        return self.centers == "top_left" and self.interp == "nearest"

    @property
    def _spans(self) -> bool:
        """Whether the record is one for areas, see geometry.h."""
        return self.antialias or self.interp == "area" or self._older_nearest

    def _span(self, size: int, length: int, offset: int) -> bytes:
        # The older rule divides twice, and its rounding is part of it.
        scale = 1.0 / (length / size) if self._older_nearest else size / length
        return struct.pack("<d4i", scale, size, length, offset, 0)

    def _axis(self, size: int, length: int, offset: int) -> bytes:
        """Positions i * step + start in units of 2^-32: at half-pixel centres ((2i + 1) S - T) / (2T), for nearest half a
        pixel further. Both are rounded up and the sum is truncated, so that the unit added here keeps it from falling
        below a position that is a whole number."""
        step = -(-(size << 64) // length)
        start = 1 - (offset * size << 32) // length
        if self.centers == "half_pixel":
            start += -(-(size << 32) // (2 * length)) - (0 if self.interp == "nearest" else 1 << 31)
        if not -(2**63) <= start < 2**63:
            raise ValueError(f"content {length} pixels wide or high, {offset} from the edge, is too far for a source of {size}")
        return struct.pack("<qqIi", step >> 32, start, step & 0xFFFFFFFF, size - 1)

    def content(self, width: int, height: int) -> tuple[int, int, int, int]:
        """Offset and size of the content, ``(x, y, width, height)``, for a source of this size."""
        if self.aspect_ratio == "ignore":
            return 0, 0, self.width, self.height
        w, h = (2 * width * self.height + height) // (2 * height), self.height
        if w > self.width:
            w, h = self.width, (2 * height * self.width + width) // (2 * width)
        w, h = max(w, 1), max(h, 1)
        if self.aspect_ratio == "preserve_even":
            w, h = max(w - w % 2, 1), max(h - h % 2, 1)
        x = 0 if self.aspect_ratio == "preserve_left" else (self.width - w) // 2
        return x, (self.height - h) // 2, w, h

    def reads(self, width: int, height: int) -> int:
        _, _, w, h = self.content(width, height)
        if self.interp == "area":
            return (-(-width // w) + 1) * (-(-height // h) + 1)
        if self.antialias:
            support = 2 if self.interp == "cubic" else 1
            return math.prod(2 * math.ceil(support * max(s / t, 1.0)) + 1 for s, t in ((width, w), (height, h)))
        return _TAPS[self.interp]

    def placement(self, src_w: int, src_h: int) -> Placement:
        """Where the content lies, to map boxes of the output back to the source.

        Parameters
        ----------
        src_w, src_h : int
            Size of the source.

        Returns
        -------
        Placement
            ``x_output = x_source * scale_x + x``, and the same for y, in coordinates of pixel edges.
        """
        width, height = _positive(src_w, "src_w"), _positive(src_h, "src_h")
        x, y, w, h = self.content(width, height)
        return Placement(w / width, h / height, x, y, w, h)

    def plane_values(self, dtype: DType, width: int, height: int, plane: int, extents: Extents) -> tuple[bytes, ...]:
        if width == 0 or height == 0:
            raise ValueError(f"an image without pixels ({width} x {height}) cannot be resized")
        x, y, w, h = self.content(width, height)
        axis = self._span if self._spans else self._axis
        record = b"".join(axis(*numbers) for numbers in ((width, w, x), (height, h, y)))
        if self.background is None:
            return (record,)
        out = dtype if self.interp == "nearest" else interpolated(dtype)
        return record, self._background(out), struct.pack("<4i", x, y, x + w, y + h)

    def _background(self, out: DType) -> bytes:
        return pixel_bytes(out, self.background, "Resize: background")

    def check_values(self, out: DType) -> None:
        if self.background is not None:
            self._background(out)

    def bounds(self, before: Bounds) -> Bounds | None:
        if self.antialias or self.interp not in ("nearest", "linear"):
            return None
        if self.interp == "linear":  # two weights, multiples of 2^-30
            before = before._replace(least=before.grain - 60, grain=before.grain - 60, most=before.most + 2)
        return before if self.background is None else before.joined()

    def extents(self, extents: Extents, before: DType, after: DType) -> Extents:
        return extents._replace(width=self.width, height=self.height, sizes=None, extended=False, rank=max(extents.rank, 2))

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs: dict[str, Any] = {}
        for name, default in (("interp", "linear"), ("aspect_ratio", "ignore"), ("background", None),
                              ("centers", "half_pixel"), ("antialias", False)):  # fmt: skip
            if getattr(self, name) != default:
                kwargs[name] = getattr(self, name)
        return (self.width, self.height), kwargs


class Warping(Geometry):
    """Warp by a matrix that maps output pixels to source pixels (``cv2.WARP_INVERSE_MAP``).

    Parameters
    ----------
    matrix : 2x3 or 3x3 numbers
    dst_w, dst_h : int
        Size of the output.
    interp : {"linear", "nearest", "cubic"}
        Nearest (floor(s + 0.5)) keeps the type; the others give float32 (float64 and 16-bit floats stay).

    Taps outside of the source are 0, or follow a `BorderReader` directly before.
    """

    def __init__(self, matrix: Any, dst_w: int, dst_h: int, interp: str = "linear") -> None:
        rows = matrix.tolist() if hasattr(matrix, "tolist") else matrix
        if isinstance(rows, Sequence) and len(rows) in (2, 3) and all(isinstance(r, Sequence) and len(r) == 3 for r in rows):
            rows = [v for row in rows for v in row]
        if not isinstance(rows, Sequence) or len(rows) not in (6, 9):
            raise ValueError(f"Warping takes a 2x3 or 3x3 matrix, got {matrix!r:.80}")
        values = [number(v, "Warping: matrix") for v in rows]
        if not all(abs(v) < 2**127 for v in values):
            raise ValueError(f"Warping: the matrix holds inf, nan or a number beyond float32: {matrix!r:.120}")
        self.matrix = tuple(float(v) for v in (values if len(values) == 9 else [*values, 0.0, 0.0, 1.0]))
        self.width, self.height = _positive(dst_w, "Warping: dst_w"), _positive(dst_h, "Warping: dst_h")
        self.interp = one_of(interp, ("linear", "nearest", "cubic"), "Warping: interp")

    def sample(self, dtype: DType, *, extended: bool, roll: bool) -> Sampled:
        out = dtype if self.interp == "nearest" else interpolated(dtype)
        flags = f"{str(roll).lower()}, {str(extended).lower()}"
        code = f"warp_{self.interp}<{{L}}, {flags}>(p, x, y, z, {{0}})"
        field = Field("WarpRecord<f64>", 80, 8) if self.interp == "nearest" else Field("WarpRecord<f32>", 44, 4)
        return Sampled(code, (field,), out, extended=False, taps=_TAPS[self.interp])

    def reads(self, width: int, height: int) -> int:
        return _TAPS[self.interp]

    def plane_values(self, dtype: DType, width: int, height: int, plane: int, extents: Extents) -> tuple[bytes, ...]:
        if width == 0 or height == 0:
            raise ValueError(f"an image without pixels ({width} x {height}) cannot be warped")
        return (struct.pack("<9d2i" if self.interp == "nearest" else "<9f2i", *self.matrix, width, height),)

    def extents(self, extents: Extents, before: DType, after: DType) -> Extents:
        return extents._replace(width=self.width, height=self.height, sizes=None, extended=False, rank=max(extents.rank, 2))

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        rows = [list(self.matrix[i : i + 3]) for i in (0, 3, 6)]
        return (rows, self.width, self.height), {} if self.interp == "linear" else {"interp": self.interp}


class BorderReader(Geometry):
    """Extend the array infinitely, for a later `Crop` or `Warping` that asks outside.

    Parameters
    ----------
    mode : {"replicate", "constant", "reflect", "wrap", "reflect101"}
        As ``cv2.copyMakeBorder``; ``numpy.pad`` calls them edge, constant, symmetric, wrap, reflect.
    value : number or sequence of numbers
        The constant; it belongs to the array here, so later operations apply to it too.

    Raises
    ------
    ValueError
        Another mode; a pixel asked of an image that has none, unless the mode is constant.
    """

    _modes: ClassVar[tuple[str, ...]] = ("replicate", "constant", "reflect", "wrap", "reflect101")

    def __init__(self, mode: str = "replicate", value: Any = 0) -> None:
        if mode not in self._modes:
            raise ValueError(f"BorderReader: mode is one of {', '.join(self._modes)}, got {mode!r}")
        self.mode, self.value = mode, numbers_tuple(value, "BorderReader: value")
        self.repeats = mode != "constant"

    def sample(self, dtype: DType, *, extended: bool, roll: bool) -> Sampled:
        if self.mode == "constant":
            return Sampled("border_constant<{L}>(p, x, y, z, {0}, {1})", (SIZE_FIELD, pixel_field(dtype)), dtype, extended=True)
        return Sampled(f"border<{{L}}, BORDER_{self.mode.upper()}>(p, x, y, z, {{0}})", (SIZE_FIELD,), dtype, extended=True)

    def plane_values(self, dtype: DType, width: int, height: int, plane: int, extents: Extents) -> tuple[bytes, ...]:
        size = struct.pack("<2i", width, height)
        return (size, self._constant(dtype)) if self.mode == "constant" else (size,)

    def _constant(self, dtype: DType) -> bytes:
        return pixel_bytes(dtype, self.value, "BorderReader: value")

    def check_values(self, out: DType) -> None:
        if self.mode == "constant":
            self._constant(out)

    def extents(self, extents: Extents, before: DType, after: DType) -> Extents:
        return extents._replace(extended=True)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.mode,), {"value": self.value} if self.mode == "constant" else {}

    def bounds(self, before: Bounds) -> Bounds | None:
        return before.joined()


class Deinterlace(Geometry):
    """Make a full frame of one with two fields.

    Parameters
    ----------
    mode : {"blend", "linear"}
        Blend: every row but the first becomes the mean with the row above. Linear: rows of the other parity become the
        mean of their neighbours (the only neighbour at an edge). Integers round half up.
    keep : {"even", "odd"}
        The rows that linear keeps.
    """

    def __init__(self, mode: str = "blend", keep: str = "even") -> None:
        self.mode = one_of(mode, ("blend", "linear"), "Deinterlace: mode")
        self.keep = one_of(keep, ("even", "odd"), "Deinterlace: keep")

    def sample(self, dtype: DType, *, extended: bool, roll: bool) -> Sampled:
        if dtype.is_bool:
            raise TypeError('Deinterlace takes float and integer types, the chain has bool there; put Cast("uint8") before it')
        code = "deinterlace_blend<{L}>" if self.mode == "blend" else f"deinterlace_linear<{{L}}, {int(self.keep == 'odd')}>"
        return Sampled(code + "(p, x, y, z, {0})", (SIZE_FIELD,), dtype, extended=False, taps=2)

    def reads(self, width: int, height: int) -> int:
        return 2

    def plane_values(self, dtype: DType, width: int, height: int, plane: int, extents: Extents) -> tuple[bytes, ...]:
        return (struct.pack("<2i", width, height),)

    def extents(self, extents: Extents, before: DType, after: DType) -> Extents:
        return extents._replace(extended=False)

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (self.mode,), {} if self.keep == "even" else {"keep": self.keep}
