"""`torch_op`: a kernel as an operator of torch, so that `torch.compile` keeps it in its graph. torch is imported when called."""

from __future__ import annotations

from typing import Any

from fkl.kernel import FusedKernel

__all__ = ["torch_op"]


def torch_op(name: str, kernel: FusedKernel) -> Any:
    """Register a kernel with ``torch.library``, so that compiled models call it without a graph break.

    Parameters
    ----------
    name : str
        The operator's name with its namespace, such as "camera::prepare".
    kernel : FusedKernel
        On the GPU, neither read nor write bound. It must not be closed while the operator is in use.

    Returns
    -------
    callable
        Takes one tensor and returns a new one. It has no gradient.

    Raises
    ------
    TypeError
        Something that is no kernel, or one of the CPU target.
    ImportError
        No torch.
    ValueError
        A bound kernel, or a name without a namespace.
    """
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]
    except ImportError as error:
        raise ImportError(f"torch_op registers an operator of torch, which cannot be imported: {error}") from error
    if not isinstance(kernel, FusedKernel):
        raise TypeError(f"torch_op takes a kernel from fkl.compose, got {type(kernel).__name__}")
    if kernel.target != "gpu":
        raise TypeError('torch_op takes a kernel of target="gpu"; the CPU target takes NumPy arrays')
    if kernel.is_bound or kernel.ops[-1].dest is not None:  # type: ignore[attr-defined]
        raise ValueError("torch_op takes a kernel with nothing bound: tensors come and go in a compiled model")
    if name.count("::") != 1 or not all(part.isidentifier() for part in name.split("::")):
        raise ValueError(f'the operator is named "namespace::name", got {name!r:.80}')

    def run(x: Any) -> Any:
        return kernel(x)

    def like(x: Any) -> Any:
        shape, base = kernel.output_for(str(x.dtype).partition(".")[2], tuple(x.shape))
        return x.new_empty(shape, dtype=getattr(torch, base))

    operator = torch.library.custom_op(name, run, mutates_args=(), schema="(Tensor x) -> Tensor")
    operator.register_fake(like)
    return operator
