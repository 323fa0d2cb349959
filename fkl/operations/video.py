"""How a chain begins with a decoder's surface: `ReadYUV`."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from fkl.checks import one_of
from fkl.dtypes import DType
from fkl.operations.base import Field, Lowered, Read

__all__ = ["FORMATS", "ReadYUV", "VideoFormat"]


class VideoFormat(NamedTuple):
    """One way of laying luma and chroma out.

    ``kind``: "semi" (luma, then interleaved chroma), "planar" (three planes), "packed" (all interleaved). ``swapped``: V
    before U; for packed formats: luma before chroma. ``shift``: samples lie so many bits too high.
    """

    base: str
    kind: str
    swapped: bool = False
    shift: int = 0

    @property
    def samples(self) -> str:
        """How video.h calls it."""
        return {"packed": "BETWEEN", "planar": "APART"}.get(self.kind, "PAIRED_VU" if self.swapped else "PAIRED_UV")


FORMATS = {
    "nv12": VideoFormat("uint8", "semi"),
    "nv21": VideoFormat("uint8", "semi", swapped=True),
    "p010": VideoFormat("uint16", "semi", shift=6),
    "p012": VideoFormat("uint16", "semi", shift=4),
    "p016": VideoFormat("uint16", "semi"),
    "uyvy": VideoFormat("uint8", "packed"),
    "yuyv": VideoFormat("uint8", "packed", swapped=True),
    "i420": VideoFormat("uint8", "planar"),
    "yv12": VideoFormat("uint8", "planar", swapped=True),
}


class ReadYUV(Read):
    """Read a video surface as (Y, U, V) pixels of uint8 or uint16.

    Parameters
    ----------
    format : str
        NV12, NV21, I420, YV12: (H*3/2, W) in uint8. P010, P012, P016: the same in uint16, samples in the high bits,
        which the read moves down (0..1023, 0..4095, 0..65535). UYVY, YUYV: (H, 2W) in uint8.
    source : array or pair of arrays, optional
        The surface to bind. NV12, NV21 and P01x also come as a pair: luma (H, W), and chroma (H/2, W) or (H/2, W/2, 2), each
        with a pitch of its own. At the call a list may hold pairs too: a plane each.
    chroma : {"replicate", "linear"}
        Linear interpolates chroma, in quarters, rounded to the nearest.
    siting : {"left", "center"}
        Where chroma samples lie between columns: "left" as MPEG-2, "center" as JPEG. For "linear" only.

    Raises
    ------
    ValueError
        An unknown name; at the binding, an odd width or height that the format cannot have.
    """

    headers: ClassVar[tuple[str, ...]] = ("fkl/video.h",)
    layout: ClassVar[str] = "yuv"
    channels: ClassVar[int | None] = None

    def __init__(self, format: str, source: Any = None, *, chroma: str = "replicate", siting: str = "left") -> None:
        name = str(format).lower()
        if name not in FORMATS:
            raise ValueError(f"ReadYUV: format is one of {', '.join(FORMATS)}, got {format!r}")
        one_of(chroma, ("replicate", "linear"), "ReadYUV: chroma")
        one_of(siting, ("left", "center"), "ReadYUV: siting")
        if isinstance(source, list) or (isinstance(source, tuple) and len(source) != 2):
            raise TypeError("ReadYUV binds one array or a pair (luma, chroma), not a list; give lists at the call")
        if isinstance(source, tuple) and FORMATS[name].kind != "semi":
            raise ValueError(f"{name} comes as one array; pairs are for nv12, nv21, p010, p012 and p016")
        self.name, self.source, self.chroma, self.siting = name, source, chroma, siting

    @property
    def video(self) -> VideoFormat:
        """The format's properties."""
        return FORMATS[self.name]

    def format(self, dtype: DType) -> str:
        """The C++ type that loads a pixel."""
        mode = "CHROMA_REPLICATE" if self.chroma == "replicate" else f"CHROMA_{self.siting.upper()}"
        return f"Yuv<{dtype.ctype}, {mode}, {self.video.samples}>"

    def lower(self, dtype: DType) -> Lowered:
        if dtype.base != self.video.base:
            raise TypeError(f"{self.name} surfaces are {self.video.base}, this one is {dtype.base}")
        return Lowered("", (Field("YuvRecord", 64, 8),), dtype.with_channels(3))

    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        kwargs = {} if self.chroma == "replicate" else {"chroma": self.chroma, "siting": self.siting}
        return (self.name,), kwargs

    def __repr__(self) -> str:
        more = ", <bound>" if self.source is not None else ""
        return f"ReadYUV({self.name!r}{more}{', chroma=' + repr(self.chroma) if self.chroma != 'replicate' else ''})"
