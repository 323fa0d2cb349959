"""fkl composes image and tensor operations into one CUDA kernel, bound to its buffers and launched with no arguments.

    k = fkl.compose(fkl.TensorRead(x), fkl.Cast("float32"), fkl.Div(255.0), fkl.TensorSplit(out))
    k()

Everything is imported at its first use: ``import fkl`` loads no driver, no compiler and no NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fkl._version import __version__

if TYPE_CHECKING:
    from fkl.compiler.errors import CompileError as CompileError
    from fkl.custom_op import torch_op as torch_op
    from fkl.divergent import DivergentKernel as DivergentKernel
    from fkl.divergent import compose_divergent as compose_divergent
    from fkl.dtypes import DType as DType
    from fkl.kernel import FusedKernel as FusedKernel
    from fkl.kernel import compose as compose
    from fkl.operations import *  # noqa: F403
    from fkl.plan import ChainError as ChainError
    from fkl.runtime.buffer import DeviceBuffer as DeviceBuffer
    from fkl.runtime.buffer import asarray as asarray
    from fkl.runtime.buffer import empty as empty
    from fkl.runtime.buffer import from_dlpack as from_dlpack
    from fkl.runtime.errors import CudaError as CudaError
    from fkl.runtime.stream import Event as Event
    from fkl.runtime.stream import Stream as Stream
    from fkl.sequences import Sequence as Sequence
    from fkl.sequences import sequence as sequence
    from fkl.temporal import CircularTensor as CircularTensor
    from fkl.usage import MemoryInfo as MemoryInfo
    from fkl.usage import memory_info as memory_info

#: Public name -> the module that defines it.
_HOME = {
    "ChainError": "fkl.plan",
    "CircularTensor": "fkl.temporal",
    "CompileError": "fkl.compiler.errors",
    "CudaError": "fkl.runtime.errors",
    "DType": "fkl.dtypes",
    "DeviceBuffer": "fkl.runtime.buffer",
    "Event": "fkl.runtime.stream",
    "FusedKernel": "fkl.kernel",
    "MemoryInfo": "fkl.usage",
    "Sequence": "fkl.sequences",
    "Stream": "fkl.runtime.stream",
    "asarray": "fkl.runtime.buffer",
    "compose": "fkl.kernel",
    "compose_divergent": "fkl.divergent",
    "DivergentKernel": "fkl.divergent",
    "empty": "fkl.runtime.buffer",
    "from_dlpack": "fkl.runtime.buffer",
    "memory_info": "fkl.usage",
    "sequence": "fkl.sequences",
    "torch_op": "fkl.custom_op",
    **dict.fromkeys(
        (
            "Abs", "AbsDiff", "Add", "AddLast", "BorderReader", "BwAnd", "BwNot", "BwOr", "BwXor", "Cast",
            "ColorConversion", "ConvertRGBToYUV", "ConvertYUVToRGB", "Crop", "Deinterlace", "Discard", "Div", "Exp",
            "IsEven", "Ln", "Max", "Min", "Mul", "MxVFloat3", "Neg", "Operation", "PerThreadRead", "PerThreadWrite",
            "Placement", "Pow", "ReadSet", "ReadYUV", "Resize", "Saturate", "SaturateCast", "SaturateFloat",
            "ShiftLeft", "ShiftRight", "SplitWrite", "Sqr", "Sqrt", "StaticLoop", "Sub", "TensorPack", "TensorRead",
            "TensorSplit", "TensorTSplit", "TensorWrite", "VectorAnd", "VectorReduce", "VectorReorder",
            "VectorReorderRT", "Warping",
        ),
        "fkl.operations",
    ),
}  # fmt: skip

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'fkl' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
