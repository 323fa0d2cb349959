"""The last launch with arrays given at the call, to be repeated while only addresses change. Used by `fkl.kernel`."""

cimport cython
from libc.stdint cimport uint64_t

from fkl.runtime.launch cimport Launch
from fkl.runtime.view cimport Array, ArrayView


cdef bint same_array(const Array* a, const Array* b) noexcept nogil:
    """Whether two arrays differ in their address only."""
    cdef int i
    if a.base != b.base or a.ndim != b.ndim or a.device != b.device or a.channels != b.channels:
        return False
    for i in range(a.ndim):
        if a.shape[i] != b.shape[i] or a.strides[i] != b.strides[i]:
            return False
    return True


cdef uint64_t span(const Array* a, int itemsize) noexcept nogil:
    """Bytes from an array's first to one past its last."""
    cdef uint64_t reach = itemsize
    cdef int i
    for i in range(a.ndim):
        if a.shape[i] == 0:
            return 0
        reach += <uint64_t>((a.shape[i] - 1) * a.strides[i])
    return reach


@cython.final
cdef class Repeat:
    """A launch and what its arrays must be like. Never modified, so that threads may share it."""


cdef Repeat make_repeat(Launch launch, ArrayView source, ArrayView target):
    cdef Repeat made = Repeat.__new__(Repeat)
    made.launch = launch
    made.source, made.target = source.a, target.a
    made.source_span = span(&source.a, source.itemsize)
    made.target_span = span(&target.a, target.itemsize)
    made.in_place = source.a.ptr == target.a.ptr
    made.like = ArrayView.__new__(ArrayView)
    made.like.a = source.a
    made.shape, made.base = target.shape, target.dtype.base
    return made
