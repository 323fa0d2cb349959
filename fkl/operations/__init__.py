"""The operations a chain is made of, one file a family. See `fkl.operations.base` for what an operation is."""

from fkl.operations.arithmetic import (
    Abs,
    AbsDiff,
    Add,
    Div,
    Exp,
    Ln,
    Max,
    Min,
    Mul,
    Neg,
    Pow,
    Saturate,
    SaturateFloat,
    Sqr,
    Sqrt,
    Sub,
)  # fmt: skip
from fkl.operations.base import Operation
from fkl.operations.bitwise import BwAnd, BwNot, BwOr, BwXor, IsEven, ShiftLeft, ShiftRight
from fkl.operations.channels import AddLast, Discard, VectorAnd, VectorReduce, VectorReorder, VectorReorderRT
from fkl.operations.color import ColorConversion, ConvertRGBToYUV, ConvertYUVToRGB
from fkl.operations.conversion import Cast, SaturateCast
from fkl.operations.geometry import BorderReader, Crop, Deinterlace, Placement, Resize, Warping
from fkl.operations.loop import MxVFloat3, StaticLoop
from fkl.operations.reads import PerThreadRead, ReadSet, TensorPack, TensorRead
from fkl.operations.video import ReadYUV
from fkl.operations.writes import PerThreadWrite, SplitWrite, TensorSplit, TensorTSplit, TensorWrite

__all__ = [
    "Abs", "AbsDiff", "Add", "AddLast", "BorderReader", "BwAnd", "BwNot", "BwOr", "BwXor", "Cast", "ColorConversion",
    "ConvertRGBToYUV", "ConvertYUVToRGB", "Crop", "Deinterlace", "Discard", "Div", "Exp", "IsEven", "Ln", "Max",
    "Min", "Mul", "MxVFloat3", "Neg", "Operation", "PerThreadRead", "PerThreadWrite", "Placement", "Pow", "ReadSet",
    "ReadYUV", "Resize", "Saturate", "SaturateCast", "SaturateFloat", "ShiftLeft", "ShiftRight", "SplitWrite", "Sqr",
    "Sqrt", "StaticLoop", "Sub", "TensorPack", "TensorRead", "TensorSplit", "TensorTSplit", "TensorWrite",
    "VectorAnd", "VectorReduce", "VectorReorder", "VectorReorderRT", "Warping",
]  # fmt: skip
