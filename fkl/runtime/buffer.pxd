"""`DeviceBuffer`; see buffer.pyx."""

from libc.stdint cimport uintptr_t
from fkl.runtime.driver cimport fkl_CUstream
from fkl.runtime.memory cimport Memory
from fkl.runtime.view cimport Exporter


cdef class DeviceBuffer(Exporter):
    cdef Memory memory                 # None: borrowed
    cdef readonly object owner
    cdef readonly object stream
    cdef bint closed
    cdef object __weakref__
    cdef int _describe(self, tuple shape, object dtype, strides) except -1
    cdef object _keeper(self)
    cdef int _settle(self) except -1
    cdef bint _is_tight(self)
