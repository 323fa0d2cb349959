"""Owned device memory; see memory.pyx."""

from libc.stdint cimport uintptr_t
from fkl.runtime.driver cimport fkl_CUdeviceptr, fkl_CUstream


cdef class Memory:
    cdef fkl_CUdeviceptr ptr
    cdef size_t nbytes
    cdef int device
    cdef dict uses               # handle -> the stream object, or an Event after the last launch on a bare handle
    cdef bint legacy             # used on the legacy default stream
    cdef bint pooled             # from the pool of its device, freed in stream order
    cdef bint captured           # a graph may use it for as long as the process lives
    cdef int note_use(self, object stream, uintptr_t handle) except -1
    cdef int order_after(self, fkl_CUstream stream) except -1
    cdef int _forget(self) except -1


cdef unsigned long forgotten
cdef Memory allocate_memory(size_t nbytes, int device)
cdef Memory allocate_pooled(size_t nbytes, int device, fkl_CUstream stream)
