"""What the frameworks themselves do: name their current stream, allocate an output. None is ever imported by fkl."""

import sys

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid
from libc.stdint cimport intptr_t, uintptr_t

from fkl.runtime.dlpack cimport DL_CUDA
from fkl.runtime.driver cimport fkl_CUstream
from fkl.runtime.view cimport CUPY, FKL, TORCH, Array, ArrayView, wait_producer


# (base, device) -> torch's own dtype and device objects.
cdef dict _torch_kinds = {}
# How cupy names its current stream, once there is a cupy array: the C function that its own modules call, where it has one
# of this signature, else the public function, which makes an object each time.
ctypedef intptr_t (*cupy_stream_t)(int) except *
cdef cupy_stream_t _cupy_pointer = NULL
cdef object _cupy_current = None


cdef int current_stream(const Array* a, uintptr_t* handle) except -1:
    """The stream that the array's framework works on now; 0 (the legacy default stream) if it has none."""
    cdef void* stream = NULL
    handle[0] = 0
    if a.device < 0:
        return 0
    if a.exchange != NULL and a.exchange.current_stream != NULL:
        a.exchange.current_stream(DL_CUDA, a.device, &stream)
        handle[0] = <uintptr_t>stream
    elif a.framework == TORCH:
        handle[0] = sys.modules["torch"].cuda.current_stream(a.device).cuda_stream
    elif a.framework == CUPY:
        handle[0] = _cupy_stream(a.device)
    elif a.framework == FKL and a.has_stream:
        handle[0] = a.stream
    return 0


cdef uintptr_t _cupy_stream(int device) except? 1:
    if _cupy_current is None:
        _find_cupy()
    if _cupy_pointer != NULL:
        return <uintptr_t>_cupy_pointer(device)
    try:
        return _cupy_current(device).ptr
    except TypeError:  # before cupy 13 it knew the current device only
        with sys.modules["cupy"].cuda.Device(device):
            return _cupy_current().ptr


cdef int _find_cupy() except -1:
    global _cupy_pointer, _cupy_current
    functions = getattr(sys.modules.get("cupy_backends.cuda.stream"), "__pyx_capi__", {})
    capsule = functions.get("get_stream_ptr")
    if capsule is not None and PyCapsule_IsValid(capsule, b"intptr_t (int)"):
        _cupy_pointer = <cupy_stream_t>PyCapsule_GetPointer(capsule, b"intptr_t (int)")
    _cupy_current = sys.modules["cupy"].cuda.get_current_stream
    return 0


cdef int order_after(const Array* a, bint explicit, uintptr_t handle) except -1:
    """Let the launch's stream wait for the producer of an array handed over at the call."""
    cdef Array producer
    cdef uintptr_t current = 0
    if a.has_stream:
        return wait_producer(a, <fkl_CUstream>handle)
    if explicit and (a.exchange != NULL or a.framework == CUPY):
        # The framework orders its content on its current stream.
        current_stream(a, &current)
        if current != handle:
            producer = a[0]
            producer.stream = current
            return wait_producer(&producer, <fkl_CUstream>handle)
    return 0


def order_view_after(ArrayView view, bint explicit, uintptr_t handle):
    """Let a launch's stream wait for the producer of an array handed over at the call; see `order_after`."""
    order_after(&view.a, explicit, handle)


def current_stream_of(ArrayView view):
    """The stream that the array's framework works on now, as an integer."""
    cdef uintptr_t handle = 0
    current_stream(&view.a, &handle)
    return handle


def allocate(ArrayView like, tuple shape, str base, int device, uintptr_t stream):
    """A fresh array for an output.

    Parameters
    ----------
    like : ArrayView or None
        The input; its framework allocates.
    shape : tuple of int
    base : str
        A scalar type's name.
    device : int
        CUDA ordinal, -1 for NumPy arrays.
    stream : int
        The stream that is going to write it.

    Returns
    -------
    torch.Tensor, cupy.ndarray, numpy.ndarray or DeviceBuffer
    """
    if device < 0:
        return _numpy(shape, base)
    if like is not None and like.a.framework == TORCH:
        return _torch(like, shape, base, device, stream)
    if like is not None and like.a.framework == CUPY and base != "bfloat16":
        return _cupy(like, shape, base, device, stream)
    from fkl.runtime.buffer import fresh

    return fresh(shape, base, device, stream)


def _numpy(shape, base):
    import numpy

    if base == "bfloat16":
        try:
            from ml_dtypes import bfloat16
        except ImportError:
            raise TypeError(
                "NumPy has no bfloat16 of its own: install ml_dtypes, or end the chain with Cast to another type"
            ) from None
        return numpy.empty(shape, bfloat16)
    return numpy.empty(shape, base)


def _torch(ArrayView like, shape, base, device, uintptr_t stream):
    cdef uintptr_t current = 0
    torch = sys.modules["torch"]
    kind = _torch_kinds.get((base, device))
    if kind is None:
        kind = _torch_kinds[base, device] = getattr(torch, base), torch.device("cuda", device)
    current_stream(&like.a, &current)
    if current == stream:
        return torch.empty(shape, dtype=kind[0], device=kind[1])
    # torch frees in the order of the stream it allocated on, so that must be the stream that is used.
    with torch.cuda.stream(torch.cuda.ExternalStream(stream, device=device)):
        return torch.empty(shape, dtype=kind[0], device=kind[1])


def _cupy(ArrayView like, shape, base, device, uintptr_t stream):
    cdef uintptr_t current = 0
    cupy = sys.modules["cupy"]
    current_stream(&like.a, &current)
    with cupy.cuda.Device(device):
        if current == stream:
            return cupy.empty(shape, base)
        with cupy.cuda.ExternalStream(stream, device):
            return cupy.empty(shape, base)
