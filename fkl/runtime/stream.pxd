"""Streams and events; see stream.pyx."""

from libc.stdint cimport uintptr_t
from fkl.runtime.driver cimport fkl_CUevent, fkl_CUstream


cdef class Stream:
    cdef fkl_CUstream _handle
    cdef readonly int device
    cdef object __weakref__


cdef class Event:
    cdef fkl_CUevent _handle
    cdef readonly int device
    cdef readonly bint timing
    cdef object __weakref__
    cdef int record_on(self, fkl_CUstream stream) except -1
    cdef int make_wait(self, fkl_CUstream stream) except -1


cdef int decode_stream(object obj, uintptr_t* handle) except -1
