"""Current streams and fresh arrays of the framework an array comes from; see frameworks.pyx."""

from libc.stdint cimport uintptr_t
from fkl.runtime.view cimport Array

cdef int current_stream(const Array* a, uintptr_t* handle) except -1
cdef int order_after(const Array* a, bint explicit, uintptr_t handle) except -1
