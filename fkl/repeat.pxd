"""The last launch of a kernel, and whether it may be repeated; see repeat.pyx."""

from libc.stdint cimport uint64_t
from fkl.runtime.launch cimport Launch
from fkl.runtime.view cimport Array, ArrayView


cdef class Repeat:
    cdef Launch launch
    cdef Array source
    cdef Array target
    cdef uint64_t source_span
    cdef uint64_t target_span
    cdef bint in_place
    # What a fresh output is like: a view without an array, its shape and type.
    cdef ArrayView like
    cdef tuple shape
    cdef str base


cdef bint same_array(const Array* a, const Array* b) noexcept nogil
cdef Repeat make_repeat(Launch launch, ArrayView source, ArrayView target)
